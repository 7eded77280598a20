//! What can go wrong, by operation. Every message names the file, row or option, what was
//! expected, what was found, and what to do about it.

use std::path::PathBuf;
use std::time::Duration;

/// Why an index could not be built. Nothing that existed is touched, and nothing is left behind
/// but what [`BuildError::Interrupted`] names.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The base vectors could not be read.
    #[error(transparent)]
    Dataset(#[from] dataset::DatasetError),
    /// k-means or the centroid graph failed.
    #[error(transparent)]
    Cluster(#[from] cluster::ClusterError),
    /// A file of the index could not be written.
    #[error("cannot write the index: {0}")]
    Write(#[from] std::io::Error),
    /// An option has a value that cannot work with this base.
    #[error("{option}: {problem}")]
    Option {
        /// The option as the command line calls it.
        option: &'static str,
        /// What is wrong and which values work.
        problem: String,
    },
    /// The base holds no rows an index could be built from.
    #[error("no rows to build from: {0}")]
    Empty(String),
    /// Rows with NaN, infinities or an overflowing norm.
    #[error(
        "{file}: row {row} is invalid ({reason}); {count} of {n} rows are; correct them, or leave \
         them out with --on-invalid skip"
    )]
    InvalidRows {
        /// The file of the first bad row.
        file: PathBuf,
        /// The first bad row, counted from 0 within its file.
        row: u64,
        /// What is wrong with it.
        reason: String,
        /// Number of bad rows.
        count: u64,
        /// Number of rows of the base.
        n: u64,
    },
    /// There is something at the target already.
    #[error("{0} exists already; choose another --out, or replace it with --overwrite")]
    Exists(PathBuf),
    /// The memory budget is below the smallest index.
    #[error(
        "--memory {budget} bytes is too small: the least this index needs in RAM is {least} bytes \
         (prefix dims 64)"
    )]
    Budget {
        /// The budget in bytes.
        budget: u64,
        /// Resident bytes with the shortest prefix.
        least: u64,
    },
    /// The build itself needs more memory.
    #[error(
        "--build-memory {cap} bytes is too little for this build: it needs at least {least} bytes \
         ({} MiB); fewer lists (--nlist) or threads need less", least.div_ceil(1 << 20)
    )]
    BuildMemory {
        /// The limit in bytes.
        cap: u64,
        /// The least that works.
        least: u64,
    },
    /// The disk has no room for the index and what building it needs.
    #[error(
        "{}: no space: the build needs {} bytes ({index} for the index, {scratch} of scratch until \
         it is done), {available} are available", dir.display(), index + scratch
    )]
    NoSpace {
        /// Where the index was to be.
        dir: PathBuf,
        /// Bytes of the index.
        index: u64,
        /// Bytes needed until the index is complete.
        scratch: u64,
        /// Bytes that are free.
        available: u64,
    },
    /// Another build of the same target is running.
    #[error("{0} is being built by another process; wait for it or choose another --out")]
    Busy(PathBuf),
    /// There is nothing to go on from.
    #[error("--resume: no unfinished build of {0} is there; build without --resume")]
    NothingToResume(PathBuf),
    /// What an unfinished build left does not fit this one.
    #[error("--resume: {problem}; build without --resume to start over")]
    Resume {
        /// What changed or is damaged.
        problem: String,
    },
    /// The work was cancelled, see [`Progress::cancelled`](crate::Progress::cancelled).
    #[error(
        "interrupted{}",
        if *resumable { "; the same command with --resume goes on from the last checkpoint" }
        else { "; nothing was kept" }
    )]
    Interrupted {
        /// Whether the work up to the last checkpoint was kept.
        resumable: bool,
    },
}

/// Why an index could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Not an index directory, or one of its files is missing or unreadable.
    #[error("{path}: {problem}")]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// What happened.
        problem: String,
    },
    /// The index was written in another format.
    #[error(
        "{path}: written by format {found}, this build reads format {expected}; rebuild the index \
         or use a matching release"
    )]
    Format {
        /// The manifest.
        path: PathBuf,
        /// Format version in the manifest.
        found: u64,
        /// Format version of this build.
        expected: u64,
    },
    /// A file is not the one the manifest describes.
    #[error(
        "{path}: {what} is {found}, the manifest says {expected}: the file is damaged or belongs to another build"
    )]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// Size or checksum.
        what: &'static str,
        /// Value the manifest gives.
        expected: String,
        /// Value found.
        found: String,
    },
    /// A file's content contradicts itself.
    #[error("{path}: {problem}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What contradicts what.
        problem: String,
    },
    /// The record file cannot be read in the requested way.
    #[error(transparent)]
    Io(#[from] pageio::OpenError),
}

/// Why a query has no answer. The index stays usable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The query has another dim than the index.
    #[error("the query has {found} dims, the index has {expected}")]
    Dim {
        /// Dim of the index.
        expected: usize,
        /// Dim of the query.
        found: usize,
    },
    /// The query holds NaN or infinities, or its norm overflows.
    #[error("query {query} is invalid: {reason}")]
    Query {
        /// Number of the query in the batch, from 0.
        query: usize,
        /// What is wrong.
        reason: String,
    },
    /// An option is out of range.
    #[error("{option}: {problem}")]
    Option {
        /// The option as the command line calls it.
        option: &'static str,
        /// What is wrong and which values work.
        problem: String,
    },
    /// The query took longer than [`SearchOptions::timeout`](crate::SearchOptions::timeout).
    #[error(
        "the query was not answered within {} ms; visit fewer lists, or allow more time",
        timeout.as_secs_f64() * 1e3
    )]
    TimedOut {
        /// The time it had.
        timeout: Duration,
    },
    /// Somebody called [`Cancel::cancel`](crate::Cancel::cancel).
    #[error("the search was cancelled")]
    Cancelled,
    /// A page could not be read.
    #[error(transparent)]
    Read(#[from] pageio::ReadError),
    /// A page does not match its checksum.
    #[error(
        "{file}: page {page} does not match its checksum; run `rabitq-ssd verify` for the full list \
         of damaged pages, then rebuild the index"
    )]
    Corrupt {
        /// The damaged file.
        file: PathBuf,
        /// The damaged page, 4 KiB each, from 0.
        page: u64,
    },
}

impl SearchError {
    /// Whether the query was stopped by its caller, by time or by hand; nothing else is wrong then.
    #[must_use]
    pub fn is_stop(&self) -> bool {
        matches!(self, Self::TimedOut { .. } | Self::Cancelled)
    }
}
