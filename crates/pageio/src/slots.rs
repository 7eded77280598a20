//! Which slot is free, being read, or ready: the book that every reader keeps.
//!
//! No backend touches a buffer on its own judgement: `bytes` of a slot are shown only while this
//! book says ready, and a slot is read into only while it says reading.

use std::sync::Arc;

use crate::request::Request;
use crate::{Completion, PAGE, PageFile, ReadError, Slot};

pub(crate) struct Slots {
    file: Arc<PageFile>,
    state: Vec<State>,
    /// A stack, so that the buffer last used, still in the CPU's cache, is used next.
    free: Vec<u32>,
    reading: usize,
}

enum State {
    Free,
    Reading(Request),
    /// With the bytes that may be shown: 0 after a failed read.
    Ready(usize),
}

impl Slots {
    pub(crate) fn new(file: Arc<PageFile>, slots: u32) -> Slots {
        Slots {
            file,
            state: (0..slots).map(|_| State::Free).collect(),
            free: (0..slots).rev().collect(),
            reading: 0,
        }
    }

    pub(crate) fn file(&self) -> &Arc<PageFile> {
        &self.file
    }

    pub(crate) fn reading(&self) -> usize {
        self.reading
    }

    /// Takes a slot for a new read.
    pub(crate) fn begin(&mut self, tag: u64, first: u64, count: u32) -> Result<u32, ReadError> {
        let extent = self.file.extent();
        let most = self.file.max_pages_per_read();
        if !(1..=most).contains(&count) {
            return Err(ReadError::Count {
                path: extent.path.clone(),
                page: first,
                expected: most,
                found: count,
            });
        }
        extent.check(first, u64::from(count))?;
        let slot = self.free.pop().ok_or(ReadError::Full { slots: self.state.len() })?;
        self.state[slot as usize] = State::Reading(Request::new(tag, first, count as usize * PAGE));
        self.reading += 1;
        Ok(slot)
    }

    /// The read that is using the slot, if one is.
    pub(crate) fn request(&mut self, slot: u32) -> Option<&mut Request> {
        match self.state.get_mut(slot as usize) {
            Some(State::Reading(request)) => Some(request),
            _ => None,
        }
    }

    /// Ends the read that is using the slot; `None` if none is.
    pub(crate) fn end(&mut self, slot: u32, result: Result<(), ReadError>) -> Option<Completion> {
        let request = self.request(slot)?;
        let (tag, len) = (request.tag, request.len());
        self.state[slot as usize] = State::Ready(if result.is_ok() { len } else { 0 });
        self.reading -= 1;
        Some(Completion { tag, slot: Slot(slot), result })
    }

    /// Bytes that may be shown of a ready slot.
    pub(crate) fn ready_len(&self, slot: Slot) -> usize {
        match self.state.get(slot.index()) {
            Some(State::Ready(len)) => *len,
            _ => not_ready(slot),
        }
    }

    pub(crate) fn release(&mut self, slot: Slot) {
        match self.state.get_mut(slot.index()) {
            Some(state @ State::Ready(_)) => *state = State::Free,
            _ => not_ready(slot),
        }
        self.free.push(slot.0);
    }
}

/// The caller broke the contract of `PageReader`; going on would show bytes still being written.
#[allow(clippy::panic)]
#[cold]
fn not_ready(slot: Slot) -> ! {
    panic!("slot {} holds no completion: it was released or is another reader's", slot.index())
}
