//! Which slot is free, being read, or ready: the book that every reader keeps.
//!
//! No backend touches a buffer on its own judgement: `bytes` of a slot are shown only while this
//! book says ready, and a slot is read into only while it says reading.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::fault::Injector;
use crate::request::{Extent, Request, Step};
use crate::watchdog::Patience;
use crate::{Backend, Completion, OpenOptions, PAGE, ReadError, Slot};

pub(crate) struct Slots {
    extent: Arc<Extent>,
    max_pages: u32,
    state: Vec<State>,
    /// A stack, so that the buffer last used, still in the CPU's cache, is used next.
    free: Vec<u32>,
    reading: usize,
    /// How long the device may keep silent while somebody waits.
    timeout: Option<Duration>,
    /// Since when somebody has waited and nothing has come back.
    silent_since: Option<Instant>,
    /// Given up: the kernel may still write to slots that nobody waits for.
    abandoned: bool,
    injector: Injector,
}

enum State {
    Free,
    Reading(Request),
    /// With the bytes that may be shown: 0 after a failed read.
    Ready(usize),
}

impl Slots {
    /// The book of a reader with `slots` slots, whatever the options say of them.
    pub(crate) fn new(
        extent: Arc<Extent>,
        slots: u32,
        options: &OpenOptions,
        injector: Injector,
    ) -> Slots {
        Slots {
            extent,
            max_pages: options.max_pages_per_read,
            timeout: options.timeout,
            silent_since: None,
            injector,
            abandoned: false,
            state: (0..slots).map(|_| State::Free).collect(),
            free: (0..slots).rev().collect(),
            reading: 0,
        }
    }

    pub(crate) fn extent(&self) -> &Extent {
        &self.extent
    }

    pub(crate) fn len(&self) -> usize {
        self.state.len()
    }

    /// Bytes of one slot's buffer.
    pub(crate) fn slot_bytes(&self) -> usize {
        self.max_pages as usize * PAGE
    }

    pub(crate) fn reading(&self) -> usize {
        self.reading
    }

    /// The time that a wait may take which begins now and should end within `limit`.
    pub(crate) fn patience(&mut self, limit: Option<Duration>) -> Patience {
        let silent_since = *self.silent_since.get_or_insert_with(Instant::now);
        Patience::new(limit, silent_since, self.timeout)
    }

    /// Whether the reader can go on.
    pub(crate) fn usable(&self) -> bool {
        !self.abandoned
    }

    /// An error unless there is something to wait for.
    pub(crate) fn expect_reads(&self) -> Result<(), ReadError> {
        match self.reading {
            0 if self.abandoned => Err(self.given_up()),
            0 => Err(ReadError::Idle),
            _ => Ok(()),
        }
    }

    fn given_up(&self) -> ReadError {
        ReadError::GivenUp { path: self.extent.path.clone() }
    }

    /// Takes a slot for a new read.
    pub(crate) fn begin(&mut self, tag: u64, first: u64, count: u32) -> Result<u32, ReadError> {
        if !(1..=self.max_pages).contains(&count) {
            return Err(ReadError::Count {
                path: self.extent.path.clone(),
                page: first,
                expected: self.max_pages,
                found: count,
            });
        }
        self.extent.check(first, u64::from(count))?;
        if self.abandoned {
            return Err(self.given_up());
        }
        if self.reading == 0 {
            self.silent_since = None;
        }
        let slot = self.free.pop().ok_or(ReadError::Full { slots: self.state.len() })?;
        let mut request = Request::new(tag, first, count as usize * PAGE);
        request.harm = self.injector.decide(slot, first, count);
        self.state[slot as usize] = State::Reading(request);
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

    /// Whether the slot's read is to be kept from the device: never without injected faults.
    pub(crate) fn silenced(&self, slot: u32) -> bool {
        match self.state.get(slot as usize) {
            Some(State::Reading(request)) => request.harm.silences(),
            _ => false,
        }
    }

    /// Ends the read that is using the slot; `None` if none is.
    pub(crate) fn end(&mut self, slot: u32, result: Result<(), ReadError>) -> Option<Completion> {
        let request = self.request(slot)?;
        let (tag, len) = (request.tag, request.len());
        self.state[slot as usize] = State::Ready(if result.is_ok() { len } else { 0 });
        self.reading -= 1;
        self.silent_since = None;
        Some(Completion { tag, slot: Slot(slot), result })
    }

    /// Takes in what an attempt brought; `None` while the read goes on.
    pub(crate) fn advance(&mut self, slot: u32, outcome: io::Result<usize>) -> Option<Completion> {
        let Some(State::Reading(request)) = self.state.get_mut(slot as usize) else { return None };
        match request.advance(&self.extent, outcome) {
            Ok(Step::Again) => None,
            Ok(Step::Ended) => self.end(slot, Ok(())),
            Err(error) => self.end(slot, Err(error)),
        }
    }

    /// Ends a read nobody wants and frees its slot.
    pub(crate) fn discard(&mut self, slot: u32) {
        if let Some(completion) = self.end(slot, Ok(())) {
            self.release(completion.slot);
        }
    }

    /// What to say of a wait that has lasted too long.
    pub(crate) fn no_answer(&self, backend: Backend) -> ReadError {
        let waiting = self.state.iter().find_map(|state| match state {
            State::Reading(request) => Some(request),
            State::Free | State::Ready(_) => None,
        });
        ReadError::NoAnswer {
            path: self.extent.path.clone(),
            page: waiting.map_or(0, Request::page),
            offset: waiting.map_or(0, Request::offset),
            reads: self.reading,
            seconds: self.timeout.unwrap_or_default().as_secs_f64(),
            backend,
        }
    }

    /// Gives up the slots still being read: they count as neither reading nor free again, and no
    /// new read is taken.
    pub(crate) fn abandon(&mut self) {
        self.abandoned = true;
        for state in &mut self.state {
            if matches!(state, State::Reading(_)) {
                *state = State::Free;
            }
        }
        self.reading = 0;
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
