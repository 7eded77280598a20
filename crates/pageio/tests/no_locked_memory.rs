//! `ulimit -l 0`: nothing can be registered with a ring, and every backend reads all the same, also
//! with a very deep queue.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use pageio::{Backend, OpenError, OpenOptions, PAGE, PageFile};

#[test]
fn without_memory_to_lock_deep_queues_still_read() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `none` is a whole rlimit, which lives through the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const none) }, 0);
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("pages.bin");
    std::fs::write(&path, (0..8).flat_map(|page| [page; PAGE]).collect::<Vec<u8>>()).unwrap();
    for backend in [Backend::Auto, Backend::IoUring, Backend::Aio, Backend::Pread] {
        let options = OpenOptions { backend, slots: 16_384, ..OpenOptions::default() };
        let file = match PageFile::open(&path, &options) {
            Ok(file) => Arc::new(file),
            // Forbidden here, or a kernel that counts rings as locked memory.
            Err(OpenError::Backend { remedy, .. }) if backend != Backend::Auto => {
                assert!(remedy.contains("use backend auto"), "{remedy}");
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let mut reader = file.reader().unwrap();
        for tag in 0..5000 {
            reader.submit(tag, tag % 8, 1).unwrap();
        }
        let mut done = Vec::new();
        while reader.in_flight() > 0 {
            reader.wait(&mut done).unwrap();
        }
        assert_eq!(done.len(), 5000);
        for completion in done {
            let page = (completion.tag % 8) as u8;
            assert_eq!(reader.bytes(completion.slot), [page; PAGE], "{backend}");
        }
    }
}
