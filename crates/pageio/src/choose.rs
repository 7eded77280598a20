//! Which backend reads this file: tried in order with a real read, and why one was skipped.
//!
//! ```text
//! auto:            io_uring -> aio -> pread; the first that reads page 0, and why others do not
//! io_uring, aio:   reads page 0? take it.    else an error with cause and remedy
//! ```
//!
//! The proof is a read because setup alone proves little: containers forbid the system calls,
//! administrators the feature, and some file systems the kind of read.

use std::fs::File;
use std::sync::Arc;

use crate::fault::Injector;
use crate::request::Extent;
use crate::slots::Slots;
use crate::{Backend, OpenError, OpenOptions, PageReader, ReadError, refusal};

/// What is true of kernel AIO for a file without O_DIRECT.
const AIO_BUFFERED: &str =
    "without O_DIRECT kernel AIO reads one page after the other, while it submits";

/// The backend to use for `options.backend`, which is not `Memory`. `direct` is whether the file
/// is open with O_DIRECT.
pub(crate) fn backend(
    options: &OpenOptions,
    file: &Arc<File>,
    direct: bool,
    extent: &Arc<Extent>,
    why: &mut Vec<String>,
) -> Result<Backend, OpenError> {
    let automatic = options.backend == Backend::Auto;
    let candidates = match &options.backend {
        Backend::Auto => &[Backend::IoUring, Backend::Aio][..],
        Backend::Pread => &[],
        demanded => std::slice::from_ref(demanded),
    };
    for &candidate in candidates {
        let blocks = candidate == Backend::Aio && !direct;
        if blocks {
            let said = if automatic { "aio skipped" } else { "aio as asked for" };
            why.push(format!("{said}: {AIO_BUFFERED}"));
        }
        if blocks && automatic {
            continue;
        }
        match prove(candidate, options, file, extent) {
            Ok(()) => return Ok(candidate),
            // Nor would it through the next backend.
            Err(error @ ReadError::NoAnswer { .. }) => return Err(error.into()),
            Err(error) if automatic => why.push(refusal::skipped(candidate, &error)),
            Err(error) => return Err(refusal::of_file(candidate, extent, &error)),
        }
    }
    Ok(Backend::Pread)
}

/// Reads the first page, if there is one, through a reader for one read.
fn prove(
    backend: Backend,
    options: &OpenOptions,
    file: &Arc<File>,
    extent: &Arc<Extent>,
) -> Result<(), ReadError> {
    let options = OpenOptions { max_pages_per_read: 1, ..options.clone() };
    let slots = Slots::new(Arc::clone(extent), 1, &options, Injector::default());
    let mut reader = reader(backend, file, slots)?;
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

/// A reader on `backend`, one of those that the kernel may refuse.
#[cfg(target_os = "linux")]
pub(crate) fn reader(
    backend: Backend,
    file: &Arc<File>,
    slots: Slots,
) -> Result<Box<dyn PageReader>, ReadError> {
    let file = Arc::clone(file);
    Ok(match backend {
        Backend::Aio => Box::new(crate::aio::AioReader::new(file, slots)?),
        _ => Box::new(crate::uring::UringReader::new(file, slots)?),
    })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn reader(
    backend: Backend,
    _file: &Arc<File>,
    slots: Slots,
) -> Result<Box<dyn PageReader>, ReadError> {
    Err(ReadError::Backend {
        path: slots.extent().path.clone(),
        backend,
        doing: "only Linux has it",
        cause: std::io::ErrorKind::Unsupported.into(),
    })
}
