//! How a build stays within its memory: what each stage holds, and what is left for buffers.
//!
//! ```text
//! always    the process, threads, sets of invalid and zero rows, external ids
//! check     two waves of rows
//! train     k-means over the sample, and the sample where it fits
//! assign    two waves, centroids and the assigner's copy
//! balance   centroids, and k-means over rows of one list or a wave of rows
//! lists     centroids, as trained and rotated, and k-means over them (irq) or a rounded copy
//! scales    rotated centroids and a sample of residuals (sq8, sq4)
//! encode    two waves, rotated centroids, two buffers of encoded rows
//! merge     a read buffer for each run, buffers of the files (merge.rs)
//! write     rotated centroids and the coarse quantizer
//! ```
//! Memory decides how many rows are handled at a time and how many runs there are, never what is
//! in the index.

use std::path::Path;

use cluster::{AssignMethod, Assigner, KmeansOptions, kmeans_bytes};
use dataset::{Dtype, RowSet};

use super::plan::BuildPlan;
use super::runs::Layout;
use super::train;
use super::waves::Waves;
use super::{balance, merge, scales};
use crate::config::{BuildOptions, CoarseKind, Metric, OnInvalid};
use crate::error::BuildError;
use crate::store::shape::Shape;
use crate::store::writer::WRITER_BYTES;

/// Rows of a block are a multiple of what the assigner multiplies at a time.
const TILE: usize = 512;
/// Values of a block, about (2 MiB of f32).
const BLOCK_VALUES: usize = 1 << 19;
/// Code, tables and what the allocator keeps.
const PROCESS: u64 = 24 << 20;
/// Stack and the allocator's arena of a thread.
const THREAD: u64 = 2 << 20;
/// Scratch of a thread while it encodes, besides a few rows.
const ENCODE_THREAD: u64 = 128 << 10;
/// The same for each value of a row.
const ENCODE_VALUE: u64 = 64;
/// The span a file that is not f32 is read through.
const READ_SPAN: u64 = 2 << 20;
/// Least memory to read a run with, and the most: more is no faster.
const RUN_READ: u64 = 128 << 10;
const RUN_READ_MOST: u64 = 4 << 20;
/// Least rows of a run: below, runs are too many to be worth it.
const RUN_ROWS_LEAST: u64 = 4096;
/// The share of the machine's memory a build takes unless told otherwise, in percent.
const DEFAULT_SHARE: u64 = 60;

/// What a build may hold, and what it will.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub(crate) waves: Waves,
    /// For training: the sample is held where it fits, else read when it is needed.
    pub(crate) train_bytes: u64,
    /// The same for the parts of lists that are split, beside the least.
    pub(crate) balance_spare: u64,
    /// Encoded rows of one of two buffers.
    pub(crate) run_rows: u64,
    /// For the buffers that runs are read with.
    pub(crate) merge_bytes: u64,
    /// The most the build will hold.
    pub(crate) peak: u64,
}

impl Memory {
    /// Divides `cap` bytes; an error with the least that works when they are too few.
    pub(crate) fn plan(
        dtype: Dtype,
        plan: &BuildPlan,
        o: &BuildOptions,
        cap: u64,
    ) -> Result<Self, BuildError> {
        let terms = Terms::of(dtype, plan, o);
        if let Some(memory) = terms.divide(cap) {
            return Ok(memory);
        }
        let (mut low, mut high) = (cap, cap.max(1 << 20));
        while terms.divide(high).is_none() {
            if high == u64::MAX {
                return Err(BuildError::BuildMemory { cap, least: u64::MAX });
            }
            (low, high) = (high, high.saturating_mul(2));
        }
        while high - low > 1 << 20 {
            let middle = low + (high - low) / 2;
            if terms.divide(middle).is_some() { high = middle } else { low = middle }
        }
        Err(BuildError::BuildMemory { cap, least: high.div_ceil(1 << 20) << 20 })
    }

    /// Whether so many encoded rows need no run on disk.
    pub(crate) fn holds(&self, stored: u64) -> bool {
        // A buffer numbers its rows with 32 bits.
        stored <= (2 * self.run_rows).min(u64::from(u32::MAX))
    }
}

/// The memory a build may take when it is not told: 60 % of the machine's, or of the control
/// group's where that is less.
#[must_use]
pub fn default_build_memory() -> u64 {
    let machine = read_kib("/proc/meminfo", "MemTotal:").unwrap_or(4 << 30);
    let group = cgroup_limit().unwrap_or(u64::MAX);
    machine.min(group) / 100 * DEFAULT_SHARE
}

