//! Searches on a disk that holds every page back, so that what is in flight is what was asked for,
//! and on one that does not answer.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dataset::{Base, Dtype, VectorWriter};
use pageio::{Fault, Faults, PageFile};

use crate::config::{Backend, BuildOptions, OpenOptions, Pipeline, RecordKind, SearchOptions};
use crate::progress::Silent;
use crate::search::{EventKind, Trace, Workers, search, trace};
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
    // All lists of a small index: every page is read, whatever comes back first.
    let search = |pipeline, inflight| {
        let options = SearchOptions { nprobe: 8, pipeline, inflight, ..SearchOptions::default() };
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
