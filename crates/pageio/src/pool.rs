//! Reads by `pread` on a pool of threads: what runs everywhere.
//!
//! ```text
//! reader --flush--> jobs (one queue per file) --> thread: pread --> inbox of that reader --> poll
//! ```
//!
//! A job owns its buffer on the way and the inbox gives it back, so no thread ever writes to
//! memory that a reader can see, and nothing here is unsafe. Threads are started when reads queue
//! up and nobody is idle, a bounded number of them, and are joined when the file is dropped; not so
//! when a reader has given up on them, for the system call of a dead device does not return.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::reader::{Abandon, wait_out};
use crate::request::{Extent, Request};
use crate::slots::Slots;
use crate::watchdog::{Over, Patience};
use crate::{AlignedBuf, Backend, Completion, PAGE, PageReader, ReadError, Slot};

/// More threads than this cost more CPU than the deeper queue brings.
const MAX_THREADS: usize = 32;
/// A worker calls `pread` and little else.
const STACK_BYTES: usize = 128 * 1024;

pub(crate) struct Pool {
    shared: Arc<Shared>,
    stuck: AtomicBool,
}

struct Shared {
    file: Arc<File>,
    extent: Arc<Extent>,
    work: Mutex<Work>,
    queued: Condvar,
}

#[derive(Default)]
struct Work {
    jobs: VecDeque<Job>,
    threads: Vec<JoinHandle<()>>,
    idle: usize,
    stop: bool,
}

struct Job {
    slot: u32,
    request: Request,
    buf: AlignedBuf,
    inbox: Arc<Inbox>,
}

/// What has been read for one reader.
#[derive(Default)]
struct Inbox {
    ended: Mutex<Vec<Ended>>,
    /// How many `ended` holds: lets `poll` look without taking the lock.
    count: AtomicUsize,
    arrived: Condvar,
}

struct Ended {
    slot: u32,
    buf: AlignedBuf,
    result: Result<(), ReadError>,
}

impl Pool {
    pub(crate) fn new(file: Arc<File>, extent: Arc<Extent>) -> Pool {
        let shared = Shared { file, extent, work: Mutex::default(), queued: Condvar::new() };
        Pool { shared: Arc::new(shared), stuck: AtomicBool::new(false) }
    }

    /// Starts threads until `wanted` are idle or the pool is full. Fails only when there is no
    /// thread at all: with fewer than wanted, reads take longer.
    fn staff(&self, work: &mut Work, wanted: usize) -> io::Result<()> {
        while work.idle < wanted && work.threads.len() < MAX_THREADS {
            let shared = Arc::clone(&self.shared);
            let started = thread::Builder::new()
                .name("pageio".into())
                .stack_size(STACK_BYTES)
                .spawn(move || serve(&shared));
            match started {
                Ok(thread) => {
                    work.threads.push(thread);
                    work.idle += 1;
                }
                Err(_) if !work.threads.is_empty() => break,
                Err(cause) => return Err(cause),
            }
        }
        Ok(())
    }

    fn push(&self, jobs: &mut Vec<Job>) -> io::Result<()> {
        let mut work = lock(&self.shared.work);
        let waiting = work.jobs.len() + jobs.len();
        self.staff(&mut work, waiting)?;
        for job in jobs.drain(..) {
            work.jobs.push_back(job);
            self.shared.queued.notify_one();
        }
        Ok(())
    }

    /// Forgets what a reader still wants, and that threads would end.
    fn give_up(&self, inbox: &Arc<Inbox>) {
        self.stuck.store(true, Ordering::Relaxed);
        lock(&self.shared.work).jobs.retain(|job| !Arc::ptr_eq(&job.inbox, inbox));
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let threads = {
            let mut work = lock(&self.shared.work);
            work.stop = true;
            std::mem::take(&mut work.threads)
        };
        self.shared.queued.notify_all();
        if self.stuck.load(Ordering::Relaxed) {
            return;
        }
        for thread in threads {
            // A worker has no reason to panic, and a drop has nobody to tell.
            let _ = thread.join();
        }
    }
}

