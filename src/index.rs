//! [`Index`]: what people import.

use std::path::Path;
use std::sync::Arc;

use dataset::Base;
use pageio::PageFile;

use crate::build::{self, BuildReport};
use crate::config::{BuildOptions, OpenOptions, SearchOptions};
use crate::error::{BuildError, OpenError, SearchError};
use crate::info::IndexInfo;
use crate::progress::Progress;
use crate::search::{self, SearchResult, Trace, Workers};
use crate::store::parts::Parts;

/// An index on disk, open for searching. Shared freely between threads.
pub struct Index {
    parts: Parts,
    workers: Workers,
}

impl Index {
    /// Builds an index of the rows of `base` in the directory `out`, which must not exist unless
    /// [`BuildOptions::overwrite`] is set.
    ///
    /// The directory appears when everything is written, or not at all. The same rows, options and
    /// seed give the same files, whatever the number of threads.
    ///
    /// # Errors
    /// See [`BuildError`]; nothing is left behind, and nothing that existed is touched.
    pub fn build(
        base: &Base,
        out: &Path,
        o: &BuildOptions,
        progress: &dyn Progress,
    ) -> Result<BuildReport, BuildError> {
        build::build(base, out, o, progress)
    }

    /// Opens the index in `dir`, checking every resident file against its checksum.
    ///
    /// # Errors
    /// See [`OpenError`]: what is missing, damaged, or of another build or format is named.
    pub fn open(dir: &Path, o: &OpenOptions) -> Result<Self, OpenError> {
        Ok(Self { parts: Parts::open(dir, o)?, workers: Workers::default() })
    }

    /// The same index with its records on a disk that misbehaves, for tests of programs that embed it:
    /// `faults` is asked about the pages of `records.bin`.
    #[cfg(feature = "fault-injection")]
    #[must_use]
    pub fn with_faults(mut self, faults: pageio::Faults) -> Self {
        // Idle readers are the only others that hold the file.
        self.workers = Workers::default();
        if let Some(file) = std::sync::Arc::get_mut(&mut self.parts.records.file) {
            file.set_faults(faults);
        }
        self
    }

    /// The `k` rows nearest to `query` (dim values) among the lists it visits.
    ///
    /// # Errors
    /// See [`SearchError`]; the index stays usable.
    pub fn search(&self, query: &[f32], o: &SearchOptions) -> Result<SearchResult, SearchError> {
        search::search(&self.parts, &self.workers, query, o)
    }

    /// Like [`search`](Self::search), and says what happened when. The default number of reads in
    /// flight is that of a single thread.
    ///
    /// # Errors
    /// See [`SearchError`]; the index stays usable.
    pub fn trace(
        &self,
        query: &[f32],
        o: &SearchOptions,
    ) -> Result<(SearchResult, Trace), SearchError> {
        search::trace(&self.parts, &self.workers, query, o)
    }

    /// Answers `queries` (rows of dim values) on `threads` threads, in their order.
    ///
    /// # Errors
    /// The first error of any query, see [`SearchError`].
    pub fn search_batch(
        &self,
        queries: &[f32],
        o: &SearchOptions,
        threads: usize,
    ) -> Result<Vec<SearchResult>, SearchError> {
        search::search_batch(&self.parts, &self.workers, queries, o, threads)
    }

    /// Parameters, sizes and how the index is read.
    #[must_use]
    pub fn info(&self) -> IndexInfo {
        IndexInfo::of(&self.parts)
    }

    /// What about these options will not do what it says, in sentences.
    #[must_use]
    pub fn warnings(&self, o: &SearchOptions) -> Vec<String> {
        let nlist = self.parts.shape.nlist;
        let mut warnings = Vec::new();
        if o.nprobe > nlist {
            warnings.push(format!(
                "nprobe {} is more than the index's {nlist} lists: all lists are visited",
                o.nprobe
            ));
        }
        if o.k as u64 > self.parts.manifest.n {
            warnings.push(format!(
                "k {} is more than the index's {} rows: at most that many come back",
                o.k, self.parts.manifest.n
            ));
        }
        warnings
    }

    /// The record file, for measuring what the disk under it can do.
    #[must_use]
    pub fn page_file(&self) -> &Arc<PageFile> {
        &self.parts.records.file
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Values in a row.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.parts.shape.dim
    }

    /// Inverted lists.
    #[must_use]
    pub fn nlist(&self) -> usize {
        self.parts.shape.nlist
    }
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("dir", &self.parts.dir).finish_non_exhaustive()
    }
}
