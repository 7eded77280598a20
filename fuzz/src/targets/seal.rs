//! Manifests whose checksums are right, so that what stands behind a checksum is reached.

use serde_json::{Value, json};

/// The manifest with the uuid that its other content gives: FNV-1a of 128 bits over the compact
/// JSON with an empty uuid. As it is, if it has no uuid.
pub(super) fn sealed(manifest: &[u8]) -> Vec<u8> {
    const KEY: &[u8] = b"\"uuid\": \"";
    let found = manifest.windows(KEY.len()).position(|window| window == KEY);
    let Some(start) = found.map(|at| at + KEY.len()) else {
        return manifest.to_vec();
    };
    let Some(length) = manifest[start..].iter().position(|&byte| byte == b'"') else {
        return manifest.to_vec();
    };
    let (before, after) = (&manifest[..start], &manifest[start + length..]);
    let compact = before.iter().chain(after).filter(|byte| !byte.is_ascii_whitespace());
    let hash = compact.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, &byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b)
    });
    [before, format!("{hash:032x}").as_bytes(), after].concat()
}

/// The manifest with the size and checksum of `bytes` as those of the file `name`.
pub(super) fn with_file(manifest: &[u8], name: &str, bytes: &[u8]) -> Vec<u8> {
    // Replaced in the text: its order of keys is part of what the uuid covers.
    let Ok(text) = std::str::from_utf8(manifest) else { return manifest.to_vec() };
    let Ok(parsed) = serde_json::from_str::<Value>(text) else { return manifest.to_vec() };
    let Some(old) = parsed["files"].get(name) else { return manifest.to_vec() };
    let entry = |bytes: &Value, crc: &Value| {
        format!("\"{name}\": {{\n      \"bytes\": {bytes},\n      \"crc32c\": {crc}")
    };
    let new = (json!(bytes.len()), json!(format!("{:08x}", crc32c::crc32c(bytes))));
    let from = entry(&old["bytes"], &old["crc32c"]);
    assert!(text.contains(&from), "a manifest of another style: {text}");
    sealed(text.replacen(&from, &entry(&new.0, &new.1), 1).as_bytes())
}
