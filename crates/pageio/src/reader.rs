//! The contract of a reader: queue, flush, collect, release.
//!
//! The life of a slot (one buffer of a reader):
//!
//! ```text
//! free --submit--> queued --flush--> in the device --poll, wait--> ready --release--> free
//!                    \______________ in_flight() ____/ \__ drain: straight back to free
//! ```

use std::time::Duration;

use crate::{Backend, ReadError};

/// One buffer of a reader, named by a completion. Only that reader's slots mean anything to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(pub(crate) u32);

impl Slot {
    /// The slot's number, below the reader's number of slots: for tables beside the reader.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A read that has ended, well or badly.
#[derive(Debug)]
pub struct Completion {
    /// What `submit` was given.
    pub tag: u64,
    /// The buffer: to be released by the caller **also when the read failed**.
    pub slot: Slot,
    /// Whether the pages are in the buffer. A failed read never shows part of its pages.
    pub result: Result<(), ReadError>,
}

/// Reads pages of one [`PageFile`](crate::PageFile), several at a time, for one thread.
///
/// A reader may be moved to another thread at any time. Dropping it waits for what is in flight, as
/// [`drain`](Self::drain) does.
pub trait PageReader: Send {
    /// Queues a read of `count` pages starting at page `first`; `tag` comes back with the
    /// completion and need not be unique. Nothing is in the device before [`flush`](Self::flush)
    /// (or a `wait`, which flushes).
    ///
    /// # Errors
    /// [`ReadError::Full`] when every slot is in flight or not yet released; `PastEnd`, `Count`
    /// for a read that cannot succeed. The reader is unchanged then.
    fn submit(&mut self, tag: u64, first: u64, count: u32) -> Result<(), ReadError>;

    /// Hands everything queued to the kernel. What the kernel has no room for yet stays queued
    /// and goes with the next `flush`, `poll` or `wait`.
    fn flush(&mut self) -> Result<(), ReadError>;

    /// Appends the reads that have ended to `done` and returns how many. Never blocks.
    fn poll(&mut self, done: &mut Vec<Completion>) -> Result<usize, ReadError>;

    /// Like `poll`, but flushes first and blocks until at least one read has ended.
    ///
    /// # Errors
    /// [`ReadError::Idle`] when nothing is in flight. [`ReadError::NoAnswer`] when no read has ended
    /// for [`OpenOptions::timeout`](crate::OpenOptions::timeout): the reader is then not
    /// [`usable`](Self::usable) any more, and dropping it does not wait.
    fn wait(&mut self, done: &mut Vec<Completion>) -> Result<usize, ReadError> {
        self.wait_at_most(None, done)
    }

    /// Like `wait`, but returns 0 when no read has ended within `limit`; the reads go on. Such waits
    /// in a row count as one for the timeout.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    fn wait_at_most(
        &mut self,
        limit: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<usize, ReadError>;

    /// The pages of a completion, aligned to [`PAGE`](crate::PAGE); empty when the read failed.
    ///
    /// # Panics
    /// When `slot` is not a completion's slot of this reader, or has been released.
    fn bytes(&self, slot: Slot) -> &[u8];

    /// Gives the buffer of a completion back.
    ///
    /// # Panics
    /// As [`bytes`](Self::bytes).
    fn release(&mut self, slot: Slot);

    /// Reads submitted and not yet reported by `poll` or `wait`, queued ones included.
    fn in_flight(&self) -> usize;

    /// Waits for everything in flight, no longer than a `wait` may, and throws it away, for use after
    /// an error or a cancelled search. Afterwards `in_flight()` is 0 and nothing writes to a buffer any more. Completions
    /// already reported keep their slots.
    fn drain(&mut self);

    /// `false` once it has given up on reads that do not come back: it takes no more, and a new
    /// reader is needed.
    fn usable(&self) -> bool;

    /// What this reader runs on. It differs from the file's backend only when that was chosen by
    /// `auto` and the system has no room for one more ring or context.
    fn backend(&self) -> Backend;
}

/// A reader whose reads may be given up: they count as ended, and it takes no more.
pub(crate) trait Abandon: PageReader {
    fn abandon(&mut self);
}

/// The second half of a `drain`: waits for what the device has, and throws it away.
pub(crate) fn wait_out(reader: &mut impl Abandon) {
    let mut discarded = Vec::new();
    while reader.in_flight() > 0 {
        if reader.wait(&mut discarded).is_err() {
            reader.abandon();
        }
    }
    for completion in discarded {
        reader.release(completion.slot);
    }
}
