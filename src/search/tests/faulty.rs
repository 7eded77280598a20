//! Many queries on a disk of whose reads one in a hundred fails and one in a hundred lies.
//!
//! `RABITQ_SSD_FAULTY_QUERIES=100000 cargo test --lib failing_and_lying -- --nocapture` is the long
//! run.

#![allow(clippy::print_stderr)]

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use pageio::{Fault, Faults, PageFile};

use super::{DIM, built};
use crate::SearchError;
use crate::config::{Backend, SearchOptions};
use crate::search::{SearchResult, Workers, search};
use crate::store::parts::Parts;

thread_local! {
    /// Reads of this thread that were made to fail or lie.
    static STRUCK: Cell<u64> = const { Cell::new(0) };
}

const THREADS: u64 = 4;
/// Different queries, asked over and over.
const QUERIES: usize = 64;

/// A disk with every fault that an answer must survive, and those that must fail it.
fn faulty(file: PageFile) -> PageFile {
    let asked = AtomicU64::new(0);
    file.with_faults(Faults::new(move |_| {
        let mut h = asked.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        h = (h ^ (h >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40;
        let bad = |fault| {
            STRUCK.set(STRUCK.get() + 1);
            Some(fault)
        };
        match h % 1000 {
            0..10 => bad(Fault::Fail),
            10..20 => bad(Fault::Corrupt),
            20..30 => Some(Fault::Short),
            30..40 => Some(Fault::Interrupt),
            40..50 => Some(Fault::Delay(3)),
            50..60 => Some(Fault::Reorder),
            _ => None,
        }
    }))
}

/// Resident bytes of this process, where the system tells.
fn resident() -> Option<i64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(statm.split(' ').nth(1)?.parse::<i64>().ok()? * 4096)
}

/// Failed, answered.
type Counts = (u64, u64);

/// Asks `count` queries: each fails exactly if one of its reads was struck, and is otherwise
/// answered as on a good disk, to the last bit.
fn ask(
    parts: &Parts,
    workers: &Workers,
    queries: &[f32],
    o: &SearchOptions,
    expected: &[SearchResult],
    count: u64,
) -> Counts {
    let (mut failed, mut answered) = (0, 0);
    for i in (0..count as usize).map(|i| i % QUERIES) {
        let before = STRUCK.get();
        let result = search(parts, workers, &queries[i * DIM..(i + 1) * DIM], o);
        let struck = STRUCK.get() > before;
        match result {
            Ok(found) => {
                assert!(!struck, "query {i} had a bad read and was answered");
                assert_eq!(found.ids, expected[i].ids, "query {i}");
                assert_eq!(found.scores, expected[i].scores, "query {i}");
                answered += 1;
            }
            Err(error) => {
                assert!(struck, "query {i} had no bad read: {error}");
                let known = matches!(error, SearchError::Read(_) | SearchError::Corrupt { .. });
                assert!(known, "{error:?}");
                let said = error.to_string();
                assert!(said.contains("records.bin: page"), "{said}");
                failed += 1;
            }
        }
    }
    (failed, answered)
}

#[test]
fn queries_on_a_failing_and_lying_disk_are_right_or_fail() {
    let total: u64 =
        std::env::var("RABITQ_SSD_FAULTY_QUERIES").map_or(4000, |count| count.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let (mut parts, rows) = built(dir.path());
    let records = dir.path().join("index/records.bin");
    let o = SearchOptions { nprobe: 3, deterministic: true, ..SearchOptions::default() };
    for backend in [Backend::Auto, Backend::Aio, Backend::Pread] {
        let options = pageio::OpenOptions { backend, ..pageio::OpenOptions::default() };
        let Ok(file) = PageFile::open(&records, &options) else { continue };
        parts.records.file = Arc::new(file);
        let good = |query| search(&parts, &Workers::default(), query, &o).unwrap();
        let expected: Vec<SearchResult> = rows.chunks(DIM).take(QUERIES).map(good).collect();

        parts.records.file = Arc::new(faulty(PageFile::open(&records, &options).unwrap()));
        let workers = Workers::default();
        let run = |count: u64| -> Counts {
            let one = || ask(&parts, &workers, &rows, &o, &expected, count / THREADS);
            thread::scope(|scope| {
                let all: Vec<_> = (0..THREADS).map(|_| scope.spawn(one)).collect();
                let counts = all.into_iter().map(|thread| thread.join().unwrap());
                counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
            })
        };
        let warm = run(total / 10);
        let before = resident();
        let (failed, answered) = run(total);
        let grown = resident().zip(before).map_or(0, |(now, before)| now - before);
        assert_eq!(workers.in_flight(), 0, "{backend}");
        assert!(failed > 0 && answered > 0 && warm.0 + warm.1 > 0, "{backend}");
        eprintln!(
            "{backend}: {answered} answered as on a good disk, {failed} failed, \
             {grown} bytes more resident memory"
        );
        // Other tests of this program allocate as well; the long run is made alone.
        assert!(total < 50_000 || grown < 4 << 20, "{backend}: {grown} bytes more");
    }
}
