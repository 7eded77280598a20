//! An index directory opens whole or not at all, and says what is wrong.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, unreachable_pub)]
mod support;

use std::collections::BTreeMap;
use std::path::Path;

use rabitq_ssd::{
    BuildError, BuildOptions, Index, OnInvalid, OpenError, OpenOptions, Prefix, RecordKind,
    SearchError, SearchOptions, Silent, verify,
};
use support::{Fixture, clustered, open};

/// Files whose pages are checked when they are read.
const PAGED: [&str; 2] = ["records.bin", "ids.bin"];

fn build(f: &Fixture, name: &str, o: &BuildOptions) -> Result<(), BuildError> {
    Index::build(&f.base(), &f.path(name), o, &Silent).map(|_| ())
}

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap())
        .map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap()))
        .filter(|(name, _)| name != "build.json")
        .collect()
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let f = Fixture::clustered(5000, 64, 3);
    for threads in [1, 2, 4] {
        let o = BuildOptions { threads, nlist: Some(40), ..Default::default() };
        build(&f, &format!("t{threads}"), &o).unwrap();
    }
    let one = files(&f.path("t1"));
    assert!(one.len() >= 6);
    assert!(one == files(&f.path("t2")) && one == files(&f.path("t4")));
    build(&f, "other", &BuildOptions { seed: 7, nlist: Some(40), ..Default::default() }).unwrap();
    assert!(one != files(&f.path("other")));
}

#[test]
fn every_truncation_is_refused_by_name() {
    let f = Fixture::clustered(2000, 64, 3);
    build(&f, "index", &BuildOptions { nlist: Some(20), ..Default::default() }).unwrap();
    for (name, bytes) in files(&f.path("index")) {
        for keep in [0, bytes.len() / 2, bytes.len() - 1] {
            let path = f.path("index").join(&name);
            std::fs::write(&path, &bytes[..keep]).unwrap();
            let error = Index::open(&f.path("index"), &OpenOptions::default()).unwrap_err();
            assert!(error.to_string().contains(&name), "{name} cut to {keep}: {error}");
            std::fs::write(&path, &bytes).unwrap();
        }
    }
    open(&f.path("index"));
}

#[test]
fn a_flipped_bit_is_found_at_open_or_at_the_read() {
    let f = Fixture::clustered(2000, 64, 3);
    build(&f, "index", &BuildOptions { nlist: Some(20), ..Default::default() }).unwrap();
    let everything =
        SearchOptions { k: 2000, nprobe: 20, epsilon: 9.0, alpha: 1.0, ..Default::default() };
    for (name, bytes) in files(&f.path("index")) {
        for at in [0, bytes.len() / 3, bytes.len() - 1] {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            let path = f.path("index").join(&name);
            std::fs::write(&path, &changed).unwrap();
            match Index::open(&f.path("index"), &OpenOptions::default()) {
                Err(e) => assert!(!PAGED.contains(&name.as_str()), "{name}: {e}"),
                Ok(index) => {
                    assert!(PAGED.contains(&name.as_str()), "{name}");
                    let error = index.search(&f.rows[0], &everything).unwrap_err();
                    let page = at as u64 / 4096;
                    assert!(
                        matches!(&error, SearchError::Corrupt { page: p, .. } if *p == page),
                        "{error}"
                    );
                }
            }
            if name != "manifest.json" {
                let report = verify(&f.path("index"), &Silent).unwrap();
                let bad: Vec<_> = report.files.iter().filter(|f| !f.ok).collect();
                assert_eq!(bad.len(), 1);
                assert_eq!(bad[0].name, name);
                if PAGED.contains(&name.as_str()) {
                    assert_eq!(bad[0].bad_pages, [at as u64 / 4096]);
                }
            }
            std::fs::write(&path, &bytes).unwrap();
        }
    }
    assert!(verify(&f.path("index"), &Silent).unwrap().ok());
}

#[test]
fn a_failed_query_leaves_the_index_usable() {
    let f = Fixture::clustered(2000, 64, 3);
    build(&f, "index", &BuildOptions { nlist: Some(20), ..Default::default() }).unwrap();
    let records = f.path("index").join("records.bin");
    let bytes = std::fs::read(&records).unwrap();
    let index = open(&f.path("index"));
    let o = SearchOptions { nprobe: 20, alpha: 1.0, ..Default::default() };
    let before = index.search(&f.rows[5], &o).unwrap();
    let damaged: Vec<u8> = bytes.iter().map(|b| b ^ 1).collect();
    overwrite(&records, &damaged);
    assert!(matches!(index.search(&f.rows[5], &o), Err(SearchError::Corrupt { .. })));
    overwrite(&records, &bytes);
    let after = index.search(&f.rows[5], &o).unwrap();
    assert_eq!((after.ids, after.scores), (before.ids, before.scores));
}

