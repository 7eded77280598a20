//! The four system calls of kernel AIO, and what each demands and promises.
//!
//! ```text
//! take      io_setup      takes its number of events from fs.aio-max-nr, which all processes share
//! submit    io_submit     takes some of the reads, from the front; entries are copied
//! collect   io_getevents  events of ended reads, waiting for some if told to
//! drop      io_destroy    waits until no read is in flight: then nobody writes to a buffer
//! ```
//!
//! io_destroy also waits until no CPU can be looking at the context, tens of milliseconds. A context
//! belongs to the process, not to a file or thread, so one without reads in flight is kept for the
//! next reader instead.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use libc::{c_long, c_ulong, c_void};

use super::idle;

/// Most reads per system call.
pub(super) const BATCH: usize = 64;
/// `IOCB_CMD_PREAD`.
const PREAD: u16 = 0;
/// `AIO_RING_MAGIC`.
const MAGIC: u32 = 0xa10a_10a1;

/// `struct iocb` of linux/aio_abi.h: the same on every machine, but for the order of two words
/// that are zero.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Entry {
    data: u64,
    key_and_rw_flags: [u32; 2],
    opcode: u16,
    priority: i16,
    fd: u32,
    buf: u64,
    len: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}

impl Entry {
    /// A read of `len` bytes at `offset` of `fd`; `data` comes back with its event.
    pub(super) fn read(data: u64, fd: i32, buf: *mut u8, len: usize, offset: u64) -> Entry {
        Entry {
            data,
            opcode: PREAD,
            fd: fd.cast_unsigned(),
            buf: buf.expose_provenance() as u64,
            len: len as u64,
            offset: offset.cast_signed(),
            ..Entry::default()
        }
    }
}

/// `struct io_event`: how a read ended.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Event {
    pub(super) data: u64,
    entry: u64,
    /// Bytes read, or a negated error number.
    result: i64,
    result2: i64,
}

impl Event {
    pub(super) fn outcome(&self) -> io::Result<usize> {
        usize::try_from(self.result)
            .map_err(|_| io::Error::from_raw_os_error(self.result.unsigned_abs() as i32))
    }
}

/// The start of `struct aio_ring`, which the kernel maps where the context's id points.
#[repr(C)]
struct Ring {
    id: u32,
    len: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
}

pub(super) struct Context {
    kept: Kept,
    /// Reads that the kernel has taken and whose events have not been collected.
    in_flight: usize,
    abandoned: bool,
}

/// A context in which no read is in flight.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    id: c_ulong,
    /// How many reads at a time.
    pub(super) events: u32,
}

impl Kept {
    pub(super) fn destroy(self) {
        // SAFETY: made by `setup`. Whoever owns it destroys it once: the list of idle contexts for
        // those it held, `Context` for its own.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.id) };
    }
}

impl Context {
    /// A context for `events` reads at a time, an idle one if there is one.
    pub(super) fn take(events: u32) -> io::Result<Context> {
        let kept = match idle::take(events) {
            Some(kept) => kept,
            None => Context::setup(events).or_else(|cause| {
                if idle::destroy_all() { Context::setup(events) } else { Err(cause) }
            })?,
        };
        Ok(Context { kept, in_flight: 0, abandoned: false })
    }

    fn setup(events: u32) -> io::Result<Kept> {
        let mut id: c_ulong = 0;
        // SAFETY: `id` lives through the call, is zero as it demands, and is all it writes to.
        checked(unsafe { libc::syscall(libc::SYS_io_setup, c_ulong::from(events), &raw mut id) })?;
        Ok(Kept { id, events })
    }

    /// Reads that the kernel has taken and whose events have not been collected.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Further reads that the context has room for.
    pub(super) fn room(&self) -> usize {
        (self.kept.events as usize).saturating_sub(self.in_flight)
    }

    /// Hands over reads from the front, at most [`BATCH`], and says how many the kernel took.
    ///
    /// # Safety
    /// The buffer of each entry may be written to until its event has been collected or the
    /// context has been dropped.
    pub(super) unsafe fn submit(&mut self, entries: &mut [Entry]) -> io::Result<usize> {
        let mut list = [ptr::null_mut::<Entry>(); BATCH];
        for (pointer, entry) in list.iter_mut().zip(entries.iter_mut()) {
            *pointer = entry;
        }
        let count = entries.len().min(BATCH) as c_long;
        // SAFETY: `list` holds `count` pointers to entries borrowed for the call, which copies
        // them; the buffers are the caller's promise.
        let taken = checked(unsafe {
            libc::syscall(libc::SYS_io_submit, self.kept.id, count, list.as_mut_ptr())
        })?;
        self.in_flight += taken;
        Ok(taken)
    }

    /// Whether no event waits, as far as can be told without a system call. The kernel sets `tail`
    /// after it has written an event; libaio looks in the same way.
    pub(super) fn is_empty(&self) -> bool {
        let ring = ptr::with_exposed_provenance::<Ring>(self.kept.id as usize);
        // SAFETY: the id is the address of the ring that the kernel mapped in `setup` and unmaps
        // only when it is destroyed; a sandbox's own AIO maps zeros there, which are no magic number. Words
        // that the kernel changes are atomics.
        let ring = unsafe { &*ring };
        ring.magic == MAGIC
            && ring.head.load(Ordering::Relaxed) == ring.tail.load(Ordering::Acquire)
    }

    /// Fills `events` from the front and says how many came; waits for `least` of them, but not
    /// longer than `limit`, and for ever without one.
    pub(super) fn collect(
        &mut self,
        least: usize,
        limit: Option<Duration>,
        events: &mut [Event],
    ) -> io::Result<usize> {
        // A timespec of this system call is two longs, also where libc's has 64-bit seconds.
        let limit = limit.map(|limit| {
            let seconds = c_long::try_from(limit.as_secs()).unwrap_or(c_long::MAX);
            [seconds, c_long::from(limit.subsec_nanos().cast_signed())]
        });
        let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
        let (least, most) = (least as c_long, events.len() as c_long);
        // SAFETY: `events` has room for `most` events, whose every bit pattern is valid, and
        // `limit` is null or a timespec; both live through the call.
        let count = checked(unsafe {
            let (call, id) = (libc::SYS_io_getevents, self.kept.id);
            libc::syscall(call, id, least, most, events.as_mut_ptr().cast::<c_void>(), limit)
        })?;
        self.in_flight -= count;
        Ok(count)
    }

    /// Leaves the context to the end of the process: dropping it would wait for reads that do not
    /// come back.
    pub(super) fn abandon(&mut self) {
        self.abandoned = true;
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let idle = !self.abandoned && self.in_flight == 0 && idle::keep(self.kept);
        if !self.abandoned && !idle {
            self.kept.destroy();
        }
    }
}

fn checked(result: c_long) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
