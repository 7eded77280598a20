//! A manifest written by somebody with bad intentions: its uuid is right, its content is not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, unreachable_pub)]
mod support;

use rabitq_ssd::{
    BuildOptions, CoarseKind, Index, OpenOptions, SearchError, SearchOptions, Silent, verify,
};
use support::Fixture;

/// The manifest with the uuid its other content gives: FNV-1a of 128 bits over the compact JSON
/// with an empty uuid.
fn sealed(manifest: &str) -> String {
    let (before, rest) = manifest.split_once("\"uuid\": \"").unwrap();
    let (_, after) = rest.split_once('"').unwrap();
    let blank: String = format!("{before}\"uuid\":\"\"{}", &after);
    let compact = blank.bytes().filter(|byte| !byte.is_ascii_whitespace());
    let hash = compact.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b)
    });
    format!("{before}\"uuid\": \"{hash:032x}\"{after}")
}

/// Every number of a text, as a range of its bytes.
fn numbers(text: &str) -> Vec<std::ops::Range<usize>> {
    let lines = text.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    });
    lines
        .filter_map(|(start, line)| {
            let value = line.find("\": ")? + 3;
            let digits = line[value..].bytes().take_while(u8::is_ascii_digit).count();
            (digits > 0).then(|| start + value..start + value + digits)
        })
        .collect()
}

#[test]
fn absurd_numbers_under_a_right_uuid_are_refused_or_do_no_harm() {
    let f = Fixture::clustered(300, 64, 3);
    for coarse in [CoarseKind::Irq, CoarseKind::Hnsw] {
        f.index(&BuildOptions { nlist: Some(10), coarse, overwrite: true, ..Default::default() });
        let path = f.path("index").join("manifest.json");
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(sealed(&text), text, "the test computes the uuid as the format says");
        let numbers = numbers(&text);
        assert!(numbers.len() >= 14, "{numbers:?}");
        let mut refused = 0;
        for number in numbers {
            for absurd in [
                "0",
                "1",
                "63",
                "2147483648",
                "4294967295",
                "9223372036854775808",
                "18446744073709551615",
            ] {
                let mut changed = text.clone();
                changed.replace_range(number.clone(), absurd);
                std::fs::write(&path, sealed(&changed)).unwrap();
                let ok = Index::open(&f.path("index"), &OpenOptions::default());
                refused += usize::from(ok.is_err());
                if let Ok(index) = ok {
                    let o = SearchOptions { k: 400, ..Default::default() };
                    match index.search(&f.rows[0], &o) {
                        Ok(found) => assert!(found.ids.len() <= 300),
                        // Another tag makes every page one of another build.
                        Err(e) => assert!(matches!(e, SearchError::Corrupt { .. }), "{e}"),
                    }
                }
                verify(&f.path("index"), &Silent).ok();
            }
        }
        assert!(refused >= 70, "{refused}");
    }
}

#[test]
fn a_manifest_lists_the_files_of_an_index_and_nothing_outside_it() {
    let f = Fixture::clustered(100, 8, 3);
    f.index(&BuildOptions::default());
    std::fs::write(f.path("secret"), b"x").unwrap();
    let path = f.path("index").join("manifest.json");
    let text = std::fs::read_to_string(&path).unwrap();
    for name in ["../secret", "/etc/passwd", "notes.txt"] {
        let entry =
            format!("\"files\": {{ \"{name}\": {{ \"bytes\": 1, \"crc32c\": \"00000000\" }},");
        std::fs::write(&path, sealed(&text.replacen("\"files\": {", &entry, 1))).unwrap();
        let opened = Index::open(&f.path("index"), &OpenOptions::default()).unwrap_err();
        let verified = verify(&f.path("index"), &Silent).unwrap_err();
        for error in [opened, verified] {
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_refused_without_waiting_for_it() {
    let f = Fixture::clustered(100, 8, 3);
    f.index(&BuildOptions::default());
    for name in ["codes.bin", "lists.bin", "records.bin"] {
        let path = f.path("index").join(name);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        // A pipe would keep whoever opens it waiting for a writer.
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = Index::open(&f.path("index"), &OpenOptions::default()).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        let report = verify(&f.path("index"), &Silent).unwrap();
        let bad: Vec<_> = report.files.iter().filter(|f| !f.ok).map(|f| &f.name).collect();
        assert_eq!(bad, [name]);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
    }
    support::open(&f.path("index"));
}
