//! Vectors in from files larger than memory: formats, validation, samples, synthetic data, ground truth files.
