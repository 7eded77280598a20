//! Files that an open index holds in RAM, their checksums made right: which index, which file, edits.

use super::edits::edited;
use super::seal::with_file;
use crate::scratch::with_index;

const FILES: [&str; 7] = [
    "rotation.bin",
    "lists.bin",
    "centroids.bin",
    "coarse.bin",
    "codes.bin",
    "scales.bin",
    "checks.bin",
];

/// Opens, searches and verifies an index with this file.
pub fn run(input: &[u8]) -> String {
    let [which, file, script @ ..] = input else { return String::new() };
    let name = FILES[usize::from(*file) % FILES.len()];
    with_index(*which, |index| {
        let (Some(bytes), Some(manifest)) = (index.bytes(name), index.bytes("manifest.json"))
        else {
            return String::new();
        };
        let bytes = edited(bytes, script);
        index.write(name, &bytes);
        index.write("manifest.json", &with_file(manifest, name, &bytes));
        index.use_it()
    })
}
