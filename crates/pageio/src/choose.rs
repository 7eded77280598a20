//! Which backend reads this file: tried in order with a real read, and why one was skipped.
//!
//! ```text
//! auto:      io_uring -> reads page 0? take it.   else note why, and take the pread pool
//! io_uring:  reads page 0? take it.               else an error with cause and remedy
//! ```
//!
//! The proof is a read because setup alone proves little: containers forbid the system calls,
//! administrators the feature, and some file systems the kind of read.

use std::fs::File;
use std::sync::Arc;

use crate::request::Extent;
use crate::slots::Slots;
use crate::{Backend, OpenError, PageReader, ReadError};

/// The backend to use for `wanted`, which is not `Memory`.
pub(crate) fn backend(
    wanted: Backend,
    file: &Arc<File>,
    extent: &Arc<Extent>,
    why: &mut Vec<String>,
) -> Result<Backend, OpenError> {
    if wanted == Backend::Pread {
        return Ok(Backend::Pread);
    }
    let Err(error) = prove_ring(file, extent) else { return Ok(Backend::IoUring) };
    let (cause, remedy) = explain(&error);
    if wanted == Backend::Auto {
        why.push(format!("io_uring skipped, reading with a pread thread pool: {cause}; {remedy}"));
        return Ok(Backend::Pread);
    }
    let path = extent.path.clone();
    Err(OpenError::Backend { path, backend: Backend::IoUring, cause, remedy: remedy.to_owned() })
}

/// Sets up a ring and reads the first page through it, if there is one.
fn prove_ring(file: &Arc<File>, extent: &Arc<Extent>) -> Result<(), ReadError> {
    let mut reader = ring_reader(file, Slots::new(Arc::clone(extent), 1, 1))?;
    if extent.pages > 0 {
        let mut done = Vec::new();
        reader.submit(0, 0, 1)?;
        reader.wait(&mut done)?;
        for completion in done {
            completion.result?;
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
pub(crate) fn ring_reader(
    file: &Arc<File>,
    slots: Slots,
) -> Result<Box<dyn PageReader>, ReadError> {
    Ok(Box::new(crate::uring::UringReader::new(Arc::clone(file), slots)?))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn ring_reader(
    _file: &Arc<File>,
    slots: Slots,
) -> Result<Box<dyn PageReader>, ReadError> {
    Err(ReadError::Backend {
        path: slots.extent().path.clone(),
        backend: Backend::IoUring,
        doing: "cannot set up a ring",
        cause: std::io::ErrorKind::Unsupported.into(),
    })
}

/// What the system meant, and what can be done about it.
fn explain(error: &ReadError) -> (String, &'static str) {
    let (ReadError::Backend { cause, .. } | ReadError::Io { cause, .. }) = error else {
        return (error.to_string(), "use backend auto or pread");
    };
    let (meaning, remedy) = match cause.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => forbidden(),
        Some(libc::ENOSYS) => (
            "this kernel has none, or a sandbox hides it",
            "use backend auto or pread, or Linux 5.6 or later with the io_uring calls allowed",
        ),
        Some(libc::ENOMEM) => (
            "no memory for a ring, or RLIMIT_MEMLOCK is too small for one",
            "raise `ulimit -l`, lower the number of slots, or use backend auto or pread",
        ),
        Some(libc::EMFILE | libc::ENFILE) => (
            "no file descriptor is left for a ring",
            "raise `ulimit -n`, or use backend auto or pread",
        ),
        Some(libc::EINVAL | libc::EOPNOTSUPP) => {
            ("this kernel or file system does not read through a ring", "use backend auto or pread")
        }
        _ => ("the system refused", "use backend auto or pread"),
    };
    (format!("{meaning} ({cause})"), remedy)
}

/// Tells the two switches apart that both answer "operation not permitted".
fn forbidden() -> (&'static str, &'static str) {
    let switch = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    match switch.as_deref().map(str::trim) {
        Ok("2") => (
            "the sysctl kernel.io_uring_disabled = 2 forbids it",
            "set kernel.io_uring_disabled to 0, or use backend auto or pread",
        ),
        Ok("1") => (
            "the sysctl kernel.io_uring_disabled = 1 forbids it to this user, or a seccomp filter does",
            "set kernel.io_uring_disabled to 0, join the group in kernel.io_uring_group, \
             or use backend auto or pread",
        ),
        _ => (
            "a security policy forbids it: seccomp, as in most containers, or SELinux",
            "allow the io_uring_* system calls in the container's seccomp profile, \
             or use backend auto or pread",
        ),
    }
}
