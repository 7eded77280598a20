//! docs/UNSAFE.md lists every file with unsafe code, and how many blocks it has.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_unsafe_block_is_in_the_list() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in root.join("crates").read_dir().unwrap() {
        sources(&folder.unwrap().path().join("src"), &mut files);
    }
    sources(&root.join("src"), &mut files);
    let mut found = BTreeMap::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let blocks = text.matches("unsafe {").count() + text.matches("unsafe impl").count();
        if blocks > 0 {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            found.insert(name, blocks);
        }
    }
    let list = std::fs::read_to_string(root.join("docs/UNSAFE.md")).unwrap();
    let rows = list.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split('|');
        let name = cells.next()?.trim().trim_end_matches('`').to_owned();
        Some((name, cells.next()?.trim().parse().ok()?))
    });
    assert_eq!(rows.collect::<BTreeMap<String, usize>>(), found);
}