/// Peak resident bytes of this process so far, where the system tells.
pub(crate) fn peak_memory() -> Option<u64> {
    read_kib("/proc/self/status", "VmHWM:")
}

/// The value of a line `name   123 kB`, in bytes.
fn read_kib(path: &str, name: &str) -> Option<u64> {
    let text = fs_err::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// The least limit of the control groups this process is in (version 2, then version 1).
fn cgroup_limit() -> Option<u64> {
    let groups = fs_err::read_to_string("/proc/self/cgroup").ok()?;
    let limit_of = |line: &str| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            c if c.split(',').any(|c| c == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        // A limit of any group above counts too. In a container the path may not be there.
        let group = Path::new(root).join(group.trim_start_matches('/'));
        let above = group.ancestors().take_while(|path| path.starts_with(root));
        above
            .filter_map(|path| fs_err::read_to_string(path.join(file)).ok()?.trim().parse().ok())
            .min()
    };
    groups.lines().filter_map(limit_of).min()
}

/// What the parameters fix, in bytes.
struct Terms {
    n: u64,
    dim: u64,
    threads: u64,
    always: u64,
    /// Sorting a copy of the external ids.
    ids: u64,
    /// Sorting those of zero rows.
    zero_ids: u64,
    /// Sets of rows as bytes.
    sets: u64,
    /// The least that training takes, and the sample.
    train: u64,
    sample: u64,
    /// Centroids as trained, and rotated.
    centroids: u64,
    rotated: u64,
    assigner: u64,
    /// What the threads need to assign.
    assigning: u64,
    balance: u64,
    group: u64,
    scales: u64,
    encoding: u64,
    layout: Layout,
    merge: u64,
    coarse: u64,
}

impl Terms {
    fn of(dtype: Dtype, plan: &BuildPlan, o: &BuildOptions) -> Self {
        let shape: Shape = plan.shape(&dtype.to_string(), plan.n, 0);
        let (n, dim, nlist, threads) = (plan.n, plan.dim, plan.nlist, o.threads as u64);
        let ids = o.ids.as_ref().map_or(0, |ids| ids.len() as u64 * 8);
        let may_leave_out = o.on_invalid == OnInvalid::Skip || o.metric == Metric::Cosine;
        let sets = if may_leave_out { 2 * RowSet::most_bytes(n) } else { 0 };
        let lists = nlist as u64;
        let rotated = lists * plan.padded_dim as u64 * 4;
        let scales =
            if o.record.is_scalar() { scales::bytes(dim, plan.padded_dim, n, threads) } else { 0 };
        Self {
            n,
            dim: dim as u64,
            threads,
            always: PROCESS + threads * THREAD + ids + sets + lists * 40,
            ids,
            zero_ids: if o.metric == Metric::Cosine { ids } else { 0 },
            sets: 2 * sets,
            train: train::least_bytes(n, dim, nlist, o.threads),
            sample: train::sample_rows_count(n, dim, nlist) * dim as u64 * 4,
            centroids: lists * dim as u64 * 4,
            rotated,
            assigner: Assigner::bytes_for(nlist, dim, AssignMethod::Auto),
            assigning: threads * Assigner::scratch_bytes(nlist, dim, AssignMethod::Auto),
            balance: balance::least_bytes(n, dim, nlist, o.threads),
            group: group_bytes(plan, o.threads).max(shape.centroids_bytes()),
            scales,
            encoding: threads * (ENCODE_THREAD + ENCODE_VALUE * plan.padded_dim as u64),
            layout: Layout::of(&shape),
            merge: merge::bytes(&shape),
            coarse: coarse_bytes(plan),
        }
    }

    /// The memory of a build within `cap` bytes, if there is one.
    fn divide(&self, cap: u64) -> Option<Memory> {
        // Pages of the allocator that are free and not given back.
        let cap = cap - cap / 32;
        let free = cap.checked_sub(self.always)?;
        let waves = self.waves(free);
        let reading = 2 * waves.rows() as u64 * (self.dim * 4 + 8) + READ_SPAN;
        let again = waves.rows() as u64 * (self.dim * 4 + 24) + self.threads * READ_SPAN;

        let encode = self.rotated + reading + self.encoding + WRITER_BYTES;
        let buffers = free.checked_sub(encode)?;
        let run_rows = (buffers / 2 / self.layout.memory()).min(u64::from(u32::MAX));
        let most = free.checked_sub(self.rotated + self.merge)?;
        let mut memory = Memory {
            waves,
            train_bytes: free,
            balance_spare: free.saturating_sub(self.centroids + self.balance),
            run_rows,
            merge_bytes: most,
            peak: 0,
        };
        let (held, merging) = if memory.holds(self.n) {
            // The buffer stays while the files are written.
            let held = self.n * self.layout.memory();
            (held, held)
        } else {
            if run_rows < (waves.rows() as u64).max(RUN_ROWS_LEAST) {
                return None;
            }
            let runs = self.n.div_ceil(run_rows);
            let least = RUN_READ.max(self.layout.bytes() as u64);
            memory.merge_bytes = most.min(runs * RUN_READ_MOST).max(runs * least);
            (2 * run_rows * self.layout.memory(), memory.merge_bytes)
        };
        let stages = [
            self.ids,
            self.sets + reading,
            self.train,
            self.centroids + self.assigner + self.assigning + reading + WRITER_BYTES,
            self.centroids + self.balance,
            self.centroids + self.assigner + self.assigning + again,
            self.centroids + self.rotated + self.group,
            self.rotated + self.scales,
            encode + held,
            self.rotated + self.merge + merging,
            self.rotated + self.zero_ids,
            self.rotated + self.coarse + WRITER_BYTES,
        ];
        let least = stages.into_iter().max().unwrap_or(0);
        if least > free {
            return None;
        }
        let sample = (free - self.train).min(2 * self.sample);
        memory.peak = self.always + least.max(self.train + sample);
        Some(memory)
    }

    /// Blocks of a size that only the dims decide, a few for each thread where memory allows.
    fn waves(&self, free: u64) -> Waves {
        let block_rows = (BLOCK_VALUES / self.dim.max(1) as usize / TILE).max(1) * TILE;
        let block_rows = (block_rows as u64).min(self.n.next_multiple_of(TILE as u64)) as usize;
        let bytes = 2 * block_rows as u64 * self.dim * 4;
        let most = (free / 8 / bytes.max(1)).clamp(1, 4 * self.threads);
        Waves { block_rows, blocks: most as usize }
    }
}

/// What ordering the lists by groups takes, where the coarse quantizer has groups.
fn group_bytes(plan: &BuildPlan, threads: usize) -> u64 {
    if plan.coarse_lists == 0 {
        return 0;
    }
    let (nlist, padded, options) = (plan.nlist as u64, plan.padded_dim, KmeansOptions::default());
    kmeans_bytes(nlist, padded, plan.coarse_lists, &options, threads)
}

/// The coarse quantizer while it is built, and beside it its bytes.
fn coarse_bytes(plan: &BuildPlan) -> u64 {
    let (kind, inner, nlist) = (plan.coarse, plan.coarse_lists, plan.nlist);
    let built = crate::coarse::resident_bytes(kind, inner, nlist, plan.padded_dim, plan.seed);
    let building = match kind {
        CoarseKind::Hnsw => Assigner::bytes_for(nlist, plan.padded_dim, AssignMethod::Hnsw),
        _ => 0,
    };
    building.max(2 * built)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::build::{BaseShape, space};

    fn plan(n: u64, o: &BuildOptions) -> BuildPlan {
        BuildPlan::of(BaseShape { n, dim: 128, dtype: Dtype::U8 }, o).unwrap()
    }

    #[test]
    fn rows_beyond_32_bits_are_never_one_buffer() {
        let o = BuildOptions { nlist: Some(1000), threads: 2, ..BuildOptions::default() };
        let n = (1 << 32) + 5;
        let plan = plan(n, &o);
        let memory = Memory::plan(Dtype::U8, &plan, &o, 1 << 50).unwrap();
        assert!(!memory.holds(n), "a buffer numbers its rows with 32 bits");
        assert!(memory.holds(u64::from(u32::MAX)));
        let room = space::needed(Dtype::U8, &plan, &memory);
        assert!(room.scratch > n * 128 && room.index > n * 128, "{room:?}");
    }

    #[test]
    fn the_least_is_the_least_and_more_is_no_less() {
        let o = BuildOptions { threads: 4, ..BuildOptions::default() };
        for n in [1, 1000, 1_000_000, 1_000_000_000] {
            let plan = plan(n, &o);
            let Err(BuildError::BuildMemory { least, .. }) = Memory::plan(Dtype::U8, &plan, &o, 0)
            else {
                panic!("{n} rows need no memory");
            };
            let at = |cap: u64| Memory::plan(Dtype::U8, &plan, &o, cap);
            assert!(at(least - (2 << 20)).is_err(), "{n} rows, {least} bytes");
            let mut before = at(least).unwrap();
            for cap in [least, least / 4 * 5, 2 * least, 100 * least] {
                let memory = at(cap).unwrap();
                assert!(memory.peak <= cap, "{n} rows: {memory:?} in {cap} bytes");
                assert!(memory.run_rows >= before.run_rows || memory.holds(n));
                before = memory;
            }
        }
    }
}
