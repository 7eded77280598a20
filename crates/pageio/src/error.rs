//! What can go wrong when a page file is opened, and when it is read.

use std::io;
use std::path::PathBuf;

use crate::{Backend, PAGE};

/// An option outside its range, or a name that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("option {option}: expected {expected}, found {found}")]
pub struct OptionError {
    /// The option's name.
    pub option: &'static str,
    /// The value given.
    pub found: String,
    /// The values allowed.
    pub expected: &'static str,
}

/// A page file that could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be opened at all.
    #[error("{path}: cannot open the file: {cause}")]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A directory, pipe or device.
    #[error("{path}: not a regular file")]
    Kind {
        /// The file.
        path: PathBuf,
    },
    /// Not a whole number of pages.
    #[error(
        "{path}: expected a whole number of {PAGE}-byte pages, found {found} bytes \
         ({} pages and {} bytes); the file is cut off or is not a page file",
        found / PAGE as u64, found % PAGE as u64
    )]
    Length {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        found: u64,
    },
    /// An option outside its range.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// `O_DIRECT` was demanded and does not work here.
    #[error(
        "{path}: direct I/O was asked for and cannot be used: {cause}; \
         use direct = auto or off, or move the file to a file system that allows O_DIRECT"
    )]
    Direct {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: String,
    },
    /// The backend demanded does not work here.
    #[error("{path}: backend {backend} was asked for and cannot be used: {cause}; {remedy}")]
    Backend {
        /// The file.
        path: PathBuf,
        /// The backend.
        backend: Backend,
        /// The reason.
        cause: String,
        /// What to do about it.
        remedy: String,
    },
    /// The proof read failed on every way that was open.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// A read that failed or could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Every slot of the reader is in flight or unreleased.
    #[error("all {slots} slots of the reader are taken; collect and release completions first")]
    Full {
        /// Slots the reader has.
        slots: usize,
    },
    /// `wait` with nothing in flight.
    #[error("nothing is in flight, so there is nothing to wait for")]
    Idle,
    /// Pages that the file does not have.
    #[error("{path}: no page {page} (byte {offset}); the file has {pages} pages")]
    PastEnd {
        /// The file.
        path: PathBuf,
        /// The first page asked for that does not exist.
        page: u64,
        /// Where it would start in the file; saturates.
        offset: u64,
        /// Pages of the file.
        pages: u64,
    },
    /// No pages, or more than one read may carry.
    #[error("{path}: page {page}: a read carries 1 to {expected} pages, found {found}")]
    Count {
        /// The file.
        path: PathBuf,
        /// The first page asked for.
        page: u64,
        /// Most pages per read.
        expected: u32,
        /// Pages asked for.
        found: u32,
    },
    /// A buffer that is not a whole number of pages.
    #[error("{path}: page {page}: a buffer of {found} bytes is not a whole number of pages")]
    Buffer {
        /// The file.
        path: PathBuf,
        /// The first page asked for.
        page: u64,
        /// Bytes of the buffer.
        found: usize,
    },
    /// The file ended within the pages asked for: it has been cut since it was opened.
    #[error(
        "{path}: page {page} (byte {offset}): expected {expected} bytes, found {found}; \
         the file is shorter than when it was opened"
    )]
    Short {
        /// The file.
        path: PathBuf,
        /// The page that is missing or cut.
        page: u64,
        /// Where that page starts in the file.
        offset: u64,
        /// Bytes wanted from there.
        expected: usize,
        /// Bytes that are there.
        found: usize,
    },
    /// The system could not read the page.
    #[error("{path}: page {page} (byte {offset}): {cause}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The page.
        page: u64,
        /// Where it starts in the file.
        offset: u64,
        /// What the system said.
        cause: io::Error,
    },
    /// The device has not answered for as long as a wait may take. The reader cannot be used any
    /// more; its buffers are never freed, because the kernel may still write to them.
    #[error(
        "{path}: page {page} (byte {offset}): no answer through {backend} for {seconds} s, with \
         {reads} reads under way; look for errors of the disk in the system log, or allow more time \
         with --io-timeout"
    )]
    NoAnswer {
        /// The file.
        path: PathBuf,
        /// A page that was asked for.
        page: u64,
        /// Where it starts in the file.
        offset: u64,
        /// Reads that were under way.
        reads: usize,
        /// How long nothing came.
        seconds: f64,
        /// What carried the reads.
        backend: Backend,
    },
    /// The reader has met `NoAnswer` before.
    #[error("{path}: this reader has given up on a device that does not answer; make a new one")]
    GivenUp {
        /// The file.
        path: PathBuf,
    },
    /// The backend demanded has no room for one more reader.
    #[error(
        "{path}: backend {backend} was asked for and has no room for one more reader: {cause}; {remedy}"
    )]
    Refused {
        /// The file.
        path: PathBuf,
        /// The backend.
        backend: Backend,
        /// The reason.
        cause: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The backend itself failed; no page is to blame.
    #[error("{path}: {backend}: {doing}: {cause}")]
    Backend {
        /// The file.
        path: PathBuf,
        /// The backend.
        backend: Backend,
        /// The step that failed.
        doing: &'static str,
        /// What the system said.
        cause: io::Error,
    },
    /// An option outside its range.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// No memory for buffers.
    #[error("no memory for {bytes} bytes of page buffers")]
    Memory {
        /// Bytes asked for.
        bytes: usize,
    },
}
