//! How many random pages a second this disk gives one thread: the ceiling for any search.
//!
//! ```text
//! keep `depth` reads of random pages in flight for `duration`; note how long each one took
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{Completion, PageFile, PageReader, ReadError};

/// What [`probe`] measured.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProbeResult {
    /// Reads that ended.
    pub reads: u64,
    /// Reads that ended, per second.
    pub reads_per_second: f64,
    /// Mean time from submission to collection, in microseconds.
    pub mean_us: f64,
    /// The time that 99 of 100 reads kept within, in microseconds.
    pub p99_us: f64,
}

/// Reads random single pages of `file` from this thread, `depth` at a time, for `duration`.
///
/// Buffered files answer from the page cache after a while; probe with direct I/O to measure the
/// disk. The same seed reads the same pages in the same order.
///
/// # Errors
/// When a read fails, the file has no pages, or `depth` is no valid number of slots.
pub fn probe(
    file: &Arc<PageFile>,
    depth: u32,
    duration: Duration,
    seed: u64,
) -> Result<ProbeResult, ReadError> {
    file.extent().check(0, 1)?;
    let now = Instant::now();
    let mut probe = Probe {
        reader: file.reader_with_slots(depth)?,
        pages: file.pages(),
        random: seed,
        submitted: vec![now; depth as usize],
        times_ns: Vec::new(),
    };
    for lane in 0..depth {
        probe.submit(u64::from(lane))?;
    }
    let mut done = Vec::with_capacity(depth as usize);
    let start = Instant::now();
    while start.elapsed() < duration {
        probe.reader.wait(&mut done)?;
        for completion in done.drain(..) {
            probe.collect(completion)?;
        }
    }
    Ok(probe.result(start.elapsed()))
}

struct Probe {
    reader: Box<dyn PageReader>,
    pages: u64,
    random: u64,
    /// When the latest read of each lane was submitted; a lane has one read in flight, its
    /// number is the tag.
    submitted: Vec<Instant>,
    times_ns: Vec<u64>,
}

impl Probe {
    fn submit(&mut self, lane: u64) -> Result<(), ReadError> {
        let page = self.random() % self.pages;
        self.submitted[lane as usize] = Instant::now();
        self.reader.submit(lane, page, 1)
    }

    fn collect(&mut self, completion: Completion) -> Result<(), ReadError> {
        let lane = completion.tag;
        let took = self.submitted[lane as usize].elapsed();
        self.times_ns.push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        self.reader.release(completion.slot);
        completion.result?;
        self.submit(lane)
    }

    /// SplitMix64 (Steele, Lea and Flood 2014).
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn result(mut self, elapsed: Duration) -> ProbeResult {
        let reads = self.times_ns.len();
        let mean = self.times_ns.iter().sum::<u64>() as f64 / reads.max(1) as f64;
        let rank = (reads * 99).div_ceil(100).saturating_sub(1);
        let p99 = match self.times_ns.get(rank) {
            Some(_) => *self.times_ns.select_nth_unstable(rank).1,
            None => 0,
        };
        ProbeResult {
            reads: reads as u64,
            reads_per_second: reads as f64 / elapsed.as_secs_f64(),
            mean_us: mean / 1e3,
            p99_us: p99 as f64 / 1e3,
        }
    }
}
