//! A fingerprint knows its base again, and says in words what changed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use dataset::{Base, Fingerprint};

const ROWS: u32 = 100_000;

/// A `.u8bin` file of [`ROWS`] rows x 8, modified at a time without fraction.
fn write(path: &Path, value: u8) {
    let mut bytes = [ROWS.to_le_bytes(), 8u32.to_le_bytes()].concat();
    bytes.resize(8 + ROWS as usize * 8, value);
    fs::write(path, bytes).unwrap();
    set_time(path, 1_700_000_000);
}

fn set_time(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// Write one byte without a trace in the time.
fn poke(path: &Path, at: usize, value: u8) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] = value;
    fs::write(path, bytes).unwrap();
    set_time(path, 1_700_000_000);
}

fn see(paths: &[PathBuf]) -> Fingerprint {
    Base::open(paths).unwrap().fingerprint().unwrap()
}

/// Two files, and what a fingerprint of them became in a file of its own.
fn two() -> (tempfile::TempDir, [PathBuf; 2], Fingerprint) {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.u8bin", "b.u8bin"].map(|name| folder.path().join(name));
    write(&paths[0], 1);
    write(&paths[1], 2);
    let text = serde_json::to_string(&see(&paths)).unwrap();
    (folder, paths, serde_json::from_str(&text).unwrap())
}

#[test]
fn the_same_files_are_the_same_base_also_when_they_moved() {
    let (folder, paths, was) = two();
    assert_eq!(was.changes(&see(&paths)), Vec::<String>::new());
    let moved = folder.path().join("elsewhere.u8bin");
    fs::rename(&paths[0], &moved).unwrap();
    assert_eq!(was.changes(&see(&[moved, paths[1].clone()])), Vec::<String>::new());
}

#[test]
fn another_length_is_told_with_both() {
    let (_folder, paths, was) = two();
    let mut bytes = (ROWS - 1).to_le_bytes().to_vec();
    bytes.extend(&fs::read(&paths[1]).unwrap()[4..8 * ROWS as usize]);
    fs::write(&paths[1], bytes).unwrap();
    let expected = format!("{}: was 800,008 bytes, is 800,000", paths[1].display());
    assert_eq!(was.changes(&see(&paths)), [expected]);
}

#[test]
fn other_content_is_found_at_both_ends_whatever_the_time_says() {
    for at in [8, 8 + 8 * ROWS as usize - 1] {
        let (_folder, paths, was) = two();
        poke(&paths[0], at, 77);
        let changes = was.changes(&see(&paths));
        assert_eq!(changes.len(), 1);
        assert!(changes[0].starts_with(&format!("{}: content differs", paths[0].display())));
    }
}

#[test]
fn a_later_time_is_a_change_and_told_as_a_date() {
    let (_folder, paths, was) = two();
    set_time(&paths[1], 1_709_251_199);
    let expected = format!(
        "{}: changed since (modified at 2024-02-29 23:59:59 UTC, before at 2023-11-14 22:13:20 UTC)",
        paths[1].display()
    );
    assert_eq!(was.changes(&see(&paths)), [expected]);
}

#[test]
fn other_files_and_another_order_are_changes() {
    let (_folder, paths, was) = two();
    let alone = was.changes(&see(&paths[..1]));
    assert!(alone[0].starts_with("the base had 2 files, has 1: "), "{alone:?}");
    let [a, b] = paths;
    let swapped = was.changes(&see(&[b.clone(), a.clone()]));
    assert_eq!(swapped.len(), 2);
    assert!(swapped[0].starts_with(&format!("{} (was {}): content", b.display(), a.display())));
}

#[test]
fn the_same_bytes_read_as_another_type_are_another_base() {
    let (folder, paths, _) = two();
    let was = see(&paths[..1]);
    let signed = folder.path().join("a.i8bin");
    fs::rename(&paths[0], &signed).unwrap();
    let expected = "the base was 100,000 rows x 8 u8, is 100,000 rows x 8 i8";
    assert_eq!(was.changes(&see(&[signed])), [expected]);
}
