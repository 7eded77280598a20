//! How a build stays within its memory: what each stage holds, and what is left for buffers.
//!
//! ```text
//! always    the process, threads, sets of invalid and zero rows, external ids
//! check     two waves of rows
//! train     k-means over the sample, and the sample where it fits
//! assign    two waves, centroids and the assigner's copy
//! encode    two waves, rotated centroids, two buffers of encoded rows
//! merge     a read buffer for each run, buffers of the files (merge.rs)
//! coarse    rotated centroids and the coarse quantizer
//! ```
//! Memory decides how many rows are handled at a time and how many runs there are, never what is
//! in the index.

use std::path::Path;

use cluster::{AssignMethod, Assigner, KmeansOptions, kmeans_bytes};
use dataset::{Dtype, RowSet};

use super::merge;
use super::plan::BuildPlan;
use super::runs::Layout;
use super::train;
use crate::config::{BuildOptions, Metric, OnInvalid};
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
const ENCODE_THREAD: u64 = 256 << 10;
/// The span a file that is not f32 is read through.
const READ_SPAN: u64 = 2 << 20;
/// Least memory to read a run with, and the most: more is no faster.
const RUN_READ: u64 = 128 << 10;
const RUN_READ_MOST: u64 = 4 << 20;
/// Least rows of a run: below, runs are too many to be worth it.
const RUN_ROWS_LEAST: u64 = 4096;
/// The share of the machine's memory a build takes unless told otherwise, in percent.
const DEFAULT_SHARE: u64 = 60;

/// How rows are cut for the threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waves {
    /// Rows that one thread works on at a time.
    pub(crate) block_rows: usize,
    /// Blocks that are read at a time.
    pub(crate) blocks: usize,
}

impl Waves {
    /// Rows that are read at a time.
    pub(crate) fn rows(self) -> u64 {
        (self.block_rows * self.blocks) as u64
    }
}

/// What a build may hold, and what it will.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub(crate) waves: Waves,
    /// For training: the sample is held where it fits, else read when it is needed.
    pub(crate) train_bytes: u64,
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
            (low, high) = (high, high.saturating_mul(2));
        }
        while high - low > 1 << 20 {
            let middle = low + (high - low) / 2;
            if terms.divide(middle).is_some() { high = middle } else { low = middle }
        }
        Err(BuildError::BuildMemory { cap, least: high.next_multiple_of(1 << 20) })
    }

    /// Whether so many encoded rows need no run on disk.
    pub(crate) fn holds(&self, stored: u64) -> bool {
        stored <= 2 * self.run_rows
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

/// What the parameters fix.
struct Terms {
    n: u64,
    stored: u64,
    dim: u64,
    nlist: usize,
    threads: u64,
    always: u64,
    /// Centroids as trained, and rotated.
    centroids: u64,
    rotated: u64,
    /// The least that training takes, and the sample.
    train: u64,
    sample_bytes: u64,
    group: u64,
    assigner: u64,
    coarse: u64,
    layout: Layout,
    merge: u64,
    read_span: u64,
}

impl Terms {
    fn of(dtype: Dtype, plan: &BuildPlan, o: &BuildOptions) -> Self {
        let shape: Shape = plan.shape(&dtype.to_string(), plan.n, 0);
        let threads = o.threads as u64;
        let ids = o.ids.as_ref().map_or(0, |ids| ids.len() as u64 * 8);
        let may_leave_out = o.on_invalid == OnInvalid::Skip || o.metric == Metric::Cosine;
        let sets = if may_leave_out { 2 * RowSet::most_bytes(plan.n) } else { 0 };
        let sample = train::sample_rows_count(plan.n, plan.dim, plan.nlist);
        let lists = plan.nlist as u64;
        let rotated = lists * plan.padded_dim as u64 * 4;
        let group = if plan.coarse_lists == 0 {
            0
        } else {
            2 * rotated
                + kmeans_bytes(
                    lists,
                    plan.padded_dim,
                    plan.coarse_lists,
                    &KmeansOptions::default(),
                    o.threads,
                )
        };
        Self {
            n: plan.n,
            stored: plan.n,
            dim: plan.dim as u64,
            nlist: plan.nlist,
            threads,
            always: PROCESS + threads * THREAD + ids + sets + lists * 32,
            centroids: lists * plan.dim as u64 * 4,
            rotated,
            train: train::least_bytes(plan.n, plan.dim, plan.nlist, o.threads),
            sample_bytes: sample * plan.dim as u64 * 4,
            group,
            assigner: Assigner::bytes_for(plan.nlist, plan.dim, AssignMethod::Auto),
            coarse: 2 * crate::coarse::resident_bytes(
                plan.coarse,
                plan.coarse_lists,
                plan.nlist,
                plan.padded_dim,
                plan.seed,
            ),
            layout: Layout::of(&shape),
            merge: merge::bytes(&shape),
            read_span: READ_SPAN,
        }
    }

    /// The memory of a build within `cap` bytes, if there is one.
    fn divide(&self, cap: u64) -> Option<Memory> {
        // Pages of the allocator that are free and not given back.
        let cap = cap - cap / 32;
        let free = cap.checked_sub(self.always)?;
        let waves = self.waves(free);
        let reading = 2 * waves.rows() * (self.dim * 4 + 8) + self.read_span;

        let spare = free.checked_sub(self.train)?;
        let scratch = self.threads
            * Assigner::scratch_bytes(self.nlist, self.dim as usize, AssignMethod::Auto);
        let assign = self.centroids + self.assigner + reading + scratch + WRITER_BYTES;
        let coarse = self.centroids + self.rotated + self.group.max(self.coarse);
        free.checked_sub(assign.max(coarse))?;

        let encode = self.rotated + reading + self.threads * ENCODE_THREAD + WRITER_BYTES;
        let buffers = free.checked_sub(encode)?;
        let run_rows = (buffers / 2 / self.layout.memory()).min(u64::from(u32::MAX));
        let most = free.checked_sub(self.rotated + self.merge)?;
        let mut merge_bytes = most;
        let in_memory = self.stored <= 2 * run_rows;
        let (held, merging) = if in_memory {
            let held = self.stored * self.layout.memory();
            (held, held)
        } else {
            if run_rows < waves.rows().max(RUN_ROWS_LEAST) {
                return None;
            }
            let runs = self.stored.div_ceil(run_rows);
            merge_bytes = merge_bytes.min(runs * RUN_READ_MOST).max(runs * RUN_READ);
            (2 * run_rows * self.layout.memory(), merge_bytes)
        };
        // A buffer that needs no run stays while the files are written.
        if merging > most {
            return None;
        }
        let stages = [
            reading,
            self.train + spare.min(2 * self.sample_bytes),
            assign,
            coarse,
            encode + held,
            self.rotated + self.merge + merging,
        ];
        let peak = self.always + stages.into_iter().max().unwrap_or(0);
        Some(Memory { waves, train_bytes: free, run_rows, merge_bytes, peak: peak.min(cap) })
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
