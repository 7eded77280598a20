//! Pages from memory: for tests, and for files small enough to load whole.
//!
//! Nothing is copied per read. Reads end when they are flushed, in the order they were submitted.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::slots::Slots;
use crate::watchdog::Over;
use crate::{AlignedBuf, Backend, Completion, PAGE, PageReader, ReadError, Slot};

pub(crate) struct MemReader {
    pages: Arc<AlignedBuf>,
    slots: Slots,
    /// First page by slot.
    first: Vec<usize>,
    queued: VecDeque<u32>,
    flushed: usize,
}

impl MemReader {
    pub(crate) fn new(pages: Arc<AlignedBuf>, slots: Slots) -> MemReader {
        MemReader { pages, first: vec![0; slots.len()], queued: VecDeque::new(), slots, flushed: 0 }
    }
}

impl PageReader for MemReader {
    fn submit(&mut self, tag: u64, first: u64, count: u32) -> Result<(), ReadError> {
        let slot = self.slots.begin(tag, first, count)?;
        // Cannot truncate: `begin` has checked the page against what is in memory.
        self.first[slot as usize] = first as usize;
        if !self.slots.silenced(slot) {
            self.queued.push_back(slot);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ReadError> {
        self.flushed = self.queued.len();
        Ok(())
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> Result<usize, ReadError> {
        let ended = std::mem::take(&mut self.flushed);
        for slot in self.queued.drain(..ended) {
            while let Some(request) = self.slots.request(slot) {
                let read = request.rest().len();
                done.extend(self.slots.advance(slot, Ok(read)));
            }
        }
        Ok(ended)
    }

    fn wait_at_most(
        &mut self,
        limit: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<usize, ReadError> {
        self.slots.expect_reads()?;
        self.flush()?;
        if self.flushed > 0 {
            return self.poll(done);
        }
        // Only an injected silence leaves a read that does not end.
        let patience = self.slots.patience(limit);
        while patience.over().is_none() {
            thread::sleep(patience.left().unwrap_or(Duration::MAX));
        }
        if patience.over() == Some(Over::Limit) {
            return Ok(0);
        }
        let error = self.slots.no_answer(Backend::Memory);
        self.slots.abandon();
        Err(error)
    }

    fn bytes(&self, slot: Slot) -> &[u8] {
        let len = self.slots.ready_len(slot);
        let start = self.first[slot.index()] * PAGE;
        &self.pages[start..start + len]
    }

    fn release(&mut self, slot: Slot) {
        self.slots.release(slot);
    }

    fn in_flight(&self) -> usize {
        self.slots.reading()
    }

    fn drain(&mut self) {
        self.flushed = 0;
        for slot in self.queued.drain(..) {
            self.slots.discard(slot);
        }
        while self.in_flight() > 0 {
            // An injected silence; `wait` gives up.
            let _ = self.wait(&mut Vec::new());
        }
    }

    fn usable(&self) -> bool {
        self.slots.usable()
    }

    fn backend(&self) -> Backend {
        Backend::Memory
    }
}
