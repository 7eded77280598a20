//! Records and ids in pages, the checksum of every page made right: which index, which file, edits.

use serde_json::Value;

use super::edits::edited;
use super::seal::with_file;
use crate::scratch::{Intact, with_index};

const FILES: [&str; 3] = ["records.bin", "ids.bin", "zeros.bin"];
const PAGE: usize = 4096;

/// Opens, searches and verifies an index with these pages.
pub fn run(input: &[u8]) -> String {
    let [which, file, script @ ..] = input else { return String::new() };
    let name = FILES[usize::from(*file) % FILES.len()];
    with_index(*which, |index| {
        let Some(bytes) = index.bytes(name) else { return String::new() };
        let mut bytes = edited(bytes, script);
        checked(index, name, &mut bytes);
        index.write(name, &bytes);
        index.use_it()
    })
}

/// Makes the checksums of all units right: at their ends, or in checks.bin.
fn checked(index: &Intact, name: &str, bytes: &mut [u8]) {
    let Some(manifest) = index.bytes("manifest.json") else { return };
    let parsed: Value = serde_json::from_slice(manifest).unwrap_or_default();
    let tag = parsed["tag"].as_u64().unwrap_or_default() as u32;
    // The only index whose records take several pages has 1100 floats in each.
    let pages = if name == "records.bin" && parsed["dim"] == 1100 { 2 } else { 1 };
    let beside = name == "records.bin" && index.bytes("checks.bin").is_some();
    let mut table = Vec::new();
    for (unit, bytes) in bytes.chunks_exact_mut(pages * PAGE).enumerate() {
        let body = bytes.len() - if beside { 0 } else { 4 };
        let mut head = tag.to_le_bytes().to_vec();
        head.extend((unit as u64).to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&head), &bytes[..body]).to_le_bytes();
        table.extend(crc);
        bytes[body..].iter_mut().zip(crc).for_each(|(old, new)| *old = new);
    }
    if beside {
        index.write("checks.bin", &table);
        index.write("manifest.json", &with_file(manifest, "checks.bin", &table));
    }
}
