//! What a system means that refuses a ring or an AIO context, and what can be done about it.

use std::io;

use crate::request::Extent;
use crate::{Backend, OpenError, ReadError};

/// Cause and remedy.
type Explanation = (String, &'static str);

/// For `why`: the automatic choice goes on to the next backend.
pub(crate) fn skipped(backend: Backend, error: &ReadError) -> String {
    let (cause, remedy) = explain(backend, error);
    format!("{backend} skipped: {cause}; {remedy}")
}

/// For `why`: the automatic choice was `backend`, and a reader has to do without.
pub(crate) fn fallback(backend: Backend, error: &ReadError) -> String {
    let (cause, remedy) = explain(backend, error);
    format!("some threads read with pread, for lack of {backend}: {cause}; {remedy}")
}

/// For a backend that was demanded and does not read the file.
pub(crate) fn of_file(backend: Backend, extent: &Extent, error: &ReadError) -> OpenError {
    let (cause, remedy) = explain(backend, error);
    let path = extent.path.clone();
    OpenError::Backend { path, backend, cause, remedy: remedy.to_owned() }
}

/// For a backend that was demanded, reads the file, and has no room for a further reader.
pub(crate) fn of_reader(error: ReadError) -> ReadError {
    let ReadError::Backend { path, backend, .. } = &error else { return error };
    let (cause, remedy) = explain(*backend, &error);
    ReadError::Refused { path: path.clone(), backend: *backend, cause, remedy }
}

fn explain(backend: Backend, error: &ReadError) -> Explanation {
    let (ReadError::Backend { cause, .. } | ReadError::Io { cause, .. }) = error else {
        return (error.to_string(), "use backend auto or pread");
    };
    let (meaning, remedy) = match backend {
        Backend::Aio => aio(cause),
        _ => ring(cause),
    };
    (format!("{meaning} ({cause})"), remedy)
}

fn ring(cause: &io::Error) -> Explanation {
    let (meaning, remedy) = match cause.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => ring_forbidden(),
        Some(libc::ENOSYS) => (
            "this kernel has none, or a sandbox hides it",
            "use backend auto or pread, or Linux 5.6 or later with the io_uring calls allowed",
        ),
        Some(libc::ENOMEM) => (
            "no memory for a ring, or RLIMIT_MEMLOCK is too small for one more",
            "raise `ulimit -l`, use fewer threads or slots, or use backend auto, aio or pread",
        ),
        Some(libc::EMFILE | libc::ENFILE) => (
            "no file descriptor is left for a ring",
            "raise `ulimit -n`, use fewer threads, or use backend auto, aio or pread",
        ),
        Some(libc::EINVAL | libc::EOPNOTSUPP) => {
            ("this kernel or file system does not read through a ring", "use backend auto or pread")
        }
        _ => ("the system refused", "use backend auto or pread"),
    };
    (meaning.to_owned(), remedy)
}

/// Tells the two switches apart that both answer "operation not permitted".
fn ring_forbidden() -> (&'static str, &'static str) {
    match sysctl("kernel/io_uring_disabled").as_deref() {
        Some("2") => (
            "the sysctl kernel.io_uring_disabled = 2 forbids it",
            "set kernel.io_uring_disabled to 0, or use backend auto, aio or pread",
        ),
        Some("1") => (
            "the sysctl kernel.io_uring_disabled = 1 forbids it to this user, or a seccomp filter does",
            "set kernel.io_uring_disabled to 0, join the group in kernel.io_uring_group, \
             or use backend auto, aio or pread",
        ),
        _ => (
            "a security policy forbids it: seccomp, as in most containers, or SELinux",
            "allow the io_uring_* system calls in the container's seccomp profile, \
             or use backend auto, aio or pread",
        ),
    }
}

fn aio(cause: &io::Error) -> Explanation {
    let (meaning, remedy) = match cause.raw_os_error() {
        Some(libc::EAGAIN) => {
            let known = |name| sysctl(name).unwrap_or_else(|| "unknown".to_owned());
            let (most, taken) = (known("fs/aio-max-nr"), known("fs/aio-nr"));
            return (
                format!(
                    "the AIO events of this machine are used up: fs.aio-max-nr = {most}, of which \
                     fs.aio-nr = {taken} are taken"
                ),
                "raise it (`sysctl -w fs.aio-max-nr=1048576`), use fewer threads, \
                 or use backend auto or pread",
            );
        }
        Some(libc::EPERM | libc::EACCES) => (
            "a security policy forbids it: a seccomp filter or SELinux",
            "allow io_setup, io_submit, io_getevents and io_destroy in the seccomp profile, \
             or use backend auto or pread",
        ),
        Some(libc::ENOSYS) => (
            "this kernel has no AIO, or a sandbox hides it",
            "use backend auto or pread, or a kernel with CONFIG_AIO and the io_* calls allowed",
        ),
        Some(libc::ENOMEM) => (
            "the kernel has no memory for a context",
            "use fewer threads, or use backend auto or pread",
        ),
        Some(libc::EINVAL | libc::EOPNOTSUPP) => {
            ("this file system does not read through kernel AIO", "use backend auto or pread")
        }
        _ => ("the system refused", "use backend auto or pread"),
    };
    (meaning.to_owned(), remedy)
}

fn sysctl(name: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
    Some(text.trim().to_owned())
}
