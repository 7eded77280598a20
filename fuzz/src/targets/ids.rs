//! External ids: one byte which format (.npy or .u64bin), then the file.

use crate::cli::ids::{read, read_first};
use crate::scratch::with_file;

/// Reads all ids, and the first three.
pub fn run(input: &[u8]) -> String {
    let Some((&which, bytes)) = input.split_first() else { return String::new() };
    let name = if which % 2 == 0 { "ids.npy" } else { "ids.u64bin" };
    with_file(name, bytes, |path| {
        let all = read(path).map(|ids| assert!(ids.len() * 8 <= bytes.len()));
        let first = read_first(path, Some(3)).map(|ids| assert!(ids.len() <= 3));
        format!("{all:?} {first:?}")
    })
}
