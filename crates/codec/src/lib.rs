//! From vector to code and back to an estimate: rotation, sign code, extra code, factors, bounds.
