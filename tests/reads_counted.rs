//! The bytes a search says it read are the bytes the kernel fetched for this process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]
#![cfg(target_os = "linux")]

#[allow(dead_code, unreachable_pub)]
mod support;

use rabitq_ssd::dataset::Dtype;
use rabitq_ssd::{BuildOptions, RecordKind, SearchOptions};
use support::{Fixture, clustered};

/// Bytes this process has had fetched from storage.
fn fetched() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    io.lines().find_map(|l| l.strip_prefix("read_bytes: ")).unwrap().parse().unwrap()
}

#[test]
fn bytes_read_are_what_the_kernel_counts() {
    // Records of one page, of two pages, and ids in a file of their own.
    for (dim, record) in [(64, RecordKind::Split), (128, RecordKind::F32), (1536, RecordKind::F32)]
    {
        let f = Fixture::of(clustered(3000, dim, 2), Dtype::F32);
        let index = f.index(&BuildOptions { record, nlist: Some(30), ..Default::default() });
        if !index.info().direct {
            eprintln!("skipped: {:?}", index.info().io_notes);
            return;
        }
        let o = SearchOptions { nprobe: 10, ..Default::default() };
        index.search(&f.rows[0], &o).unwrap();
        let before = fetched();
        let mut pages = 0;
        for q in f.rows.iter().step_by(100) {
            let stats = index.search(q, &o).unwrap().stats;
            assert_eq!(stats.bytes, stats.pages * 4096);
            pages += stats.pages;
        }
        assert_eq!(fetched() - before, pages * 4096, "{record} at {dim} dims");
    }
}
