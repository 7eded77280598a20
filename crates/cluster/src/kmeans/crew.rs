//! Who computes: the threads of a pool together, or one thread alone.
//!
//! Many small groups are trained one per thread, a large one by all threads. The same code runs in
//! both cases, and gives the same bytes; alone, its parallel loops are one piece that no other
//! thread can take a part of.

use std::sync::{Mutex, PoisonError};

use rayon::ThreadPool;

use crate::AssignScratch;

/// The threads that work on one training, and their buffers.
pub(super) struct Crew<'a> {
    pub(super) pool: &'a ThreadPool,
    /// Buffers of each thread of the pool.
    scratch: &'a [Mutex<Scratch>],
    alone: bool,
}

/// Buffers of a thread.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) assign: AssignScratch,
    /// The lists that rows of a block had before.
    pub(super) before: Vec<u32>,
}

impl<'a> Crew<'a> {
    /// Buffers for all threads of a pool.
    pub(super) fn scratch_for(pool: &ThreadPool) -> Vec<Mutex<Scratch>> {
        (0..pool.current_num_threads().max(1)).map(|_| Mutex::default()).collect()
    }

    /// All threads of the pool; runs inside of it.
    pub(super) fn together(pool: &'a ThreadPool, scratch: &'a [Mutex<Scratch>]) -> Self {
        Self { pool, scratch, alone: false }
    }

    /// Whichever thread of the pool comes along, for itself.
    pub(super) fn alone(&self) -> Self {
        Self { alone: true, ..*self }
    }

    /// Number of threads.
    pub(super) fn threads(&self) -> usize {
        if self.alone { 1 } else { self.scratch.len() }
    }

    /// Items that a thread takes at least, of a parallel loop whose pieces are `fair` or more.
    pub(super) fn piece(&self, fair: usize) -> usize {
        if self.alone { usize::MAX } else { fair }
    }

    /// Calls `work` with the buffers of the calling thread. It must not enter a parallel loop.
    pub(super) fn with_scratch<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        let thread = rayon::current_thread_index().unwrap_or(0) % self.scratch.len();
        let mut scratch = self.scratch[thread].lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut scratch)
    }
}
