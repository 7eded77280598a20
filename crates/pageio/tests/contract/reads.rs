//! The right bytes, whatever the order, size and time.

use std::io::{Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

use pageio::{AlignedBuf, PAGE};

use crate::fixture::{Fixture, collect_all, mix, name, page_bytes};

#[test]
fn random_reads_of_one_and_many_pages_bring_the_right_bytes() {
    let fixture = Fixture::new(300);
    for file in fixture.every_way(16, 5) {
        let mut reader = file.reader().unwrap();
        let mut done = Vec::new();
        let (mut asked, mut seen) = (0u64, 0u64);
        while seen < 1500 {
            while asked < 1500 && asked - seen < 16 {
                let count = 1 + mix(asked) % 5;
                let first = mix(asked + 7) % (fixture.pages - count + 1);
                reader.submit(first * 10 + count, first, count as u32).unwrap();
                asked += 1;
            }
            reader.flush().unwrap();
            reader.wait(&mut done).unwrap();
            for completion in done.drain(..) {
                completion.result.unwrap();
                let (first, count) = (completion.tag / 10, completion.tag % 10);
                let bytes = reader.bytes(completion.slot);
                let expected: Vec<u8> = (first..first + count).flat_map(page_bytes).collect();
                assert!(bytes == expected, "{}: pages {first}+{count}", name(&file));
                assert_eq!(bytes.as_ptr().addr() % PAGE, 0, "{}", name(&file));
                reader.release(completion.slot);
                seen += 1;
            }
        }
        assert_eq!(reader.in_flight(), 0);
    }
}

#[test]
fn completions_in_any_order_are_matched_by_tag() {
    let fixture = Fixture::new(64);
    for file in fixture.every_way(64, 1) {
        let mut reader = file.reader().unwrap();
        for i in 0..64 {
            let page = i * 37 % 64;
            reader.submit(page + 1000, page, 1).unwrap();
        }
        let done = collect_all(reader.as_mut());
        let mut tags: Vec<u64> = done.iter().map(|completion| completion.tag).collect();
        for completion in done {
            completion.result.unwrap();
            let expected = page_bytes(completion.tag - 1000);
            assert!(reader.bytes(completion.slot) == expected, "{}", name(&file));
        }
        tags.sort_unstable();
        assert!(tags.into_iter().eq(1000..1064), "{}: each read ends once", name(&file));
    }
}

#[test]
fn polling_alone_brings_every_read_home() {
    let fixture = Fixture::new(32);
    for file in fixture.every_way(32, 1) {
        let mut reader = file.reader().unwrap();
        for page in 0..32 {
            reader.submit(page, page, 1).unwrap();
        }
        reader.flush().unwrap();
        let mut done = Vec::new();
        let start = Instant::now();
        while done.len() < 32 {
            reader.poll(&mut done).unwrap();
            assert!(start.elapsed() < Duration::from_secs(60), "{}: stuck", name(&file));
            std::thread::yield_now();
        }
        for completion in done {
            assert!(reader.bytes(completion.slot) == page_bytes(completion.tag));
        }
        assert_eq!(reader.poll(&mut Vec::new()).unwrap(), 0);
    }
}

#[test]
fn a_queued_read_does_not_start_before_flush() {
    for way in 0..Fixture::new(1).every_disk_way(1, 1).len() {
        let fixture = Fixture::new(4);
        let file = &fixture.every_disk_way(4, 1)[way];
        let mut reader = file.reader().unwrap();
        reader.submit(0, 2, 1).unwrap();
        assert_eq!(reader.poll(&mut Vec::new()).unwrap(), 0);
        let mut writer = std::fs::File::options().write(true).open(&fixture.path).unwrap();
        writer.seek(SeekFrom::Start(2 * PAGE as u64)).unwrap();
        writer.write_all(&[0xa5; PAGE]).unwrap();
        writer.sync_all().unwrap();
        reader.flush().unwrap();
        let done = collect_all(reader.as_mut());
        assert_eq!(reader.bytes(done[0].slot), [0xa5; PAGE], "{}", name(file));
    }
}

#[test]
fn blocking_reads_take_any_length_and_any_alignment() {
    let fixture = Fixture::new(200);
    let whole: Vec<u8> = (0..200).flat_map(page_bytes).collect();
    for file in fixture.every_way(4, 1) {
        let mut aligned = AlignedBuf::zeroed(200).unwrap();
        file.read_pages(0, &mut aligned).unwrap();
        assert!(*aligned == *whole, "{}", name(&file));

        let mut odd = vec![0; 150 * PAGE + 1];
        file.read_pages(13, &mut odd[1..]).unwrap();
        assert!(odd[1..] == whole[13 * PAGE..163 * PAGE], "{}", name(&file));

        file.read_pages(200, &mut []).unwrap();
        assert!(file.read_pages(199, &mut odd[..2 * PAGE]).is_err());
        assert!(file.read_pages(0, &mut odd[..100]).is_err());
    }
}

#[test]
fn the_probe_counts_its_reads() {
    let fixture = Fixture::new(64);
    for file in fixture.every_way(4, 1) {
        let result = pageio::probe(&file, 8, Duration::from_millis(20), 1).unwrap();
        assert!(result.reads > 0 && result.reads_per_second > 0.0, "{}", name(&file));
        assert!(result.p99_us > 0.0 && result.mean_us > 0.0, "{result:?}");
    }
}
