//! Inputs: `corpus/TARGET/NAME`, one file each, and the manifests of the small indexes.

use std::io;
use std::path::{Path, PathBuf};

use crate::targets;

/// The folder of a target's inputs.
pub fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// The inputs of a target with their names, sorted.
pub fn read(target: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut inputs = Vec::new();
    for entry in fs_err::read_dir(folder(target))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        inputs.push((name, fs_err::read(&path)?));
    }
    if target == "manifest" {
        inputs.extend(targets::manifest::good());
    }
    inputs.sort();
    Ok(inputs)
}
