//! One read-only file of pages, shared by every thread that reads it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

#[cfg(feature = "fault-injection")]
use crate::fault::Faults;
use crate::fault::Injector;
use crate::mem::MemReader;
use crate::options::check_slots;
use crate::pool::{Pool, PoolReader};
use crate::request::{Extent, Request};
use crate::slots::Slots;
use crate::{
    AlignedBuf, Backend, Direct, OpenError, OpenOptions, PAGE, PageReader, ReadError, choose,
    direct, refusal,
};

/// Pages copied at a time when a direct read's target is not aligned.
const BOUNCE_PAGES: usize = 64;

/// A file of 4096-byte pages, open for reading.
pub struct PageFile {
    extent: Arc<Extent>,
    options: OpenOptions,
    source: Source,
    why: Vec<String>,
    /// Why a reader runs on the pool though the file's backend is another: the first such reason.
    fell_back: OnceLock<String>,
    faults: Injector,
}

enum Source {
    Disk { file: Arc<File>, direct: bool, backend: Backend, pool: OnceLock<Arc<Pool>> },
    Memory(Arc<AlignedBuf>),
}

impl PageFile {
    /// Opens a file and proves with a real read that pages can be read from it.
    ///
    /// # Errors
    /// When the file is no whole number of pages, and when a backend or direct mode was demanded
    /// that cannot run here: the error names the cause and the remedy.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<PageFile, OpenError> {
        options.check()?;
        let mut why = Vec::new();
        let in_memory = options.backend == Backend::Memory;
        let mode = if in_memory { Direct::Off } else { options.direct };
        let (file, extent, direct) = direct::open(path, mode, &mut why)?;
        let extent = Arc::new(extent);
        let source = if in_memory {
            Source::Memory(Arc::new(direct::load(&file, &extent)?))
        } else {
            let file = Arc::new(file);
            let backend = choose::backend(options, &file, direct, &extent, &mut why)?;
            Source::Disk { file, direct, backend, pool: OnceLock::new() }
        };
        let (options, fell_back) = (options.clone(), OnceLock::new());
        Ok(PageFile { extent, options, source, why, fell_back, faults: Injector::default() })
    }

    /// Pages that are already in memory, for tests and for indexes that never touch a disk.
    ///
    /// # Errors
    /// When `bytes` is no whole number of pages.
    pub fn from_memory(bytes: Vec<u8>) -> Result<PageFile, OpenError> {
        let path = PathBuf::from("(memory)");
        if !bytes.len().is_multiple_of(PAGE) {
            return Err(OpenError::Length { path, found: bytes.len() as u64 });
        }
        let mut pages = AlignedBuf::zeroed(bytes.len() / PAGE)?;
        pages.copy_from_slice(&bytes);
        Ok(PageFile {
            extent: Arc::new(Extent { path, pages: (bytes.len() / PAGE) as u64 }),
            options: OpenOptions { backend: Backend::Memory, ..OpenOptions::default() },
            source: Source::Memory(Arc::new(pages)),
            why: Vec::new(),
            fell_back: OnceLock::new(),
            faults: Injector::default(),
        })
    }

    /// The same file with other numbers of slots and pages per read for its readers.
    ///
    /// # Errors
    /// [`OpenError::Option`] when a number is out of range.
    pub fn with_slots(mut self, slots: u32, max_pages_per_read: u32) -> Result<Self, OpenError> {
        self.options.slots = slots;
        self.options.max_pages_per_read = max_pages_per_read;
        self.options.check()?;
        Ok(self)
    }

    /// The same file on a disk that misbehaves: for tests of what reads pages.
    #[cfg(feature = "fault-injection")]
    pub fn with_faults(mut self, faults: Faults) -> Self {
        self.set_faults(faults);
        self
    }

    /// As [`with_faults`](Self::with_faults), for the readers still to come.
    #[cfg(feature = "fault-injection")]
    pub fn set_faults(&mut self, faults: Faults) {
        self.faults = Injector::new(faults);
    }

    /// The file's name, or `(memory)`.
    pub fn path(&self) -> &Path {
        &self.extent.path
    }

    /// Pages in the file, when it was opened.
    pub fn pages(&self) -> u64 {
        self.extent.pages
    }

    /// What carries the reads; never `Auto`.
    pub fn backend(&self) -> Backend {
        match self.source {
            Source::Disk { backend, .. } => backend,
            Source::Memory(_) => Backend::Memory,
        }
    }

    /// Whether reads go around the page cache.
    pub fn direct(&self) -> bool {
        matches!(self.source, Source::Disk { direct: true, .. })
    }

    /// What was skipped on the way to `backend()` and `direct()` and why, one sentence each; also why
    /// a reader had to do without that backend, once one had to.
    pub fn why(&self) -> Vec<String> {
        self.why.iter().chain(self.fell_back.get()).cloned().collect()
    }

    /// Most pages one read may ask for.
    pub fn max_pages_per_read(&self) -> u32 {
        self.options.max_pages_per_read
    }

    /// A reader for one thread, to be kept for many queries.
    ///
    /// # Errors
    /// When the system has no room for one more: memory, threads, file descriptors. A ring or
    /// context that is refused is an error only if that backend was demanded: with `auto` the reader
    /// runs on the pool, and `why` says so.
    pub fn reader(self: &Arc<Self>) -> Result<Box<dyn PageReader>, ReadError> {
        self.reader_with_slots(self.options.slots)
    }

    /// A reader with its own number of slots.
    ///
    /// # Errors
    /// As [`reader`](Self::reader); [`ReadError::Option`] when `slots` is out of range.
    pub fn reader_with_slots(
        self: &Arc<Self>,
        slots: u32,
    ) -> Result<Box<dyn PageReader>, ReadError> {
        check_slots(slots, self.options.max_pages_per_read)?;
        let faults = self.faults.for_reader();
        let reader = self.plain_reader(slots, &faults)?;
        Ok(faults.wrap(reader))
    }

    fn plain_reader(
        &self,
        slots: u32,
        faults: &Injector,
    ) -> Result<Box<dyn PageReader>, ReadError> {
        let book = || Slots::new(Arc::clone(&self.extent), slots, &self.options, faults.clone());
        match &self.source {
            Source::Memory(pages) => Ok(Box::new(MemReader::new(Arc::clone(pages), book()))),
            Source::Disk { file, backend, pool, .. } => {
                if *backend != Backend::Pread {
                    match choose::reader(*backend, file, book()) {
                        Ok(reader) => return Ok(reader),
                        Err(error) if self.options.backend == Backend::Auto => {
                            self.fell_back.get_or_init(|| refusal::fallback(*backend, &error));
                        }
                        Err(error) => return Err(refusal::of_reader(error)),
                    }
                }
                let pool = pool.get_or_init(|| self.new_pool(file));
                Ok(Box::new(PoolReader::new(Arc::clone(pool), book())?))
            }
        }
    }

    fn new_pool(&self, file: &Arc<File>) -> Arc<Pool> {
        Arc::new(Pool::new(Arc::clone(file), Arc::clone(&self.extent)))
    }

    /// Reads `out.len() / 4096` pages starting at page `first`, blocking. Any number of pages and
    /// any alignment of `out`; an aligned one ([`AlignedBuf`]) saves a copy.
    pub fn read_pages(&self, first: u64, out: &mut [u8]) -> Result<(), ReadError> {
        if !out.len().is_multiple_of(PAGE) {
            let path = self.extent.path.clone();
            return Err(ReadError::Buffer { path, page: first, found: out.len() });
        }
        self.extent.check(first, (out.len() / PAGE) as u64)?;
        match &self.source {
            Source::Memory(pages) => {
                let start = first as usize * PAGE;
                out.copy_from_slice(&pages[start..start + out.len()]);
            }
            Source::Disk { file, direct, .. }
                if *direct && !out.as_ptr().addr().is_multiple_of(PAGE) =>
            {
                self.read_through_bounce(file, first, out)?;
            }
            Source::Disk { file, .. } => {
                Request::new(0, first, out.len()).read(file, &self.extent, out)?;
            }
        }
        self.faults.strike(&self.extent, first, out)
    }

    fn read_through_bounce(
        &self,
        file: &File,
        mut first: u64,
        out: &mut [u8],
    ) -> Result<(), ReadError> {
        let mut bounce = AlignedBuf::zeroed(BOUNCE_PAGES.min(out.len() / PAGE))?;
        for part in out.chunks_mut(BOUNCE_PAGES * PAGE) {
            let aligned = &mut bounce[..part.len()];
            Request::new(0, first, part.len()).read(file, &self.extent, aligned)?;
            part.copy_from_slice(aligned);
            first += (part.len() / PAGE) as u64;
        }
        Ok(())
    }

    pub(crate) fn extent(&self) -> &Extent {
        &self.extent
    }
}
