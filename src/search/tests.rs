//! Searches on a disk that holds every page back, so that what is in flight is what was asked for,
//! on one that does not answer, and on one that fails and lies.

#![allow(clippy::unwrap_used)]

mod faulty;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dataset::{Base, Dtype, VectorWriter};
use pageio::{Fault, Faults, PageFile};

use crate::config::{Backend, BuildOptions, OpenOptions, Pipeline, RecordKind, SearchOptions};
use crate::progress::Silent;
use crate::search::{Cancel, EventKind, Trace, Workers, search, trace};
use crate::store::parts::Parts;
use crate::{Index, SearchError};

const ROWS: usize = 4000;
const DIM: usize = 256;

/// An index of four records a page, and its rows.
fn built(dir: &std::path::Path) -> (Parts, Vec<f32>) {
    let rows: Vec<f32> = (0..ROWS * DIM)
        .map(|i| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_shr(40) as f32)
        .collect();
    let mut writer = VectorWriter::create(&dir.join("base.fbin"), DIM, Dtype::F32).unwrap();
    writer.write_f32(&rows).unwrap();
    writer.finish().unwrap();
    let base = Base::open(&[dir.join("base.fbin")]).unwrap();
    let options =
        BuildOptions { nlist: Some(8), record: RecordKind::F32, ..BuildOptions::default() };
    Index::build(&base, &dir.join("index"), &options, &Silent).unwrap();
    let mut parts = Parts::open(&dir.join("index"), &OpenOptions::default()).unwrap();
    let bytes = fs_err::read(dir.join("index/records.bin")).unwrap();
    let file = PageFile::from_memory(bytes).unwrap();
    let held = Faults::new(|_| Some(Fault::Delay(5000)));
    parts.records.file = Arc::new(file.with_faults(held));
    (parts, rows)
}

#[test]
fn a_disk_that_keeps_silent_fails_the_query_and_the_next_one_works() {
    let dir = tempfile::tempdir().unwrap();
    let (mut parts, rows) = built(dir.path());
    let records = dir.path().join("index/records.bin");
    for backend in [Backend::IoUring, Backend::Aio, Backend::Pread, Backend::Memory] {
        let timeout = Some(Duration::from_secs(1));
        let options = pageio::OpenOptions { backend, timeout, ..pageio::OpenOptions::default() };
        let Ok(file) = PageFile::open(&records, &options) else { continue };
        let silent = Arc::new(AtomicBool::new(false));
        let now = Arc::clone(&silent);
        let faults = Faults::new(move |_| now.load(Ordering::Relaxed).then_some(Fault::Silence));
        parts.records.file = Arc::new(file.with_faults(faults));
        let (workers, options) = (Workers::default(), SearchOptions::default());
        let ask = || search(&parts, &workers, &rows[..DIM], &options);
        assert_eq!(ask().unwrap().ids[0], 0, "{backend}");

        silent.store(true, Ordering::Relaxed);
        let error = ask().unwrap_err().to_string();
        assert!(error.contains("records.bin: page") && error.contains("for 1 s"), "{error}");
        assert!(error.contains("--io-timeout"), "{error}");

        silent.store(false, Ordering::Relaxed);
        assert_eq!(ask().unwrap().ids[0], 0, "{backend}");
    }
}

fn most_in_flight(trace: &Trace) -> usize {
    let (mut now, mut most) = (0usize, 0);
    for event in &trace.events {
        match event.kind {
            EventKind::Submit => now += 1,
            EventKind::Complete => now -= 1,
            EventKind::Phase(_) => {}
        }
        most = most.max(now);
    }
    most
}

