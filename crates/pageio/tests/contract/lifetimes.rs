//! Readers that are dropped, moved, many, and emptied.

use std::sync::{Arc, Barrier, mpsc};
use std::thread;

use pageio::{Direct, OpenOptions, PageFile, PageReader};

use crate::fixture::{Fixture, collect_all, name, page_bytes};

fn submit_all(reader: &mut dyn PageReader, pages: u64) {
    for page in 0..pages {
        reader.submit(page, page, 1).unwrap();
    }
    reader.flush().unwrap();
}

fn assert_collects_all(reader: &mut dyn PageReader, file: &PageFile) {
    for completion in collect_all(reader) {
        completion.result.unwrap();
        assert!(reader.bytes(completion.slot) == page_bytes(completion.tag), "{}", name(file));
        reader.release(completion.slot);
    }
}

#[test]
fn dropping_a_reader_with_reads_in_flight_is_safe() {
    let fixture = Fixture::new(64);
    for file in fixture.every_way(64, 1) {
        for _ in 0..20 {
            let mut reader = file.reader().unwrap();
            submit_all(reader.as_mut(), 40);
            reader.submit(99, 1, 1).unwrap(); // queued only
        }
        let mut reader = file.reader().unwrap();
        drop(file);
        submit_all(reader.as_mut(), 40); // outlives its file's last other owner
    }
}

#[test]
fn a_reader_moves_to_another_thread_with_reads_in_flight() {
    let fixture = Fixture::new(32);
    for file in fixture.every_way(32, 1) {
        let mut reader = file.reader().unwrap();
        submit_all(reader.as_mut(), 32);
        let mut reader = thread::scope(|scope| {
            let there = scope.spawn(|| {
                assert_collects_all(reader.as_mut(), &file);
                submit_all(reader.as_mut(), 32);
                reader
            });
            there.join().unwrap()
        });
        assert_collects_all(reader.as_mut(), &file);
        submit_all(reader.as_mut(), 32);
        assert_collects_all(reader.as_mut(), &file);
    }
}

#[test]
fn a_reader_outlives_the_thread_that_made_it() {
    let fixture = Fixture::new(32);
    for file in fixture.every_way(32, 1) {
        for _ in 0..20 {
            let shared = Arc::clone(&file);
            let made = thread::spawn(move || {
                let mut reader = shared.reader().unwrap();
                submit_all(reader.as_mut(), 32);
                reader
            });
            let mut reader = made.join().unwrap();
            assert_collects_all(reader.as_mut(), &file);
        }
    }
}

#[test]
fn many_files_are_open_with_several_readers_each() {
    let fixtures: Vec<Fixture> = (0..64).map(|_| Fixture::new(4)).collect();
    for like in fixtures[0].every_way(64, 1) {
        let direct = if like.direct() { Direct::On } else { Direct::Off };
        let options = OpenOptions { backend: like.backend(), direct, ..OpenOptions::default() };
        let mut open = Vec::new();
        for fixture in &fixtures {
            let file = fixture.open(&options);
            for _ in 0..4 {
                let mut reader = file.reader_with_slots(8).unwrap();
                submit_all(reader.as_mut(), 4);
                open.push((Arc::clone(&file), reader));
            }
        }
        for (file, reader) in &mut open {
            assert_collects_all(reader.as_mut(), file);
        }
    }
}

#[test]
fn two_hundred_and_fifty_six_threads_read_one_file_at_once() {
    let fixture = Fixture::new(64);
    for file in fixture.every_way(8, 1) {
        let all_have_readers = Barrier::new(256);
        thread::scope(|scope| {
            for _ in 0..256 {
                scope.spawn(|| {
                    let reader = file.reader();
                    all_have_readers.wait(); // before a panic, or the others wait for ever
                    let mut reader = reader.unwrap();
                    for _ in 0..4 {
                        submit_all(reader.as_mut(), 8);
                        assert_collects_all(reader.as_mut(), &file);
                    }
                });
            }
        });
    }
}

#[test]
fn a_drained_reader_is_as_good_as_new() {
    let fixture = Fixture::new(16);
    for file in fixture.every_way(16, 1) {
        let mut reader = file.reader().unwrap();
        submit_all(reader.as_mut(), 10);
        let mut kept = Vec::new();
        reader.wait(&mut kept).unwrap();
        reader.submit(90, 3, 1).unwrap(); // queued only
        reader.drain();
        assert_eq!(reader.in_flight(), 0);
        assert_eq!(reader.poll(&mut Vec::new()).unwrap(), 0, "{}", name(&file));
        for completion in kept {
            assert!(reader.bytes(completion.slot) == page_bytes(completion.tag), "kept");
            reader.release(completion.slot);
        }
        submit_all(reader.as_mut(), 16); // every slot is free again
        assert_collects_all(reader.as_mut(), &file);
    }
}

#[test]
fn a_wait_wakes_for_a_read_that_arrives_later() {
    let fixture = Fixture::new(16);
    for file in fixture.every_way(16, 1) {
        let (send, receive) = mpsc::channel();
        let shared = Arc::clone(&file);
        let waiter = thread::spawn(move || {
            let mut reader = shared.reader().unwrap();
            for page in 0..200 {
                reader.submit(page % 16, page % 16, 1).unwrap();
                assert_collects_all(reader.as_mut(), &shared);
            }
            send.send(()).unwrap();
        });
        let woke = receive.recv_timeout(std::time::Duration::from_secs(60));
        assert!(woke.is_ok(), "{}: a wait never came back", name(&file));
        waiter.join().unwrap();
    }
}
