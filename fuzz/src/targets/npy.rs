//! A NumPy array of vectors.

use crate::scratch::with_file;

/// Opens the file and reads its rows.
pub fn run(input: &[u8]) -> String {
    with_file("v.npy", input, super::vectors::read)
}
