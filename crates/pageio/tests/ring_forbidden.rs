//! What a container does by default: io_uring answers EPERM, everything else works.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::{io, ptr, thread};

use pageio::{Backend, OpenError, OpenOptions, PAGE, PageFile};

/// Makes io_uring_setup fail with `errno` on this thread and those it starts, for good.
fn forbid_rings(errno: i32) {
    let filter = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut program = [
        // The number of the system call is the first word of what a filter sees.
        filter(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        filter(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::SYS_io_uring_setup as u32),
        filter(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        filter(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: plain numbers; the unused arguments are zero as the call demands.
    let unprivileged = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(unprivileged, 0, "{}", io::Error::last_os_error());
    let mode = libc::SECCOMP_MODE_FILTER;
    // SAFETY: `program` and the filter it points to live through the call, which copies them.
    let installed =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, ptr::from_ref(&program), 0, 0) };
    assert_eq!(installed, 0, "{}", io::Error::last_os_error());
}

fn open(backend: Backend) -> Result<PageFile, OpenError> {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("pages.bin");
    std::fs::write(&path, [9; 4 * PAGE]).unwrap();
    PageFile::open(&path, &OpenOptions { backend, ..OpenOptions::default() })
}

fn without_rings(errno: i32, test: fn()) {
    let forbidden = move || {
        forbid_rings(errno);
        test();
    };
    thread::spawn(forbidden).join().unwrap();
}

#[test]
fn automatic_falls_back_to_threads_and_says_why() {
    without_rings(libc::EPERM, || {
        let file = Arc::new(open(Backend::Auto).unwrap());
        assert_eq!(file.backend(), Backend::Pread);
        let why = file.why().join("\n");
        assert!(why.contains("io_uring skipped"), "{why}");
        let mut reader = file.reader().unwrap();
        reader.submit(0, 3, 1).unwrap();
        let mut done = Vec::new();
        reader.wait(&mut done).unwrap();
        assert_eq!(reader.bytes(done[0].slot), [9; PAGE]);
    });
}

#[test]
fn a_demanded_ring_is_an_error_with_cause_and_remedy() {
    without_rings(libc::EPERM, || {
        let error = open(Backend::IoUring).err().unwrap().to_string();
        assert!(error.contains("seccomp") || error.contains("io_uring_disabled"), "{error}");
        assert!(error.contains("pages.bin") && error.contains("use backend auto"), "{error}");
    });
    without_rings(libc::ENOSYS, || {
        let error = open(Backend::IoUring).err().unwrap().to_string();
        assert!(error.contains("kernel has none"), "{error}");
    });
}

#[test]
fn a_ring_refused_later_is_replaced_by_threads_only_if_the_choice_was_automatic() {
    for backend in [Backend::Auto, Backend::IoUring] {
        let Ok(file) = open(backend) else { continue };
        if file.backend() != Backend::IoUring {
            continue;
        }
        let file = Arc::new(file);
        let late = thread::spawn(move || {
            forbid_rings(libc::ENOMEM);
            file.reader().map(|reader| reader.backend())
        });
        match (backend, late.join().unwrap()) {
            (Backend::Auto, Ok(used)) => assert_eq!(used, Backend::Pread),
            (Backend::IoUring, Err(error)) => assert!(error.to_string().contains("ring")),
            (_, other) => panic!("{backend}: {other:?}"),
        }
    }
}
