//! Reads through kernel AIO, one context per reader (Linux): for where io_uring is forbidden, as in
//! most containers.
//!
//! ```text
//! submit      -> queued         slots whose read may not start yet
//! flush       -> due            slots on their way; also reads that came back short
//! hand over   -> io_submit   -> device, as many as the context has room for
//! poll, wait  <- io_getevents   checked, counted, matched by slot number
//! ```
//!
//! It is asynchronous with O_DIRECT only: a read through the page cache is done by io_submit
//! itself, which is why the automatic choice skips it for such a file.

mod context;
mod idle;

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use self::context::{BATCH, Context, Entry, Event};
use crate::buffer::Slab;
use crate::reader::{Abandon, wait_out};
use crate::slots::Slots;
use crate::watchdog::{MAX_REFUSALS, Over, REFUSAL_PAUSE};
use crate::{Backend, Completion, PageReader, ReadError, Slot};

/// Most events of a context. All processes share fs.aio-max-nr of them, 65,536 unless changed, and
/// no device works on more at a time; further reads wait in the reader.
const MAX_EVENTS: u32 = 1024;
/// With fewer than these the thread pool is faster.
const MIN_EVENTS: u32 = 16;

pub(crate) struct AioReader {
    /// Declared before the slab, so destroyed before the slab is freed.
    context: Context,
    slab: Slab,
    slots: Slots,
    queued: Vec<u32>,
    due: VecDeque<u32>,
    file: Arc<File>,
}

impl AioReader {
    pub(crate) fn new(file: Arc<File>, slots: Slots) -> Result<AioReader, ReadError> {
        let slab = Slab::zeroed(slots.len(), slots.slot_bytes())?;
        let context = build((slots.len() as u32).min(MAX_EVENTS))
            .map_err(|cause| failed(&slots, "cannot set up a context", cause))?;
        let room = slots.len();
        Ok(AioReader {
            context,
            slab,
            slots,
            queued: Vec::with_capacity(room),
            due: VecDeque::with_capacity(room),
            file,
        })
    }

    fn take_queued(&mut self) {
        let slots = &self.slots;
        self.due.extend(self.queued.drain(..).filter(|&slot| !slots.silenced(slot)));
    }

    /// Hands over what is due, until it is all gone or the context is full. `false` when the
    /// kernel has no room now; what it left stays due.
    fn hand_over(&mut self) -> Result<bool, ReadError> {
        loop {
            let room = BATCH.min(self.context.room());
            let mut entries = [Entry::default(); BATCH];
            let count = self.fill(&mut entries[..room]);
            if count == 0 {
                return Ok(true);
            }
            // SAFETY: each buffer is a slot of `self.slab`, inside its bounds by the book. The book
            // says reading until the event has been taken in, so the slot is neither shown nor
            // reused; and the slab outlives the read, because `drop` collects it or leaks the slab.
            match unsafe { self.context.submit(&mut entries[..count]) } {
                Ok(0) => return Ok(false),
                Ok(taken) => {
                    self.due.drain(..taken);
                }
                Err(cause) => match cause.raw_os_error() {
                    Some(libc::EAGAIN | libc::EINTR) => return Ok(false),
                    _ => return Err(failed(&self.slots, "cannot submit reads", cause)),
                },
            }
        }
    }

    /// Entries for the first reads that are due.
    fn fill(&mut self, entries: &mut [Entry]) -> usize {
        let fd = self.file.as_raw_fd();
        let mut count = 0;
        while count < entries.len() {
            let Some(&slot) = self.due.get(count) else { break };
            let Some(request) = self.slots.request(slot) else {
                self.due.remove(count);
                continue;
            };
            let rest = request.rest();
            let buf = self.slab.slot(slot).wrapping_add(rest.start);
            entries[count] = Entry::read(u64::from(slot), fd, buf, rest.len(), request.offset());
            count += 1;
        }
        count
    }

