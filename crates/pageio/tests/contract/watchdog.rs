//! A device that does not answer becomes an error, and nothing hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pageio::{Fault, OpenOptions, PageFile, PageReader, ReadError};

use crate::faults::with_faults;
use crate::fixture::{Fixture, collect_all, name, page_bytes};

/// The fixture in every way, on a disk that keeps silent about pages from 4 on while `silent`.
/// A second is what each of them waits at least once, so they run side by side.
fn in_silent_ways(test: fn(&Arc<PageFile>, &AtomicBool)) {
    let fixture = Fixture::new(8);
    let timeout = Some(Duration::from_secs(1));
    let options = OpenOptions { slots: 8, timeout, ..OpenOptions::default() };
    let silence = |file| {
        let silent = Arc::new(AtomicBool::new(true));
        let now = Arc::clone(&silent);
        let choose =
            move |page| (page >= 4 && now.load(Ordering::Relaxed)).then_some(Fault::Silence);
        (with_faults(file, choose), silent)
    };
    thread::scope(|scope| {
        for (file, silent) in fixture.every_way_with(&options).into_iter().map(silence) {
            scope.spawn(move || test(&file, &silent));
        }
    });
}

fn submit(reader: &mut dyn PageReader, pages: std::ops::Range<u64>) {
    for page in pages {
        reader.submit(page, page, 1).unwrap();
    }
}

#[test]
fn a_wait_without_an_answer_ends_with_the_file_a_page_and_the_seconds() {
    in_silent_ways(|file, silent| {
        let mut reader = file.reader().unwrap();
        submit(reader.as_mut(), 2..7);
        let mut done = Vec::new();
        let error = loop {
            if let Err(error) = reader.wait(&mut done) {
                break error;
            }
        };
        let named = matches!(error, ReadError::NoAnswer { page: 4..7, reads: 3, seconds: 1.0, .. });
        assert!(named, "{}: {error:?}", name(file));
        let error = error.to_string();
        assert!(error.contains("pages.bin") && error.contains("for 1 s"), "{error}");

        // What came before is still there; nothing more is taken.
        assert_eq!(done.len(), 2, "{}", name(file));
        for completion in done {
            assert!(reader.bytes(completion.slot) == page_bytes(completion.tag));
            reader.release(completion.slot);
        }
        assert!(!reader.usable());
        assert_eq!(reader.in_flight(), 0);
        assert!(matches!(reader.submit(0, 0, 1), Err(ReadError::GivenUp { .. })));
        assert!(matches!(reader.wait(&mut Vec::new()), Err(ReadError::GivenUp { .. })));
        assert_eq!(reader.poll(&mut Vec::new()).unwrap(), 0);
        reader.flush().unwrap();
        reader.drain();

        silent.store(false, Ordering::Relaxed);
        let mut next = file.reader().unwrap();
        submit(next.as_mut(), 0..8);
        for completion in collect_all(next.as_mut()) {
            assert!(next.bytes(completion.slot) == page_bytes(completion.tag), "{}", name(file));
            next.release(completion.slot);
        }
        assert!(next.usable());
    });
}

#[test]
fn draining_and_dropping_a_reader_do_not_wait_for_a_dead_device() {
    in_silent_ways(|file, _| {
        let mut reader = file.reader().unwrap();
        submit(reader.as_mut(), 0..8);
        reader.flush().unwrap();
        reader.drain();
        assert_eq!(reader.in_flight(), 0, "{}", name(file));
        assert!(!reader.usable());

        let mut reader = file.reader().unwrap();
        submit(reader.as_mut(), 0..8);
        reader.flush().unwrap();
        drop(reader);
    });
}

#[test]
fn a_wait_with_a_limit_leaves_the_reads_going_and_counts_for_the_watchdog() {
    in_silent_ways(|file, silent| {
        let mut reader = file.reader().unwrap();
        let mut done = Vec::new();
        let short = Some(Duration::from_millis(20));
        assert!(matches!(reader.wait_at_most(short, &mut done), Err(ReadError::Idle)));

        submit(reader.as_mut(), 0..4);
        while done.len() < 4 {
            reader.wait_at_most(short, &mut done).unwrap();
        }
        done.drain(..).for_each(|completion| reader.release(completion.slot));

        submit(reader.as_mut(), 4..6);
        assert_eq!(reader.wait_at_most(short, &mut done).unwrap(), 0, "{}", name(file));
        assert_eq!(reader.in_flight(), 2);
        assert!(reader.usable());
        let mut waits = 1;
        let error = loop {
            match reader.wait_at_most(short, &mut done) {
                Ok(ended) => assert_eq!(ended, 0),
                Err(error) => break error,
            }
            waits += 1;
        };
        assert!(matches!(error, ReadError::NoAnswer { reads: 2, .. }), "{error:?}");
        assert!(waits <= 51, "{}: {waits} waits of 20 ms are more than a second", name(file));
        silent.store(false, Ordering::Relaxed);
    });
}
