//! Arithmetic on bytes and floats: one contract, one scalar twin, one file per instruction set.
