//! A reader whose completions come late, in another order, or with wrong bytes.

use std::collections::HashMap;
use std::time::Duration;

use super::{Fault, Injector};
use crate::{AlignedBuf, Backend, Completion, PageReader, ReadError, Slot};

pub(super) struct FaultyReader {
    inner: Box<dyn PageReader>,
    injector: Injector,
    held: Vec<Held>,
    /// What is shown instead of the inner reader's buffer, by slot.
    shown: HashMap<Slot, AlignedBuf>,
}

/// A completion that the caller does not hear of yet.
struct Held {
    /// `None`: until nothing else is in flight.
    calls_left: Option<u32>,
    completion: Completion,
}

impl FaultyReader {
    pub(super) fn new(inner: Box<dyn PageReader>, injector: Injector) -> FaultyReader {
        FaultyReader { inner, injector, held: Vec::new(), shown: HashMap::new() }
    }

    /// Applies the faults to what the inner reader reported.
    fn strike(
        &mut self,
        arrived: Vec<Completion>,
        done: &mut Vec<Completion>,
    ) -> Result<(), ReadError> {
        for completion in arrived {
            let struck = self.injector.decided(completion.slot.index());
            match struck.map(|struck| (struck.fault, struck.start)) {
                Some((Fault::Delay(calls), _)) => {
                    self.held.push(Held { calls_left: Some(calls), completion });
                    continue;
                }
                Some((Fault::Reorder, _)) => {
                    self.held.push(Held { calls_left: None, completion });
                    continue;
                }
                Some((Fault::Corrupt, start)) if completion.result.is_ok() => {
                    let bytes = self.inner.bytes(completion.slot);
                    let mut copy = AlignedBuf::zeroed(bytes.len() / crate::PAGE)?;
                    copy.copy_from_slice(bytes);
                    copy[start] ^= 1;
                    self.shown.insert(completion.slot, copy);
                }
                _ => {}
            }
            done.push(completion);
        }
        Ok(())
    }

    /// Lets a call go by for the completions held back.
    fn tick(&mut self, done: &mut Vec<Completion>) {
        for calls in self.held.iter_mut().filter_map(|held| held.calls_left.as_mut()) {
            *calls = calls.saturating_sub(1);
        }
        let due = self.held.extract_if(.., |held| held.calls_left == Some(0));
        done.extend(due.map(|held| held.completion));
        let only_reordered = self.held.iter().all(|held| held.calls_left.is_none());
        if self.inner.in_flight() == 0 && only_reordered {
            done.extend(self.held.drain(..).rev().map(|held| held.completion));
        }
    }
}

impl PageReader for FaultyReader {
    fn submit(&mut self, tag: u64, first: u64, count: u32) -> Result<(), ReadError> {
        self.inner.submit(tag, first, count)
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

    fn wait_at_most(
        &mut self,
        limit: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<usize, ReadError> {
        if self.in_flight() == 0 {
            return self.inner.wait_at_most(limit, done);
        }
        let before = done.len();
        self.inner.flush()?;
        while done.len() == before {
            self.tick(done);
            let mut arrived = Vec::new();
            if done.len() > before || self.inner.in_flight() == 0 {
                self.inner.poll(&mut arrived)?;
            } else {
                if self.inner.wait_at_most(limit, &mut arrived)? == 0 {
                    break;
                }
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
        for held in std::mem::take(&mut self.held) {
            self.inner.release(held.completion.slot);
        }
    }

    fn usable(&self) -> bool {
        self.inner.usable()
    }

    fn backend(&self) -> Backend {
        self.inner.backend()
    }
}
