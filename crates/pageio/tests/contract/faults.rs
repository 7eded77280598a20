//! A disk that misbehaves on demand: what each fault does, on every backend.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pageio::{Fault, Faults, PAGE, PageFile, ReadError};

use crate::fixture::{Fixture, collect_all, name, page_bytes};

/// The same file on a worse disk.
pub(crate) fn with_faults(
    file: Arc<PageFile>,
    choose: impl Fn(u64) -> Option<Fault> + Send + Sync + 'static,
) -> Arc<PageFile> {
    Arc::new(Arc::into_inner(file).unwrap().with_faults(Faults::new(choose)))
}

#[test]
fn an_injected_device_error_fails_its_read_and_no_other() {
    let fixture = Fixture::new(16);
    for file in fixture.every_way(16, 2) {
        let file = with_faults(file, |page| (page % 5 == 3).then_some(Fault::Fail));
        let mut reader = file.reader().unwrap();
        for page in 0..15 {
            reader.submit(page, page, 2).unwrap();
        }
        for completion in collect_all(reader.as_mut()) {
            let page = completion.tag;
            let shown = reader.bytes(completion.slot);
            match (page % 5, completion.result) {
                (2 | 3, Err(ReadError::Io { page: named, cause, .. })) => {
                    assert_eq!((named % 5, cause.raw_os_error()), (3, Some(libc::EIO)));
                    assert!(shown.is_empty());
                }
                (2 | 3, other) => panic!("page {page}: {other:?}"),
                (_, result) => {
                    result.unwrap();
                    assert!(shown[PAGE..] == page_bytes(page + 1), "{}", name(&file));
                }
            }
            reader.release(completion.slot);
        }
        let mut out = vec![0; PAGE];
        assert!(file.read_pages(3, &mut out).is_err());
        assert!(file.read_pages(4, &mut out).is_ok());
    }
}

#[test]
fn an_injected_corruption_flips_one_bit_of_its_page() {
    let fixture = Fixture::new(4);
    for file in fixture.every_way(4, 2) {
        let file = with_faults(file, |page| (page == 2).then_some(Fault::Corrupt));
        let mut reader = file.reader().unwrap();
        reader.submit(0, 1, 2).unwrap();
        let slot = collect_all(reader.as_mut())[0].slot;
        let mut expected: Vec<u8> = [page_bytes(1), page_bytes(2)].concat();
        expected[PAGE] ^= 1;
        assert!(reader.bytes(slot) == expected, "{}", name(&file));
        let mut out = vec![0; 2 * PAGE];
        file.read_pages(1, &mut out).unwrap();
        assert!(out == expected);
    }
}

#[test]
fn a_delayed_read_comes_after_the_others_and_can_be_drained() {
    let fixture = Fixture::new(8);
    for file in fixture.every_way(8, 1) {
        let file = with_faults(file, |page| (page == 0).then_some(Fault::Delay(50)));
        let mut reader = file.reader().unwrap();
        for page in 0..8 {
            reader.submit(page, page, 1).unwrap();
        }
        let done = collect_all(reader.as_mut());
        assert_eq!(done.len(), 8);
        assert_eq!(done[7].tag, 0, "{}", name(&file));
        assert!(reader.bytes(done[7].slot) == page_bytes(0));
        for completion in done {
            reader.release(completion.slot);
        }
        for _ in 0..20 {
            reader.submit(0, 0, 1).unwrap();
            reader.flush().unwrap();
            reader.poll(&mut Vec::new()).unwrap();
            assert_eq!(reader.in_flight(), 1);
            reader.drain();
            assert_eq!(reader.in_flight(), 0, "{}", name(&file));
        }
    }
}