    /// Takes in what has ended, after waiting for `least` reads but not longer than `limit`.
    fn reap(
        &mut self,
        mut least: usize,
        limit: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<usize, ReadError> {
        let before = done.len();
        let mut events = [Event::default(); BATCH];
        loop {
            let count = match self.context.collect(least, limit, &mut events) {
                Ok(count) => count,
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => 0,
                Err(_) if done.len() > before => 0,
                Err(cause) => return Err(failed(&self.slots, "cannot collect reads", cause)),
            };
            for event in &events[..count] {
                // The slot number is what `fill` put there.
                let slot = event.data as u32;
                match self.slots.advance(slot, event.outcome()) {
                    Some(completion) => done.push(completion),
                    None => self.due.push_back(slot),
                }
            }
            if count < BATCH {
                return Ok(done.len() - before);
            }
            least = 0;
        }
    }
}

impl PageReader for AioReader {
    fn submit(&mut self, tag: u64, first: u64, count: u32) -> Result<(), ReadError> {
        self.queued.push(self.slots.begin(tag, first, count)?);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ReadError> {
        self.take_queued();
        self.hand_over().map(drop)
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> Result<usize, ReadError> {
        let mut ended = 0;
        if !self.context.is_empty() {
            ended = self.reap(0, Some(Duration::ZERO), done)?;
        }
        match self.hand_over() {
            Err(error) if ended == 0 => Err(error),
            _ => Ok(ended),
        }
    }

    fn wait_at_most(
        &mut self,
        limit: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<usize, ReadError> {
        self.slots.expect_reads()?;
        self.take_queued();
        let patience = self.slots.patience(limit);
        let mut refusals = 0;
        while refusals < MAX_REFUSALS {
            let accepted = self.hand_over()?;
            let nothing_comes = !accepted && self.context.in_flight() == 0;
            let ended = if nothing_comes { 0 } else { self.reap(1, patience.left(), done)? };
            if ended > 0 {
                return Ok(ended);
            }
            match patience.over() {
                Some(Over::Limit) => return Ok(0),
                Some(Over::Silence) => {
                    let error = self.slots.no_answer(Backend::Aio);
                    self.abandon();
                    return Err(error);
                }
                None => {}
            }
            if nothing_comes {
                refusals += 1;
                thread::sleep(REFUSAL_PAUSE);
            }
        }
        let cause = io::Error::from_raw_os_error(libc::EAGAIN);
        Err(failed(&self.slots, "the kernel takes no reads", cause))
    }

    fn bytes(&self, slot: Slot) -> &[u8] {
        let len = self.slots.ready_len(slot);
        // SAFETY: the book says ready: the slot exists, `len` bytes of it were read, and it goes
        // back to the kernel only after `release` and `submit`, which need `&mut self`.
        unsafe { self.slab.bytes(slot.0, len) }
    }

    fn release(&mut self, slot: Slot) {
        self.slots.release(slot);
    }

    fn in_flight(&self) -> usize {
        self.slots.reading()
    }

    fn drain(&mut self) {
        for slot in self.queued.drain(..).chain(self.due.drain(..)) {
            self.slots.discard(slot);
        }
        wait_out(self);
    }

    fn usable(&self) -> bool {
        self.slots.usable()
    }

    fn backend(&self) -> Backend {
        Backend::Aio
    }
}

impl Abandon for AioReader {
    /// The kernel may still write to the slab: it can never be freed or read into again.
    fn abandon(&mut self) {
        self.context.abandon();
        self.slab.leak();
        self.slots.abandon();
    }
}

impl Drop for AioReader {
    fn drop(&mut self) {
        self.drain();
    }
}

/// A context for `events` reads, or for fewer if the system has few left.
fn build(events: u32) -> io::Result<Context> {
    match Context::take(events) {
        Err(cause) if cause.raw_os_error() == Some(libc::EAGAIN) && events / 4 >= MIN_EVENTS => {
            build(events / 4)
        }
        result => result,
    }
}

fn failed(slots: &Slots, doing: &'static str, cause: io::Error) -> ReadError {
    let path = slots.extent().path.clone();
    ReadError::Backend { path, backend: Backend::Aio, doing, cause }
}