#[test]
fn overlapped_puts_no_bound_on_reads_in_flight_and_others_keep_theirs() {
    let dir = tempfile::tempdir().unwrap();
    let (parts, rows) = built(dir.path());
    let workers = Workers::default();
    let pages = ROWS / 4;
    // All lists of a small index: every page is read, whatever comes back first. The id of one
    // result is one read; those of several would be in flight together.
    let search = |pipeline, inflight| {
        let default = SearchOptions { k: 1, nprobe: 8, ..SearchOptions::default() };
        let options = SearchOptions { pipeline, inflight, ..default };
        trace(&parts, &workers, &rows[..DIM], &options)
    };
    for (pipeline, inflight, least, most) in [
        (Pipeline::Scheduled, None, 16, 16),
        (Pipeline::Overlapped, None, pages, pages + 16),
        (Pipeline::Full, Some(700), 700, 700),
        (Pipeline::Fifo, Some(64), 64, 64),
        (Pipeline::Coalesced, Some(700), 1, 1),
    ] {
        let (result, trace) = search(pipeline, inflight).unwrap();
        assert_eq!(result.ids[0], 0, "{pipeline}");
        assert_eq!(result.scores[0], 0.0, "{pipeline}");
        let found = most_in_flight(&trace);
        assert!((least..=most).contains(&found), "{pipeline}: {found} in flight");
    }
    assert!(search(Pipeline::Full, Some(16_384)).is_ok());
    let error = search(Pipeline::Full, Some(16_385));
    assert!(matches!(error, Err(SearchError::Option { option: "--inflight", .. })));
}

/// The index in memory, on a disk that keeps silent for ever about what it was asked in `silent`
/// times, and gives up after `watchdog`.
fn silent_disk(
    parts: &mut Parts,
    records: &std::path::Path,
    watchdog: Duration,
) -> Arc<AtomicBool> {
    let options = pageio::OpenOptions {
        backend: Backend::Pread,
        timeout: Some(watchdog),
        ..pageio::OpenOptions::default()
    };
    let silent = Arc::new(AtomicBool::new(true));
    let now = Arc::clone(&silent);
    let faults = Faults::new(move |_| now.load(Ordering::Relaxed).then_some(Fault::Silence));
    parts.records.file = Arc::new(PageFile::open(records, &options).unwrap().with_faults(faults));
    silent
}

#[test]
fn a_stopped_query_says_so_at_once_and_its_reads_are_released() {
    let dir = tempfile::tempdir().unwrap();
    let (mut parts, rows) = built(dir.path());
    let records = dir.path().join("index/records.bin");
    let silent = silent_disk(&mut parts, &records, Duration::from_secs(1));
    let workers = Workers::default();
    let timeout = Duration::from_millis(30);
    let hurried = SearchOptions { timeout: Some(timeout), ..SearchOptions::default() };
    let error = search(&parts, &workers, &rows[..DIM], &hurried).unwrap_err();
    assert!(matches!(error, SearchError::TimedOut { timeout: t } if t == timeout), "{error}");
    assert!(error.to_string().contains("within 30 ms"), "{error}");

    let cancel = Cancel::default();
    let stoppable = SearchOptions { cancel: Some(cancel.clone()), ..SearchOptions::default() };
    let error = thread::scope(|scope| {
        let searching = scope.spawn(|| search(&parts, &workers, &rows[..DIM], &stoppable));
        thread::sleep(Duration::from_millis(50));
        cancel.cancel();
        searching.join().unwrap().unwrap_err()
    });
    assert!(matches!(error, SearchError::Cancelled), "{error}");

    // Both left reads behind, which the disk never ends: the watchdog does, beside other queries.
    assert!(workers.in_flight() > 0);
    silent.store(false, Ordering::Relaxed);
    let unhurried = SearchOptions::default();
    let patience = Instant::now() + Duration::from_secs(60);
    while workers.in_flight() > 0 && Instant::now() < patience {
        assert_eq!(search(&parts, &workers, &rows[..DIM], &unhurried).unwrap().ids[0], 0);
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(workers.in_flight(), 0);
    assert!(search(&parts, &workers, &rows[..DIM], &stoppable).is_err(), "it stays cancelled");
}

#[test]
fn the_reads_of_stopped_queries_come_back_and_their_workers_are_used_again() {
    let dir = tempfile::tempdir().unwrap();
    // Every page is held back for 5,000 polls.
    let (parts, rows) = built(dir.path());
    let workers = Workers::default();
    let hurried =
        SearchOptions { timeout: Some(Duration::from_micros(1)), ..SearchOptions::default() };
    for query in rows.chunks(DIM).take(200) {
        let error = search(&parts, &workers, query, &hurried).unwrap_err();
        assert!(matches!(error, SearchError::TimedOut { .. }), "{error}");
    }
    for _ in 0..10_000 {
        workers.settle();
    }
    assert_eq!(workers.in_flight(), 0);
    assert_eq!(
        search(&parts, &workers, &rows[..DIM], &SearchOptions::default()).unwrap().ids[0],
        0
    );
}
