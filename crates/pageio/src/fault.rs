//! Faults on demand, so that whatever reads pages can be tested against a disk that misbehaves.
//! Compiled with the feature `fault-injection` only; `fault/off.rs` stands in without it.
//!
//! ```text
//! submit     the faults are asked about the pages of the read, once
//! device     Silence: the read is never handed over
//! outcome    Fail, Short, Interrupt: instead of what the device says to the first attempt
//! report     Corrupt, Delay, Reorder: by a reader around the backend's own
//! ```
//!
//! So the code that copes with a fault is the backend's own, the watchdog included.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use pageio::{Fault, Faults, PageFile};
//! let good = PageFile::from_memory(vec![0; 8 * pageio::PAGE])?;
//! let bad = good.with_faults(Faults::new(|page| (page == 3).then_some(Fault::Fail)));
//! let mut out = vec![0; pageio::PAGE];
//! assert!(bad.read_pages(2, &mut out).is_ok());
//! assert!(bad.read_pages(3, &mut out).is_err());
//! # Ok(())
//! # }
//! ```

mod reader;

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use self::reader::FaultyReader;
use crate::request::{Extent, Request};
use crate::{PAGE, PageReader, ReadError};

/// What goes wrong with a read of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The device reports an I/O error (EIO).
    Fail,
    /// One bit of the page's first byte is flipped and nobody notices.
    Corrupt,
    /// The first attempt brings half of the bytes. No error: the backend reads the rest.
    Short,
    /// The first attempt is interrupted (EINTR). No error: the backend tries again.
    Interrupt,
    /// The completion is held back for this many calls of `poll` or `wait`.
    Delay(u32),
    /// The completion comes when no other read is in flight, the last to arrive first.
    Reorder,
    /// The device never answers.
    Silence,
}

/// Which pages go wrong, and how. Of a read of several pages the first faulty one decides.
#[derive(Clone)]
pub struct Faults(Arc<dyn Fn(u64) -> Option<Fault> + Send + Sync>);

impl Faults {
    /// `choose` is asked for the pages of a read in turn, up to the first faulty one, when the read
    /// is submitted: its answer may depend on what it has been asked before.
    ///
    /// A blocking read ([`PageFile::read_pages`](crate::PageFile::read_pages)) can fail or bring
    /// corrupted pages; other faults do not touch it.
    pub fn new(choose: impl Fn(u64) -> Option<Fault> + Send + Sync + 'static) -> Faults {
        Faults(Arc::new(choose))
    }

    fn find(&self, first: u64, count: u64) -> Option<Struck> {
        let found = (first..first + count).find_map(|page| Some((page, (self.0)(page)?)))?;
        Some(Struck { start: (found.0 - first) as usize * PAGE, fault: found.1 })
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faults")
    }
}

/// What was decided about a read.
#[derive(Clone, Copy, Debug)]
struct Struck {
    /// Where the faulty page starts in the read's buffer.
    start: usize,
    fault: Fault,
}

/// The faults of a file or a reader, if it has any, and what was decided about the reader's reads.
#[derive(Clone, Default)]
pub(crate) struct Injector {
    faults: Option<Faults>,
    by_slot: Arc<Mutex<Vec<Option<Struck>>>>,
}

impl Injector {
    pub(crate) fn new(faults: Faults) -> Injector {
        Injector { faults: Some(faults), by_slot: Arc::default() }
    }

    /// The same faults for a reader of its own.
    pub(crate) fn for_reader(&self) -> Injector {
        Injector { faults: self.faults.clone(), by_slot: Arc::default() }
    }

    /// The reader that a caller gets.
    pub(crate) fn wrap(self, reader: Box<dyn PageReader>) -> Box<dyn PageReader> {
        if self.faults.is_none() {
            return reader;
        }
        Box::new(FaultyReader::new(reader, self))
    }

    /// Asks about a read that is being submitted.
    pub(crate) fn decide(&self, slot: u32, first: u64, count: u32) -> Harm {
        let Some(faults) = &self.faults else { return Harm::default() };
        let struck = faults.find(first, u64::from(count));
        let mut by_slot = self.by_slot.lock().unwrap_or_else(PoisonError::into_inner);
        if by_slot.len() <= slot as usize {
            by_slot.resize(slot as usize + 1, None);
        }
        by_slot[slot as usize] = struck;
        Harm(struck)
    }

    /// What was decided about the latest read of a slot.
    fn decided(&self, slot: usize) -> Option<Struck> {
        let by_slot = self.by_slot.lock().unwrap_or_else(PoisonError::into_inner);
        by_slot.get(slot).copied().flatten()
    }

    /// The blocking read's share: fails or corrupts what has been read into `out`.
    pub(crate) fn strike(
        &self,
        extent: &Extent,
        first: u64,
        out: &mut [u8],
    ) -> Result<(), ReadError> {
        let Some(faults) = &self.faults else { return Ok(()) };
        match faults.find(first, (out.len() / PAGE) as u64) {
            Some(Struck { start, fault: Fault::Fail }) => {
                let page = first + (start / PAGE) as u64;
                Err(Request::new(0, page, PAGE).failed(extent, device_error()))
            }
            Some(Struck { start, fault: Fault::Corrupt }) => {
                out[start] ^= 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// What a request knows of its fault.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Harm(Option<Struck>);

impl Harm {
    /// Whether the read is never handed to the device.
    pub(crate) fn silences(self) -> bool {
        self.0.is_some_and(|struck| struck.fault == Fault::Silence)
    }

    /// What the backend hears instead of what the device `said` to the first attempt. `done` is
    /// how many bytes have come, up to the faulty page if there is one.
    pub(crate) fn alter(&mut self, done: &mut usize, said: io::Result<usize>) -> io::Result<usize> {
        let Some(struck) = self.0.take() else { return said };
        match struck.fault {
            Fault::Fail => {
                *done = struck.start;
                Err(device_error())
            }
            Fault::Short => said.map(|bytes| bytes / 2),
            Fault::Interrupt => Err(io::Error::from_raw_os_error(libc::EINTR)),
            _ => said,
        }
    }
}

fn device_error() -> io::Error {
    io::Error::from_raw_os_error(libc::EIO)
}
