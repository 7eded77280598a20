//! Reads that fail: an error that names the page, never garbage, and a reader that goes on.

use std::sync::Arc;

use pageio::{Fault, Faults, PAGE, PageFile, ReadError};

use crate::fixture::{Fixture, collect_all, name, page_bytes};

#[test]
fn a_read_past_the_end_names_the_page() {
    let fixture = Fixture::new(8);
    for file in fixture.every_way(4, 4) {
        let mut reader = file.reader().unwrap();
        for (first, count, missing) in [(8, 1, 8), (7, 2, 8), (5, 4, 8), (100, 1, 100)] {
            let error = reader.submit(0, first, count).unwrap_err();
            assert!(
                matches!(error, ReadError::PastEnd { page, pages: 8, .. } if page == missing),
                "{error}"
            );
        }
        assert!(reader.submit(0, u64::MAX, 4).is_err());
        assert!(matches!(reader.submit(0, 0, 0), Err(ReadError::Count { .. })));
        assert!(matches!(reader.submit(0, 0, 5), Err(ReadError::Count { found: 5, .. })));
        assert_eq!(reader.in_flight(), 0, "{}", name(&file));
    }
}

#[test]
fn a_file_cut_after_it_was_opened_is_an_error_and_not_garbage() {
    for cut in [5 * PAGE as u64, 5 * PAGE as u64 + 100, 5 * PAGE as u64 + 512] {
        let fixture = Fixture::new(8);
        let files = fixture.every_disk_way(8, 4);
        let whole = std::fs::read(&fixture.path).unwrap();
        for file in files {
            std::fs::write(&fixture.path, &whole).unwrap();
            let mut reader = file.reader().unwrap();
            let open = std::fs::File::options().write(true).open(&fixture.path).unwrap();
            open.set_len(cut).unwrap();
            for (first, count) in [(0, 1), (4, 1), (5, 1), (7, 1), (3, 4)] {
                reader.submit(first, first, count).unwrap();
            }
            for completion in collect_all(reader.as_mut()) {
                let shown = reader.bytes(completion.slot);
                match completion.tag {
                    0 | 4 => assert!(shown == page_bytes(completion.tag), "{}", name(&file)),
                    tag => {
                        let missing = tag.max(5);
                        let error = completion.result.unwrap_err();
                        let named = matches!(error, ReadError::Short { page, .. } | ReadError::Io { page, .. }
                            if page == missing);
                        assert!(named, "{} cut at {cut}: {error}", name(&file));
                        assert!(error.to_string().contains("pages.bin"), "{error}");
                        assert!(shown.is_empty(), "{}: part of a failed read", name(&file));
                    }
                }
                reader.release(completion.slot);
            }
            let mut out = vec![0; 4 * PAGE];
            assert!(file.read_pages(3, &mut out).is_err(), "{}", name(&file));
        }
    }
}

fn with_faults(file: Arc<PageFile>, choose: fn(u64) -> Option<Fault>) -> Arc<PageFile> {
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
