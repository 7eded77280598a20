//! Opening a file around the page cache, or through it.
//!
//! Whether `O_DIRECT` works depends on kernel, file system, mount and device, and each of them may
//! refuse it at a different moment: at open, by statx, or at the first read. So:
//!
//! ```text
//! on tmpfs?              -> its reads come from memory either way: through the page cache
//! open with O_DIRECT     -> refused? through the page cache
//! ask statx(DIOALIGN)    -> wants more than 4096-byte alignment? through the page cache
//! read one page with it  -> fails? through the page cache; works? direct
//! ```
//!
//! With `direct = on` each of these is an error instead.

use std::fs::File;
use std::path::Path;

use crate::request::{Extent, Request};
use crate::{AlignedBuf, Direct, OpenError, PAGE};

/// Opens `path` buffered, then again around the page cache if `mode` and the system allow.
/// What was tried in vain is told in `why`.
pub(crate) fn open(
    path: &Path,
    mode: Direct,
    why: &mut Vec<String>,
) -> Result<(File, Extent, bool), OpenError> {
    let failed = |cause| OpenError::Open { path: path.to_owned(), cause };
    // Looked at before it is opened: opening a pipe would wait for its writer.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err(OpenError::Kind { path: path.to_owned() });
    }
    let file = File::open(path).map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    if !len.is_multiple_of(PAGE as u64) {
        return Err(OpenError::Length { path: path.to_owned(), found: len });
    }
    let extent = Extent { path: path.to_owned(), pages: len / PAGE as u64 };
    if mode == Direct::Off {
        return Ok((file, extent, false));
    }
    match open_direct(path, &file, &extent) {
        Ok(direct) => Ok((direct, extent, true)),
        Err(cause) if mode == Direct::On => Err(OpenError::Direct { path: path.to_owned(), cause }),
        Err(cause) => {
            why.push(format!("direct I/O skipped, reading through the page cache: {cause}"));
            Ok((file, extent, false))
        }
    }
}

#[cfg(target_os = "linux")]
fn open_direct(path: &Path, buffered: &File, extent: &Extent) -> Result<File, String> {
    use std::os::unix::fs::OpenOptionsExt;

    if in_memory(buffered) {
        return Err("the file is on tmpfs, whose pages are in memory".into());
    }
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(path)
        .map_err(|cause| format!("the file system refuses O_DIRECT: {cause}"))?;
    match required_alignment(&file) {
        Some(0) => return Err("statx says the file does not support O_DIRECT".into()),
        Some(align) if !(PAGE as u64).is_multiple_of(u64::from(align)) => {
            return Err(format!("O_DIRECT needs {align}-byte alignment here, pages have {PAGE}"));
        }
        Some(_) | None => {}
    }
    if extent.pages > 0 {
        let mut page = AlignedBuf::zeroed(1).map_err(|error| error.to_string())?;
        Request::new(0, 0, PAGE)
            .read(&file, extent, &mut page)
            .map_err(|error| format!("a test read with O_DIRECT failed: {error}"))?;
    }
    Ok(file)
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_path: &Path, _buffered: &File, _extent: &Extent) -> Result<File, String> {
    Err("this system has no O_DIRECT".into())
}

/// The larger of the alignments that direct reads need in memory and in the file; 0 where there
/// are no direct reads; `None` where the kernel (before 6.1) or file system does not say.
#[cfg(target_os = "linux")]
fn required_alignment(file: &File) -> Option<u32> {
    use std::os::fd::AsRawFd;

    let mut answer = std::mem::MaybeUninit::<libc::statx>::zeroed();
    let (flags, mask) = (libc::AT_EMPTY_PATH, libc::STATX_DIOALIGN);
    let fd = file.as_raw_fd();
    // SAFETY: the path is a C string, and `answer` is a whole statx for the kernel to fill.
    let result = unsafe { libc::statx(fd, c"".as_ptr(), flags, mask, answer.as_mut_ptr()) };
    // SAFETY: zeroed above, and every bit pattern of its integers is valid.
    let answer = unsafe { answer.assume_init() };
    let told = result == 0 && answer.stx_mask & libc::STATX_DIOALIGN != 0;
    told.then_some(answer.stx_dio_mem_align.max(answer.stx_dio_offset_align))
}

#[cfg(target_os = "linux")]
fn in_memory(file: &File) -> bool {
    use std::os::fd::AsRawFd;

    let mut answer = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: `answer` is a whole statfs for the kernel to fill.
    let result = unsafe { libc::fstatfs(file.as_raw_fd(), answer.as_mut_ptr()) };
    // SAFETY: zeroed above, and every bit pattern of its integers is valid.
    let answer = unsafe { answer.assume_init() };
    // Their types differ from one C library to the next.
    result == 0 && i128::from(answer.f_type) == i128::from(libc::TMPFS_MAGIC)
}

/// The whole file, for the memory backend.
pub(crate) fn load(file: &File, extent: &Extent) -> Result<AlignedBuf, OpenError> {
    const CHUNK: usize = 4 << 20;
    let pages = usize::try_from(extent.pages).unwrap_or(usize::MAX);
    let mut all = AlignedBuf::zeroed(pages)?;
    let mut first = 0;
    for chunk in all.chunks_mut(CHUNK) {
        Request::new(0, first, chunk.len()).read(file, extent, chunk)?;
        first += (chunk.len() / PAGE) as u64;
    }
    Ok(all)
}
