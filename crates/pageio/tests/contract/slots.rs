//! Slots: how many, whose, and what a misuse does.

use pageio::{PAGE, ReadError};

use crate::fixture::{Fixture, collect_all, name, page_bytes};

#[test]
fn a_reader_without_a_free_slot_says_full_until_one_is_released() {
    let fixture = Fixture::new(8);
    for file in fixture.every_way(3, 1) {
        let mut reader = file.reader().unwrap();
        for page in 0..3 {
            reader.submit(page, page, 1).unwrap();
        }
        assert!(matches!(reader.submit(3, 3, 1), Err(ReadError::Full { slots: 3 })));
        let done = collect_all(reader.as_mut());
        assert!(matches!(reader.submit(3, 3, 1), Err(ReadError::Full { .. })), "unreleased");
        reader.release(done[1].slot);
        reader.submit(3, 3, 1).unwrap();
        let last = collect_all(reader.as_mut());
        assert!(reader.bytes(last[0].slot) == page_bytes(3), "{}", name(&file));
        assert!(reader.bytes(done[0].slot) == page_bytes(done[0].tag), "kept while unreleased");
    }
}

#[test]
fn in_flight_counts_from_submit_to_report() {
    let fixture = Fixture::new(8);
    for file in fixture.every_way(8, 1) {
        let mut reader = file.reader().unwrap();
        assert_eq!(reader.in_flight(), 0);
        for page in 0..5 {
            reader.submit(page, page, 1).unwrap();
        }
        assert_eq!(reader.in_flight(), 5);
        let mut done = Vec::new();
        let count = reader.wait(&mut done).unwrap();
        assert_eq!(reader.in_flight(), 5 - count, "{}", name(&file));
    }
}

#[test]
fn waiting_for_nothing_is_an_error_and_not_a_hang() {
    let fixture = Fixture::new(1);
    for file in fixture.every_way(2, 1) {
        let mut reader = file.reader().unwrap();
        assert!(matches!(reader.wait(&mut Vec::new()), Err(ReadError::Idle)));
        assert_eq!(reader.poll(&mut Vec::new()).unwrap(), 0);
        reader.flush().unwrap();
        reader.drain();
    }
}

#[test]
fn a_released_slot_shows_nothing_more() {
    let fixture = Fixture::new(2);
    for file in fixture.every_way(2, 1) {
        let mut reader = file.reader().unwrap();
        reader.submit(0, 1, 1).unwrap();
        let slot = collect_all(reader.as_mut())[0].slot;
        assert_eq!(reader.bytes(slot).len(), PAGE);
        reader.release(slot);
        reader.submit(0, 1, 1).unwrap(); // the same buffer is being read into now
        reader.flush().unwrap();
        let stale = std::panic::AssertUnwindSafe(|| reader.bytes(slot).len());
        assert!(std::panic::catch_unwind(stale).is_err(), "{}", name(&file));
        let twice = std::panic::AssertUnwindSafe(|| reader.release(slot));
        assert!(std::panic::catch_unwind(twice).is_err(), "{}", name(&file));
    }
}

#[test]
fn thousands_of_reads_are_in_flight_at_once_and_all_come_back_right() {
    let fixture = Fixture::new(61);
    let pages: Vec<Vec<u8>> = (0..fixture.pages).map(page_bytes).collect();
    for file in fixture.every_way(8, 1) {
        let mut reader = file.reader_with_slots(6000).unwrap();
        for tag in 0..6000 {
            reader.submit(tag, tag % fixture.pages, 1).unwrap();
        }
        reader.flush().unwrap();
        assert_eq!(reader.in_flight(), 6000, "{}", name(&file));
        let done = collect_all(reader.as_mut());
        assert_eq!(done.len(), 6000);
        for completion in done {
            assert!(completion.result.is_ok(), "{}: {:?}", name(&file), completion.result);
            let expected = &pages[(completion.tag % fixture.pages) as usize];
            assert!(reader.bytes(completion.slot) == expected, "{}", name(&file));
        }
    }
}
