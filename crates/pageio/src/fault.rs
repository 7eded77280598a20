//! Faults on demand, so that whatever reads pages can be tested against a disk that misbehaves.
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

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::Arc;

use crate::request::{Extent, Request};
use crate::{AlignedBuf, Backend, Completion, PAGE, PageReader, ReadError, Slot};

/// What goes wrong with a read of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The device reports an I/O error (EIO).
    Fail,
    /// One bit of the page's first byte is flipped and nobody notices.
    Corrupt,
    /// The completion is held back for this many calls of `poll` or `wait`.
    Delay(u32),
}

/// Which pages go wrong, and how. Of a read of several pages the first faulty one decides.
#[derive(Clone)]
pub struct Faults(Arc<dyn Fn(u64) -> Option<Fault> + Send + Sync>);

impl Faults {
    /// `choose` is asked for every page read.
    pub fn new(choose: impl Fn(u64) -> Option<Fault> + Send + Sync + 'static) -> Faults {
        Faults(Arc::new(choose))
    }

    fn find(&self, first: u64, count: u64) -> Option<(u64, Fault)> {
        (first..first + count).find_map(|page| Some((page, (self.0)(page)?)))
    }

    /// The blocking read's share: fails or corrupts what has been read into `out`.
    pub(crate) fn strike(
        &self,
        extent: &Extent,
        first: u64,
        out: &mut [u8],
    ) -> Result<(), ReadError> {
        match self.find(first, (out.len() / PAGE) as u64) {
            Some((page, Fault::Fail)) => Err(device_error(extent, page)),
            Some((page, Fault::Corrupt)) => {
                out[(page - first) as usize * PAGE] ^= 1;
                Ok(())
            }
            Some((_, Fault::Delay(_))) | None => Ok(()),
        }
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faults")
    }
}

fn device_error(extent: &Extent, page: u64) -> ReadError {
    let cause = io::Error::from_raw_os_error(libc::EIO);
    Request::new(0, page, PAGE).failed(extent, cause)
}

/// A reader whose completions go wrong where `faults` says so.
pub(crate) struct FaultyReader {
    inner: Box<dyn PageReader>,
    extent: Arc<Extent>,
    faults: Faults,
    /// By the number that stands in for the caller's tag in the inner reader.
    asked: HashMap<u64, Asked>,
    next: u64,
    held: Vec<Held>,
    /// What is shown instead of the inner reader's buffer, by slot.
    shown: HashMap<Slot, AlignedBuf>,
}

struct Asked {
    tag: u64,
    first: u64,
    count: u32,
}

struct Held {
    calls_left: u32,
    completion: Completion,
}

impl FaultyReader {
    pub(crate) fn new(
        inner: Box<dyn PageReader>,
        extent: Arc<Extent>,
        faults: Faults,
    ) -> FaultyReader {
        FaultyReader {
            inner,
            extent,
            faults,
            asked: HashMap::new(),
            next: 0,
            held: Vec::new(),
            shown: HashMap::new(),
        }
    }

    /// Applies the faults to what the inner reader reported.
    fn strike(
        &mut self,
        arrived: Vec<Completion>,
        done: &mut Vec<Completion>,
    ) -> Result<(), ReadError> {
        for mut completion in arrived {
            let Some(asked) = self.asked.remove(&completion.tag) else { continue };
            completion.tag = asked.tag;
            match self.faults.find(asked.first, u64::from(asked.count)) {
                Some((_, Fault::Delay(calls_left))) => {
                    self.held.push(Held { calls_left, completion });
                    continue;
                }
                Some((page, Fault::Fail)) => {
                    completion.result = Err(device_error(&self.extent, page));
                    self.shown.insert(completion.slot, AlignedBuf::zeroed(0)?);
                }
                Some((page, Fault::Corrupt)) if completion.result.is_ok() => {
                    let mut copy = AlignedBuf::zeroed(asked.count as usize)?;
                    copy.copy_from_slice(self.inner.bytes(completion.slot));
                    copy[(page - asked.first) as usize * PAGE] ^= 1;
                    self.shown.insert(completion.slot, copy);
                }
                Some((_, Fault::Corrupt)) | None => {}
            }
            done.push(completion);
        }
        Ok(())
    }

    /// Lets a call go by for the completions held back.
    fn tick(&mut self, done: &mut Vec<Completion>) {
        for held in &mut self.held {
            held.calls_left = held.calls_left.saturating_sub(1);
        }
        let due = self.held.extract_if(.., |held| held.calls_left == 0);
        done.extend(due.map(|held| held.completion));
    }
}

impl PageReader for FaultyReader {
    fn submit(&mut self, tag: u64, first: u64, count: u32) -> Result<(), ReadError> {
        self.inner.submit(self.next, first, count)?;
        self.asked.insert(self.next, Asked { tag, first, count });
        self.next += 1;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ReadError> {
        self.inner.flush()
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> Result<usize, ReadError> {
        let before = done.len();
        self.tick(done);
        let mut arrived = Vec::new();
        self.inner.poll(&mut arrived)?;
        self.strike(arrived, done)?;
        Ok(done.len() - before)
    }

    fn wait(&mut self, done: &mut Vec<Completion>) -> Result<usize, ReadError> {
        if self.in_flight() == 0 {
            return Err(ReadError::Idle);
        }
        let before = done.len();
        self.inner.flush()?;
        while done.len() == before {
            self.tick(done);
            let mut arrived = Vec::new();
            if done.len() > before || self.inner.in_flight() == 0 {
                self.inner.poll(&mut arrived)?;
            } else {
                self.inner.wait(&mut arrived)?;
            }
            self.strike(arrived, done)?;
        }
        Ok(done.len() - before)
    }

    fn bytes(&self, slot: Slot) -> &[u8] {
        let bytes = self.inner.bytes(slot);
        self.shown.get(&slot).map_or(bytes, |shown| shown)
    }

    fn release(&mut self, slot: Slot) {
        self.shown.remove(&slot);
        self.inner.release(slot);
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight() + self.held.len()
    }

    fn drain(&mut self) {
        self.inner.drain();
        self.asked.clear();
        for held in std::mem::take(&mut self.held) {
            self.inner.release(held.completion.slot);
        }
    }

    fn backend(&self) -> Backend {
        self.inner.backend()
    }
}
