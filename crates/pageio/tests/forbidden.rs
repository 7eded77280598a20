//! What containers do: io_uring answers EPERM, sometimes kernel AIO as well; or there is no room for
//! more rings or contexts.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::Command;
use std::sync::Arc;
use std::{io, ptr, thread};

use pageio::{Backend, Direct, OpenError, OpenOptions, PAGE, PageFile, ReadError};

const RING: [i64; 1] = [libc::SYS_io_uring_setup];
const AIO: [i64; 1] = [libc::SYS_io_setup];
const BOTH: [i64; 2] = [libc::SYS_io_uring_setup, libc::SYS_io_setup];
const SUBMIT: [i64; 2] = [libc::SYS_io_uring_setup, libc::SYS_io_submit];

/// Makes system calls fail with `errno` on this thread and those it starts, for good.
fn forbid(calls: &[i64], errno: i32) {
    let filter = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    // The number of the system call is the first word of what a filter sees.
    let mut program = vec![filter(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)];
    for &call in calls {
        program.extend([
            filter(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call as u32),
            filter(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        ]);
    }
    program.push(filter(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: plain numbers; the unused arguments are zero as the call demands.
    let unprivileged = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(unprivileged, 0, "{}", io::Error::last_os_error());
    let (mode, filters) = (libc::SECCOMP_MODE_FILTER, ptr::from_ref(&program));
    // SAFETY: `program` and the filter it points to live through the call, which copies them.
    let installed = unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, filters, 0, 0) };
    assert_eq!(installed, 0, "{}", io::Error::last_os_error());
}

fn open(backend: Backend) -> Result<PageFile, OpenError> {
    open_with(&OpenOptions { backend, ..OpenOptions::default() })
}

fn open_with(options: &OpenOptions) -> Result<PageFile, OpenError> {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("pages.bin");
    std::fs::write(&path, [9; 4 * PAGE]).unwrap();
    PageFile::open(&path, options)
}

fn without(calls: &'static [i64], errno: i32, test: impl FnOnce() + Send + 'static) {
    let forbidden = move || {
        forbid(calls, errno);
        test();
    };
    thread::spawn(forbidden).join().unwrap();
}

/// Runs a test in a process of its own: contexts that one test leaves idle are at the other's hand.
fn alone(name: &str, test: fn()) {
    if std::env::var_os("PAGEIO_TEST_ALONE").is_some() {
        return test();
    }
    let program = std::env::current_exe().unwrap();
    let run = Command::new(program).args(["--exact", name]).env("PAGEIO_TEST_ALONE", "1").output();
    let run = run.unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
}

/// Reads a page and says what carried it.
fn read(file: &Arc<PageFile>) -> Backend {
    let mut reader = file.reader().unwrap();
    reader.submit(0, 3, 1).unwrap();
    let mut done = Vec::new();
    reader.wait(&mut done).unwrap();
    assert_eq!(reader.bytes(done[0].slot), [9; PAGE]);
    reader.backend()
}

#[test]
fn automatic_without_rings_takes_aio_for_a_direct_file_and_says_why() {
    without(&RING, libc::EPERM, || {
        let file = Arc::new(open(Backend::Auto).unwrap());
        let expected =
            if file.direct() && open(Backend::Aio).is_ok() { Backend::Aio } else { Backend::Pread };
        assert_eq!(file.backend(), expected);
        assert_eq!(read(&file), expected);
        let why = file.why().join("\n");
        assert!(why.contains("io_uring skipped"), "{why}");
    });
}

#[test]
fn automatic_without_rings_takes_threads_for_a_buffered_file_and_says_why() {
    without(&RING, libc::EPERM, || {
        let options = OpenOptions { direct: Direct::Off, ..OpenOptions::default() };
        let file = Arc::new(open_with(&options).unwrap());
        assert_eq!(file.backend(), Backend::Pread);
        let why = file.why().join("\n");
        assert!(why.contains("io_uring skipped"), "{why}");
        assert!(why.contains("aio skipped: without O_DIRECT"), "{why}");
    });
}

#[test]
fn automatic_without_rings_and_aio_ends_at_threads() {
    alone("automatic_without_rings_and_aio_ends_at_threads", || {
        for (calls, errno) in [
            (&BOTH, libc::EPERM),
            (&BOTH, libc::ENOSYS),
            (&BOTH, libc::EAGAIN),
            (&SUBMIT, libc::EPERM),
        ] {
            without(calls, errno, || {
                let file = Arc::new(open(Backend::Auto).unwrap());
                assert_eq!(file.backend(), Backend::Pread);
                assert_eq!(read(&file), Backend::Pread);
                let why = file.why().join("\n");
                assert!(why.contains("io_uring skipped") && why.contains("aio skipped"), "{why}");
            });
        }
    });
}

/// The error of a demanded backend whose system calls end with `errno`.
fn refusal(backend: Backend, calls: &'static [i64], errno: i32, names: &'static [&'static str]) {
    without(calls, errno, move || {
        let error = open(backend).err().unwrap().to_string();
        assert!(error.contains("pages.bin") && error.contains("use backend auto"), "{error}");
        assert!(names.iter().any(|name| error.contains(name)), "{error}");
    });
}

#[test]
fn a_demanded_ring_is_an_error_with_cause_and_remedy() {
    refusal(Backend::IoUring, &RING, libc::EPERM, &["seccomp", "io_uring_disabled"]);
    refusal(Backend::IoUring, &RING, libc::ENOSYS, &["kernel has none"]);
    refusal(Backend::IoUring, &RING, libc::ENOMEM, &["raise `ulimit -l`"]);
    refusal(Backend::IoUring, &RING, libc::EMFILE, &["raise `ulimit -n`"]);
}

#[test]
fn demanded_aio_is_an_error_with_cause_and_remedy() {
    alone("demanded_aio_is_an_error_with_cause_and_remedy", || {
        refusal(Backend::Aio, &AIO, libc::EPERM, &["allow io_setup"]);
        refusal(Backend::Aio, &AIO, libc::ENOSYS, &["CONFIG_AIO"]);
        refusal(Backend::Aio, &AIO, libc::EAGAIN, &["sysctl -w fs.aio-max-nr="]);
        refusal(Backend::Aio, &SUBMIT, libc::EPERM, &["allow io_setup"]);
    });
}

#[test]
fn a_reader_refused_later_is_replaced_by_threads_only_if_the_choice_was_automatic() {
    alone("a_reader_refused_later_is_replaced_by_threads_only_if_the_choice_was_automatic", || {
        for (backend, named, refused, errno) in [
            (Backend::Auto, Backend::IoUring, &RING, libc::ENOMEM),
            (Backend::IoUring, Backend::IoUring, &RING, libc::ENOMEM),
            (Backend::Aio, Backend::Aio, &AIO, libc::EAGAIN),
        ] {
            let Ok(file) = open(backend) else { continue };
            if file.backend() == named {
                let remedy = if named == Backend::Aio { "fs.aio-nr = " } else { "ulimit -l" };
                refused_later(backend, Arc::new(file), refused, errno, remedy);
            }
        }
    });
}

#[test]
fn a_context_refused_later_is_replaced_by_threads_if_the_choice_was_automatic() {
    alone("a_context_refused_later_is_replaced_by_threads_if_the_choice_was_automatic", || {
        without(&RING, libc::EPERM, || {
            let file = Arc::new(open(Backend::Auto).unwrap());
            if file.backend() == Backend::Aio {
                refused_later(Backend::Auto, file, &AIO, libc::EAGAIN, "sysctl -w fs.aio-max-nr");
            }
        });
    });
}

fn refused_later(
    backend: Backend,
    file: Arc<PageFile>,
    calls: &'static [i64],
    errno: i32,
    remedy: &str,
) {
    let shared = Arc::clone(&file);
    let before = file.why().len();
    let late = thread::spawn(move || {
        forbid(calls, errno);
        let used = shared.reader().map(|reader| reader.backend());
        (used, shared.reader().map(|reader| reader.backend()))
    });
    match (backend, late.join().unwrap()) {
        (Backend::Auto, (Ok(used), Ok(_))) => {
            assert_eq!(used, Backend::Pread);
            let why = file.why();
            assert_eq!(why.len(), before + 1, "said once: {why:?}");
            assert!(why[before].contains(remedy), "{why:?}");
        }
        (_, (Err(error), Err(_))) => {
            assert!(matches!(error, ReadError::Refused { .. }), "{error}");
            assert!(error.to_string().contains(remedy), "{error}");
        }
        (_, other) => panic!("{backend}: {other:?}"),
    }
}
