//! One read and how far it has come: the rules for short, interrupted and failed reads, the same
//! for every backend.
//!
//! ```text
//! whole read        -> ended well
//! part of it        -> again, from the last whole page (a direct read must stay aligned)
//! nothing           -> the file has been cut: an error, never a half-filled page
//! EINTR, EAGAIN ... -> again, a few times
//! any other error   -> an error with page and file
//! ```

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::fault::Harm;
use crate::{PAGE, ReadError};

/// Attempts without a page gained before a read is given up, so that nothing tries for ever.
const MAX_STALLS: u32 = 16;

/// What there is to read.
#[derive(Debug)]
pub(crate) struct Extent {
    pub(crate) path: PathBuf,
    pub(crate) pages: u64,
}

impl Extent {
    /// Whether pages `first..first + count` exist.
    pub(crate) fn check(&self, first: u64, count: u64) -> Result<(), ReadError> {
        if first.checked_add(count).is_some_and(|end| end <= self.pages) {
            return Ok(());
        }
        let page = first.max(self.pages);
        Err(ReadError::PastEnd {
            path: self.path.clone(),
            page,
            offset: page.saturating_mul(PAGE as u64),
            pages: self.pages,
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) tag: u64,
    pub(crate) first: u64,
    /// Bytes wanted, a whole number of pages.
    len: usize,
    /// Bytes there, a whole number of pages.
    done: usize,
    stalls: u32,
    pub(crate) harm: Harm,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Ended,
    Again,
}

impl Request {
    pub(crate) fn new(tag: u64, first: u64, len: usize) -> Request {
        Request { tag, first, len, done: 0, stalls: 0, harm: Harm::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The part of the buffer still to be filled.
    pub(crate) fn rest(&self) -> std::ops::Range<usize> {
        self.done..self.len
    }

    /// Where in the file that part starts.
    pub(crate) fn offset(&self) -> u64 {
        self.first * PAGE as u64 + self.done as u64
    }

    /// The first page that is not there yet.
    pub(crate) fn page(&self) -> u64 {
        self.first + (self.done / PAGE) as u64
    }

    /// Takes in what an attempt to read `rest()` brought.
    pub(crate) fn advance(
        &mut self,
        extent: &Extent,
        outcome: io::Result<usize>,
    ) -> Result<Step, ReadError> {
        match self.harm.alter(&mut self.done, outcome) {
            Ok(read) => {
                let there = (self.done + read).min(self.len);
                let whole = there - there % PAGE;
                if whole > self.done {
                    self.done = whole;
                    self.stalls = 0;
                } else if read == 0 || self.stalls == MAX_STALLS {
                    return Err(self.short(extent, read));
                } else {
                    self.stalls += 1;
                }
                Ok(if self.done == self.len { Step::Ended } else { Step::Again })
            }
            Err(cause) if passes(&cause) && self.stalls < MAX_STALLS => {
                self.stalls += 1;
                Ok(Step::Again)
            }
            Err(cause) => Err(self.failed(extent, cause)),
        }
    }

    /// The whole read by `pread`, blocking.
    pub(crate) fn read(
        &mut self,
        file: &File,
        extent: &Extent,
        buf: &mut [u8],
    ) -> Result<(), ReadError> {
        while self.done < self.len {
            let outcome = file.read_at(&mut buf[self.rest()], self.offset());
            self.advance(extent, outcome)?;
        }
        Ok(())
    }

    pub(crate) fn failed(&self, extent: &Extent, cause: io::Error) -> ReadError {
        ReadError::Io { path: extent.path.clone(), page: self.page(), offset: self.offset(), cause }
    }

    fn short(&self, extent: &Extent, found: usize) -> ReadError {
        ReadError::Short {
            path: extent.path.clone(),
            page: self.page(),
            offset: self.offset(),
            expected: self.len - self.done,
            found,
        }
    }
}

/// Errors that say nothing about the page. A ring cancels a thread's reads when the thread ends,
/// which a reader moved to another thread must survive.
fn passes(cause: &io::Error) -> bool {
    matches!(cause.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::ECANCELED))
}

#[cfg(test)]
mod tests;