#[test]
fn injected_short_and_interrupted_reads_are_carried_on_to_the_right_bytes() {
    let fixture = Fixture::new(40);
    for fault in [Fault::Short, Fault::Interrupt] {
        for file in fixture.every_way(16, 5) {
            let file = with_faults(file, move |page| (page % 3 != 1).then_some(fault));
            let mut reader = file.reader().unwrap();
            for first in 0..16 {
                reader.submit(first, first, 1 + (first % 5) as u32).unwrap();
            }
            for completion in collect_all(reader.as_mut()) {
                completion.result.unwrap();
                let first = completion.tag;
                let expected: Vec<u8> = (first..=first + first % 5).flat_map(page_bytes).collect();
                assert!(reader.bytes(completion.slot) == expected, "{fault:?} {}", name(&file));
                reader.release(completion.slot);
            }
        }
    }
}

#[test]
fn reordered_reads_come_last_and_bring_the_right_bytes() {
    let fixture = Fixture::new(16);
    for file in fixture.every_way(16, 1) {
        let file = with_faults(file, |page| (page % 4 == 0).then_some(Fault::Reorder));
        let mut reader = file.reader().unwrap();
        for page in 0..16 {
            reader.submit(page, page, 1).unwrap();
        }
        let done = collect_all(reader.as_mut());
        let tags: Vec<u64> = done.iter().map(|completion| completion.tag).collect();
        assert!(tags[12..].iter().all(|tag| tag % 4 == 0), "{}: {tags:?}", name(&file));
        if file.backend() == pageio::Backend::Memory {
            assert_eq!(tags[12..], [12, 8, 4, 0]);
        }
        for completion in done {
            assert!(reader.bytes(completion.slot) == page_bytes(completion.tag));
            reader.release(completion.slot);
        }
    }
}

#[test]
fn a_fault_is_decided_once_a_read() {
    let fixture = Fixture::new(4);
    for file in fixture.every_way(4, 1) {
        let asked = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&asked);
        // Every other read fails, whatever its page.
        let file = with_faults(file, move |_| {
            (count.fetch_add(1, Ordering::Relaxed) % 2 == 1).then_some(Fault::Fail)
        });
        let mut reader = file.reader().unwrap();
        for round in 0..100 {
            reader.submit(round, 2, 1).unwrap();
            let done = collect_all(reader.as_mut()).remove(0);
            assert_eq!(done.result.is_err(), round % 2 == 1, "{}: {round}", name(&file));
            reader.release(done.slot);
        }
        assert_eq!(asked.load(Ordering::Relaxed), 100);
        assert_eq!(reader.in_flight(), 0);
    }
}

#[test]
fn a_disk_of_many_faults_fails_some_reads_and_never_shows_other_bytes() {
    let fixture = Fixture::new(64);
    for file in fixture.every_way(32, 3) {
        let calls = AtomicU64::new(0);
        let file = with_faults(file, move |_| {
            match crate::fixture::mix(calls.fetch_add(1, Ordering::Relaxed)) % 20 {
                0 => Some(Fault::Fail),
                1 => Some(Fault::Short),
                2 => Some(Fault::Interrupt),
                3 => Some(Fault::Delay(3)),
                4 => Some(Fault::Reorder),
                _ => None,
            }
        });
        let mut reader = file.reader().unwrap();
        let (mut failed, mut right) = (0, 0);
        for round in 0..60 {
            for i in 0..32 {
                let first = (round * 7 + i * 5) % 61;
                reader.submit(first, first, 1 + (i % 3) as u32).unwrap();
            }
            for completion in collect_all(reader.as_mut()) {
                let bytes = reader.bytes(completion.slot);
                let expected = (completion.tag..).flat_map(page_bytes).take(bytes.len());
                match completion.result {
                    Ok(()) => {
                        assert!(!bytes.is_empty() && expected.eq(bytes.iter().copied()));
                        right += 1;
                    }
                    Err(_) => {
                        assert!(bytes.is_empty());
                        failed += 1;
                    }
                }
                reader.release(completion.slot);
            }
        }
        assert_eq!(failed + right, 60 * 32, "{}", name(&file));
        assert!(failed > 50 && right > 1000, "{}: {failed} failed", name(&file));
    }
}