/// Changes a file in place, so that whoever has it open sees the change.
fn overwrite(path: &Path, bytes: &[u8]) {
    use std::io::Write;
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn parts_of_two_builds_do_not_go_together() {
    let a = Fixture::clustered(1500, 64, 3);
    let b = Fixture::clustered(1500, 64, 4);
    build(&a, "index", &BuildOptions::default()).unwrap();
    build(&b, "index", &BuildOptions::default()).unwrap();
    for name in ["codes.bin", "centroids.bin", "records.bin"] {
        let path = a.path("index").join(name);
        let own = std::fs::read(&path).unwrap();
        std::fs::copy(b.path("index").join(name), &path).unwrap();
        let refused = match Index::open(&a.path("index"), &OpenOptions::default()) {
            Err(e) => e.to_string().contains(name),
            Ok(index) => index.search(&a.rows[0], &SearchOptions::default()).is_err(),
        };
        assert!(refused, "{name}");
        std::fs::write(&path, own).unwrap();
    }
}

#[test]
fn another_format_is_named_with_both_versions() {
    let f = Fixture::clustered(100, 8, 3);
    build(&f, "index", &BuildOptions::default()).unwrap();
    let path = f.path("index").join("manifest.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("\"format\": 1", "\"format\": 9", 1)).unwrap();
    let error = Index::open(&f.path("index"), &OpenOptions::default()).unwrap_err();
    assert!(matches!(error, OpenError::Format { found: 9, expected: 1, .. }), "{error}");
    std::fs::write(&path, text.replacen("\"nlist\": 1", "\"nlist\": 2", 1)).unwrap();
    let error = Index::open(&f.path("index"), &OpenOptions::default()).unwrap_err();
    assert!(error.to_string().contains("altered"), "{error}");
}

#[test]
fn an_existing_target_is_kept_unless_overwritten_and_other_folders_always() {
    let f = Fixture::clustered(300, 8, 3);
    let o = BuildOptions::default();
    build(&f, "index", &o).unwrap();
    let first = files(&f.path("index"));
    assert!(matches!(build(&f, "index", &o), Err(BuildError::Exists(_))));
    assert_eq!(files(&f.path("index")), first);
    let o = BuildOptions { seed: 5, overwrite: true, ..o };
    build(&f, "index", &o).unwrap();
    assert_ne!(files(&f.path("index")), first);
    std::fs::create_dir(f.path("notes")).unwrap();
    std::fs::write(f.path("notes").join("mine.txt"), "keep").unwrap();
    assert!(build(&f, "notes", &o).is_err());
    assert_eq!(std::fs::read_to_string(f.path("notes").join("mine.txt")).unwrap(), "keep");
    let left: Vec<_> = std::fs::read_dir(f.dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.'))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn invalid_rows_are_named_or_left_out_without_changing_other_ids() {
    let mut rows = clustered(1000, 32, 9);
    for i in 0..24 {
        rows[40 * i + 3][i % 32] = f32::NAN;
    }
    let f = Fixture::of(rows, rabitq_ssd::dataset::Dtype::F32);
    let o = BuildOptions { nlist: Some(1), ..Default::default() };
    match build(&f, "index", &o) {
        Err(BuildError::InvalidRows { row: 3, count: 24, n: 1000, .. }) => {}
        other => panic!("{other:?}"),
    }
    assert!(!f.path("index").exists());
    let o = BuildOptions { on_invalid: OnInvalid::Skip, ..o };
    let index = f.index(&o);
    assert_eq!((index.info().n, index.info().skipped_rows), (976, 24));
    let o = SearchOptions { k: 1000, epsilon: 4.0, alpha: 1.0, ..Default::default() };
    let found = index.search(&f.rows[0], &o).unwrap();
    assert_eq!(found.ids.len(), 976);
    assert!(found.ids.iter().all(|id| !f.rows[*id as usize].iter().any(|v| v.is_nan())));
    assert_eq!(found.ids[0], 0);
}

#[test]
fn external_ids_come_back_instead_of_row_numbers() {
    let f = Fixture::clustered(500, 16, 2);
    let ids: Vec<u64> = (0..500).map(|i| u64::MAX - i * 3).collect();
    for record in [RecordKind::Split, RecordKind::F32] {
        let o =
            BuildOptions { ids: Some(ids.clone()), record, overwrite: true, ..Default::default() };
        let index = f.index(&o);
        let o = SearchOptions { k: 1, epsilon: 4.0, ..Default::default() };
        assert_eq!(index.search(&f.rows[33], &o).unwrap().ids, [ids[33]]);
    }
}

#[test]
fn a_memory_budget_is_met_to_the_byte_and_never_exceeded() {
    use rabitq_ssd::BuildPlan;
    let f = Fixture::clustered(3000, 256, 2);
    let plan = |prefix| {
        BuildPlan::new(&f.base(), &BuildOptions { prefix, nlist: Some(16), ..Default::default() })
    };
    let half = plan(Prefix::Dims(128)).unwrap();
    let fits = plan(Prefix::Memory(half.resident_bytes)).unwrap();
    assert_eq!((fits.prefix_dims, fits.resident_bytes), (128, half.resident_bytes));
    assert_eq!(plan(Prefix::Memory(half.resident_bytes - 1)).unwrap().prefix_dims, 64);
    let least = plan(Prefix::Dims(64)).unwrap().resident_bytes;
    match plan(Prefix::Memory(least - 1)) {
        Err(BuildError::Budget { least: named, .. }) => assert_eq!(named, least),
        other => panic!("{other:?}"),
    }
    for coarse in ["flat", "irq", "hnsw"] {
        let o = BuildOptions {
            prefix: Prefix::Dims(128),
            nlist: Some(16),
            coarse: coarse.parse().unwrap(),
            overwrite: true,
            ..Default::default()
        };
        let planned = BuildPlan::new(&f.base(), &o).unwrap().resident_bytes;
        assert_eq!(f.index(&o).info().resident_bytes, planned, "{coarse}");
    }
}