/// A worker's life. It counts as idle from birth, as `staff` has booked it.
fn serve(shared: &Shared) {
    let mut work = lock(&shared.work);
    while !work.stop {
        let Some(mut job) = work.jobs.pop_front() else {
            work = shared.queued.wait(work).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        work.idle -= 1;
        drop(work);
        let len = job.request.len();
        let result = job.request.read(&shared.file, &shared.extent, &mut job.buf[..len]);
        job.inbox.put(Ended { slot: job.slot, buf: job.buf, result });
        work = lock(&shared.work);
        work.idle += 1;
    }
}

impl Inbox {
    fn put(&self, ended: Ended) {
        let mut all = lock(&self.ended);
        all.push(ended);
        self.count.store(all.len(), Ordering::Release);
        drop(all);
        self.arrived.notify_one();
    }

    /// Waits until something has ended, no longer than `limit`.
    fn wait(&self, limit: Option<Duration>) -> MutexGuard<'_, Vec<Ended>> {
        let ended = lock(&self.ended);
        let none = |ended: &mut Vec<Ended>| ended.is_empty();
        match limit {
            None => self.arrived.wait_while(ended, none).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => {
                let waited = self.arrived.wait_timeout_while(ended, limit, none);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }
}

/// No data is left half-changed under these locks, so a poisoned one is as good as any.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) struct PoolReader {
    pool: Arc<Pool>,
    slots: Slots,
    /// By slot; absent until a job first needs it, and while one has it.
    bufs: Vec<Option<AlignedBuf>>,
    queued: Vec<Job>,
    inbox: Arc<Inbox>,
}

impl PoolReader {
    pub(crate) fn new(pool: Arc<Pool>, slots: Slots) -> Result<PoolReader, ReadError> {
        let reader = PoolReader {
            bufs: (0..slots.len()).map(|_| None).collect(),
            queued: Vec::new(),
            inbox: Arc::default(),
            pool,
            slots,
        };
        // With one thread up, no later flush can fail.
        let started = reader.pool.staff(&mut lock(&reader.pool.shared.work), 1);
        started.map_err(|cause| reader.failed(cause))?;
        Ok(reader)
    }

    /// The buffer of a slot that no job has.
    fn buffer(&mut self, slot: u32) -> Result<AlignedBuf, ReadError> {
        let made = self.bufs[slot as usize].take();
        made.map_or_else(|| AlignedBuf::zeroed(self.slots.slot_bytes() / PAGE), Ok)
    }

    fn failed(&self, cause: io::Error) -> ReadError {
        ReadError::Backend {
            path: self.slots.extent().path.clone(),
            backend: Backend::Pread,
            doing: "cannot start a thread",
            cause,
        }
    }

    /// Takes in what has ended, waiting for it as long as `patience` lasts, if there is any.
    fn collect(&mut self, patience: Option<&Patience>, done: &mut Vec<Completion>) -> usize {
        let mut ended = match patience {
            Some(patience) => self.inbox.wait(patience.left()),
            None => lock(&self.inbox.ended),
        };
        let count = ended.len();
        for Ended { slot, buf, result } in ended.drain(..) {
            self.bufs[slot as usize] = Some(buf);
            done.extend(self.slots.end(slot, result));
        }
        self.inbox.count.store(0, Ordering::Release);
        count
    }
}

impl PageReader for PoolReader {
    fn submit(&mut self, tag: u64, first: u64, count: u32) -> Result<(), ReadError> {
        let slot = self.slots.begin(tag, first, count)?;
        let buf = match self.buffer(slot) {
            Ok(buf) => buf,
            Err(error) => {
                self.slots.discard(slot);
                return Err(error);
            }
        };
        if self.slots.silenced(slot) {
            return Ok(());
        }
        if let Some(request) = self.slots.request(slot).cloned() {
            self.queued.push(Job { slot, request, buf, inbox: Arc::clone(&self.inbox) });
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ReadError> {
        if self.queued.is_empty() {
            return Ok(());
        }
        self.pool.push(&mut self.queued).map_err(|cause| self.failed(cause))
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> Result<usize, ReadError> {
        if self.inbox.count.load(Ordering::Acquire) == 0 {
            return Ok(0);
        }
        Ok(self.collect(None, done))
    }

    fn wait_at_most(
        &mut self,
        limit: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<usize, ReadError> {
        self.slots.expect_reads()?;
        self.flush()?;
        let patience = self.slots.patience(limit);
        loop {
            let ended = self.collect(Some(&patience), done);
            match patience.over() {
                _ if ended > 0 => return Ok(ended),
                Some(Over::Limit) => return Ok(0),
                Some(Over::Silence) => break,
                None => {}
            }
        }
        let error = self.slots.no_answer(Backend::Pread);
        self.abandon();
        Err(error)
    }

    fn bytes(&self, slot: Slot) -> &[u8] {
        let len = self.slots.ready_len(slot);
        self.bufs[slot.index()].as_deref().map_or(&[], |buf| &buf[..len])
    }

    fn release(&mut self, slot: Slot) {
        self.slots.release(slot);
    }

    fn in_flight(&self) -> usize {
        self.slots.reading()
    }

    fn drain(&mut self) {
        for job in std::mem::take(&mut self.queued) {
            self.bufs[job.slot as usize] = Some(job.buf);
            self.slots.discard(job.slot);
        }
        wait_out(self);
    }

    fn usable(&self) -> bool {
        self.slots.usable()
    }

    fn backend(&self) -> Backend {
        Backend::Pread
    }
}

impl Abandon for PoolReader {
    /// Jobs under way keep their buffers.
    fn abandon(&mut self) {
        self.pool.give_up(&self.inbox);
        self.slots.abandon();
    }
}

impl Drop for PoolReader {
    fn drop(&mut self) {
        self.drain();
    }
}
