//! Aligned pages from a file, many at once; knows nothing of vectors.
