//! manifest.json, its uuid made right: one byte which index it goes with, then the text.

use super::seal::sealed;
use crate::scratch::with_index;

/// Opens, searches and verifies an index with this manifest.
pub fn run(input: &[u8]) -> String {
    let Some((&which, text)) = input.split_first() else { return String::new() };
    with_index(which.wrapping_sub(b'0'), |index| {
        index.write("manifest.json", &sealed(text));
        index.use_it()
    })
}

/// The manifests of the indexes as they were built: their checksums are not the same on every
/// machine, so that no file of the corpus can hold them.
pub fn good() -> Vec<(String, Vec<u8>)> {
    let of = |which: u8| {
        with_index(which, |index| {
            let text = index.bytes("manifest.json").unwrap_or_default();
            (format!("good-{which}"), [&[b'0' + which], text].concat())
        })
    };
    (0..6).map(of).collect()
}
