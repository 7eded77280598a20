//! Reads through an io_uring, one ring per reader (Linux).
//!
//! ```text
//! submit      -> queued            slots whose read may not start yet
//! flush       -> due               slots on their way; also reads that came back short
//! hand over   -> submission queue -> one system call -> device
//! poll, wait  <- completion queue  checked, counted, matched by slot number
//! ```
//!
//! No more reads are outstanding than the completion queue holds, so it never overflows. The ring
//! asks for COOP_TASKRUN: the kernel leaves completions for our next system call instead of
//! interrupting the scan, and tells by a flag when there are some, so an idle poll costs no call.
//! SINGLE_ISSUER and DEFER_TASKRUN are not used: they tie a ring to the thread that made it.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};

use crate::buffer::Slab;
use crate::locked::Locked;
use crate::reader::{Abandon, wait_out};
use crate::slots::Slots;
use crate::watchdog::{MAX_REFUSALS, Over, REFUSAL_PAUSE};
use crate::{Backend, Completion, PageReader, ReadError, Slot};

/// Slots whose buffers are registered. Registered memory is pinned, so all of it is in RAM; the
/// buffers of further slots, which only very deep queues use, take memory when they are used.
const REGISTERED_SLOTS: usize = 256;

pub(crate) struct UringReader {
    /// Declared before the slab, so closed before the slab is freed.
    ring: IoUring,
    slab: Slab,
    slots: Slots,
    queued: Vec<u32>,
    due: VecDeque<u32>,
    /// Reads in the submission queue, the device or the completion queue.
    outstanding: usize,
    registered: Registered,
    /// Whether the ring can wait for a limited time: Linux 5.11 or later.
    timed: bool,
    /// Kept open for the reads by descriptor.
    file: Arc<File>,
}

/// What the kernel has agreed to keep at hand between reads.
struct Registered {
    file: bool,
    buffers: Option<Locked>,
}

impl UringReader {
    pub(crate) fn new(file: Arc<File>, slots: Slots) -> Result<UringReader, ReadError> {
        let slab = Slab::zeroed(slots.len(), slots.slot_bytes())?;
        let ring = build(slots.len() as u32)
            .map_err(|cause| failed(&slots, "cannot set up a ring", cause))?;
        let registered = register(&ring, &file, &slab, slots.slot_bytes());
        let (room, timed) = (slots.len(), ring.params().is_feature_ext_arg());
        Ok(UringReader {
            ring,
            slab,
            slots,
            queued: Vec::with_capacity(room),
            due: VecDeque::with_capacity(room),
            outstanding: 0,
            registered,
            timed,
            file,
        })
    }

    fn take_queued(&mut self) {
        let slots = &self.slots;
        self.due.extend(self.queued.drain(..).filter(|&slot| !slots.silenced(slot)));
    }

    /// Moves due reads into the submission queue as far as there is room.
    fn fill(&mut self) {
        while self.outstanding < self.ring.params().cq_entries() as usize {
            let Some(&slot) = self.due.front() else { return };
            if let Some(entry) = self.entry(slot) {
                // SAFETY: the entry's buffer is a slot of `self.slab`, inside its bounds by the
                // book. The book says reading until the completion has been taken in, so the slot
                // is neither shown nor reused; and the slab outlives the read, because `drop`
                // waits for it or leaks the slab.
                let pushed = unsafe { self.ring.submission().push(&entry) };
                if pushed.is_err() {
                    return;
                }
                self.outstanding += 1;
            }
            self.due.pop_front();
        }
    }

    fn entry(&mut self, slot: u32) -> Option<squeue::Entry> {
        let request = self.slots.request(slot)?;
        let rest = request.rest();
        let buf = self.slab.slot(slot).wrapping_add(rest.start);
        let (len, offset) = (rest.len() as u32, request.offset());
        let fd = self.file.as_raw_fd();
        let pinned = self.registered.buffers.as_ref().filter(|_| slot < REGISTERED_SLOTS as u32);
        let entry = match (pinned, self.registered.file) {
            (Some(_), true) => {
                opcode::ReadFixed::new(types::Fixed(0), buf, len, 0).offset(offset).build()
            }
            (Some(_), false) => {
                opcode::ReadFixed::new(types::Fd(fd), buf, len, 0).offset(offset).build()
            }
            (None, true) => opcode::Read::new(types::Fixed(0), buf, len).offset(offset).build(),
            (None, false) => opcode::Read::new(types::Fd(fd), buf, len).offset(offset).build(),
        };
        Some(entry.user_data(u64::from(slot)))
    }

    /// Reads pushed but not yet taken by the kernel.
    fn pushed(&mut self) -> usize {
        self.ring.submission().len()
    }

    /// Hands over what is due, until it is all gone or the kernel takes no more for now.
    fn hand_over(&mut self) -> Result<(), ReadError> {
        loop {
            self.fill();
            let before = self.pushed();
            if before == 0 {
                return Ok(());
            }
            self.enter(0, None)?;
            if self.pushed() == before {
                return Ok(());
            }
        }
    }

