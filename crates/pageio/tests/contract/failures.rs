//! Reads that fail: an error that names the page, never garbage, and a reader that goes on.

use pageio::{PAGE, ReadError};

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
