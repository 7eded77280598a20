//! The file of values that `bench` crosses.

use crate::cli::sweep::Sweep;
use crate::scratch::with_file;

/// Reads the file and crosses its values.
pub fn run(input: &[u8]) -> String {
    with_file("sweep.toml", input, |path| match Sweep::read(path).and_then(Sweep::bounded) {
        Ok(sweep) => format!("crossed {}", sweep.settings().is_empty()),
        Err(error) => format!("{error:#}"),
    })
}