    /// One system call: hands over the submission queue and waits for `want` completions, unless
    /// interrupted, and no longer than `limit`. `false` when the kernel has no room now. What it left
    /// stays in the queue.
    fn enter(&self, want: usize, limit: Option<Duration>) -> Result<bool, ReadError> {
        let entered = match limit {
            Some(limit) if self.timed => {
                let limit = types::Timespec::from(limit);
                let args = types::SubmitArgs::new().timespec(&limit);
                self.ring.submitter().submit_with_args(want, &args)
            }
            Some(limit) => self.ring.submit().and_then(|_| self.await_completion(limit)),
            None => self.ring.submit_and_wait(want),
        };
        match entered {
            Ok(_) => Ok(true),
            Err(cause) => match cause.raw_os_error() {
                Some(libc::EINTR | libc::ETIME) => Ok(true),
                Some(libc::EAGAIN | libc::EBUSY) => Ok(false),
                _ => Err(failed(&self.slots, "cannot enter the ring", cause)),
            },
        }
    }

    /// Waits no longer than `limit` where the ring itself cannot: its
    /// descriptor is readable when there is a completion.
    fn await_completion(&self, limit: Duration) -> io::Result<usize> {
        let mut ring = libc::pollfd { fd: self.ring.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let milliseconds = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX).saturating_add(1);
        // SAFETY: one whole pollfd, which lives through the call.
        let result = unsafe { libc::poll(&raw mut ring, 1, milliseconds) };
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    }

    /// Takes in what has completed, without a system call.
    fn reap(&mut self, done: &mut Vec<Completion>) -> usize {
        let before = done.len();
        for event in self.ring.completion() {
            self.outstanding -= 1;
            // The slot number is what `entry` put there.
            let slot = event.user_data() as u32;
            let outcome = usize::try_from(event.result())
                .map_err(|_| io::Error::from_raw_os_error(-event.result()));
            match self.slots.advance(slot, outcome) {
                Some(completion) => done.push(completion),
                None => self.due.push_back(slot),
            }
        }
        done.len() - before
    }
}

impl PageReader for UringReader {
    fn submit(&mut self, tag: u64, first: u64, count: u32) -> Result<(), ReadError> {
        self.queued.push(self.slots.begin(tag, first, count)?);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ReadError> {
        self.take_queued();
        self.hand_over()
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> Result<usize, ReadError> {
        let mut ended = self.reap(done);
        if ended == 0 && self.ring.submission().taskrun() {
            self.enter(0, None)?;
            ended = self.reap(done);
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
            self.fill();
            let accepted = if self.ring.completion().is_empty() {
                self.enter(1, patience.left())?
            } else {
                self.pushed() == 0 || self.enter(0, None)?
            };
            let ended = self.reap(done);
            if ended > 0 {
                return Ok(ended);
            }
            match patience.over() {
                Some(Over::Limit) => return Ok(0),
                Some(Over::Silence) => {
                    let error = self.slots.no_answer(Backend::IoUring);
                    self.abandon();
                    return Err(error);
                }
                None => {}
            }
            if !accepted {
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
        Backend::IoUring
    }
}

impl Abandon for UringReader {
    /// The kernel may still write to the slab: it can never be freed or read into again. Closing
    /// the ring does not wait for its reads.
    fn abandon(&mut self) {
        self.slab.leak();
        std::mem::forget(self.registered.buffers.take());
        self.slots.abandon();
    }
}

impl Drop for UringReader {
    fn drop(&mut self) {
        self.drain();
    }
}

/// A ring for `entries` reads, with what this kernel knows and fewer entries if memory is short.
fn build(entries: u32) -> io::Result<IoUring> {
    match build_with(true, entries) {
        // Before Linux 5.19.
        Err(cause) if cause.raw_os_error() == Some(libc::EINVAL) => build_with(false, entries),
        // Some kernels count a ring against RLIMIT_MEMLOCK.
        Err(cause) if cause.raw_os_error() == Some(libc::ENOMEM) && entries > 4 => {
            build(entries / 4)
        }
        result => result,
    }
}

fn build_with(cooperative: bool, entries: u32) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder.setup_clamp();
    if cooperative {
        builder.setup_coop_taskrun().setup_taskrun_flag();
    }
    builder.build(entries)
}

/// Saves the kernel a look-up and a pinning of pages per read, about a tenth of its work. Where it
/// refuses, reads work as well without.
fn register(ring: &IoUring, file: &File, slab: &Slab, slot_bytes: usize) -> Registered {
    let (base, len) = slab.whole();
    let len = len.min(REGISTERED_SLOTS * slot_bytes);
    let iovec = libc::iovec { iov_base: base.cast(), iov_len: len };
    let buffers = Locked::take(len).filter(|_| {
        // SAFETY: `len` bytes from the slab's start are in it, and it is freed only after the ring
        // has been closed, or never.
        unsafe { ring.submitter().register_buffers(&[iovec]) }.is_ok()
    });
    let file = ring.submitter().register_files(&[file.as_raw_fd()]).is_ok();
    Registered { file, buffers }
}

fn failed(slots: &Slots, doing: &'static str, cause: io::Error) -> ReadError {
    let path = slots.extent().path.clone();
    ReadError::Backend { path, backend: Backend::IoUring, doing, cause }
}

#[cfg(test)]
mod tests;
