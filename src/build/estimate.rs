//! What a build will take, before it is started: sizes to the byte, time by a short probe.
//!
//! ```text
//! sizes   plan.rs, memory.rs, space.rs: formulas
//! time    a second of this machine's work on random rows of the same dims:
//!         rows assigned · lists, rows encoded, bytes written to the target's disk
//! ```

use std::io;
use std::path::Path;
use std::time::Instant;

use cluster::{AssignMethod, Assigner};
use codec::{Encoder, Rotation};
use rayon::prelude::*;
use serde::Serialize;

use super::memory::Memory;
use super::plan::{BaseShape, BuildPlan};
use super::space;
use super::train::sample_rows_count;
use crate::config::BuildOptions;
use crate::error::BuildError;
use crate::store::writer::FileWriter;

/// Rows of the probe of the assignment, and most lists.
const ASSIGN_ROWS: usize = 2048;
const ASSIGN_LISTS: usize = 1024;
/// Rows of the probe of the encoder.
const ENCODE_ROWS: usize = 512;
/// Bytes of the probe of the disk, in writes of this many.
const WRITE_BYTES: usize = 64 << 20;
const WRITE: usize = 1 << 20;
/// Passes of k-means over its sample, in products with all lists: one level, and two levels.
const PASSES: f64 = 10.0;
const PASSES_IN_TWO_LEVELS: f64 = 2.0;

/// From so many lists on a graph finds a row's list (see `cluster::Assigner`). A walk costs as much
/// as the products with this many lists, and with each doubling of the lists some more.
const GRAPH_FROM: f64 = 131_072.0;
const WALK: f64 = 59_000.0;
const WALK_PER_DOUBLING: f64 = 8_000.0;

/// What a build will take.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Estimate {
    /// The index.
    #[serde(flatten)]
    pub plan: BuildPlan,
    /// The memory the build may hold.
    pub build_memory_bytes: u64,
    /// The most it will hold.
    pub peak_memory_bytes: u64,
    /// The least memory it could do with.
    pub least_memory_bytes: u64,
    /// Bytes on disk that are removed at the end, beside the index.
    pub scratch_bytes: u64,
}

/// How long a build will take on this machine, about.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct BuildSeconds {
    /// Training the lists.
    pub train: f64,
    /// Finding the list of every row.
    pub assign: f64,
    /// Quantising every row.
    pub encode: f64,
    /// Writing the scratch and the index, and reading the scratch.
    pub write: f64,
}

impl BuildSeconds {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.train + self.assign + self.encode + self.write
    }
}

impl Estimate {
    /// The sizes, by formula.
    ///
    /// # Errors
    /// As the build would: an option that cannot work, too little memory.
    pub fn of(base: BaseShape, o: &BuildOptions) -> Result<Self, BuildError> {
        let plan = BuildPlan::of(base, o)?;
        let cap = super::cap(o);
        let memory = Memory::plan(base.dtype, &plan, o, cap)?;
        let least = match Memory::plan(base.dtype, &plan, o, 0) {
            Err(BuildError::BuildMemory { least, .. }) => least,
            Ok(_) | Err(_) => 0,
        };
        Ok(Self {
            scratch_bytes: space::needed(base.dtype, &plan, &memory).scratch,
            plan,
            build_memory_bytes: cap,
            peak_memory_bytes: memory.peak,
            least_memory_bytes: least,
        })
    }

    /// Free bytes where `dir` is, where the system tells.
    #[must_use]
    pub fn available(dir: &Path) -> Option<u64> {
        space::available(dir)
    }

    /// The time, from a probe that takes a second or two and writes 64 MiB to `dir` for a moment.
    ///
    /// # Errors
    /// When `dir` cannot be written to.
    pub fn seconds(&self, dir: &Path, o: &BuildOptions) -> Result<BuildSeconds, BuildError> {
        let plan = &self.plan;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(o.threads)
            .build()
            .map_err(|e| BuildError::Write(io::Error::other(e)))?;
        let rows = random(ASSIGN_ROWS * plan.dim, o.seed);
        let product = pool.install(|| product_seconds(plan, &rows, &pool))?;
        let encode = pool.install(|| encode_seconds(plan, &rows, o));
        let per_byte = write_seconds(dir)? / WRITE_BYTES as f64;

        let n = plan.n as f64;
        let compared = match plan.nlist as f64 {
            nlist if nlist < GRAPH_FROM => nlist,
            nlist => WALK + WALK_PER_DOUBLING * (nlist / GRAPH_FROM).log2(),
        };
        let sample = sample_rows_count(plan.n, plan.dim, plan.nlist) as f64;
        let two_levels = plan.nlist >= cluster::KmeansOptions::default().two_level_from;
        let passes = if two_levels { PASSES_IN_TWO_LEVELS } else { PASSES };
        let bytes = plan.disk_bytes as f64 + 2.0 * self.scratch_bytes as f64;
        Ok(BuildSeconds {
            train: sample * compared * passes * product,
            assign: n * compared * product,
            encode: n * encode,
            write: bytes * per_byte,
        })
    }
}

/// Seconds to compare a row with a list, all threads at work.
fn product_seconds(
    plan: &BuildPlan,
    rows: &[f32],
    pool: &rayon::ThreadPool,
) -> Result<f64, BuildError> {
    let (dim, threads) = (plan.dim, rayon::current_num_threads());
    let lists = plan.nlist.clamp(1, ASSIGN_LISTS);
    let centroids = &rows[..lists * dim];
    let assigner = Assigner::new(centroids, dim, AssignMethod::Flat, pool)?;
    let assign = || {
        (0..threads).into_par_iter().for_each(|_| {
            let mut list = vec![0; ASSIGN_ROWS];
            let mut distance = vec![0.0; ASSIGN_ROWS];
            assigner.assign(rows, &mut list, &mut distance);
        });
    };
    assign();
    let start = Instant::now();
    assign();
    let seconds = start.elapsed().as_secs_f64();
    Ok(seconds / (threads * ASSIGN_ROWS * lists) as f64)
}

/// Seconds to rotate and quantise a row, all threads at work.
fn encode_seconds(plan: &BuildPlan, rows: &[f32], o: &BuildOptions) -> f64 {
    let (dim, threads) = (plan.dim, rayon::current_num_threads());
    let rotation = Rotation::new(dim, o.seed);
    // Other records take less than split ones.
    let shape = codec::SplitRecord {
        padded: plan.padded_dim,
        prefix_dims: plan.prefix_dims,
        bits: plan.bits,
        metric: codec::Metric::L2,
    };
    let encode = || {
        (0..threads).into_par_iter().for_each(|_| {
            let mut encoder = Encoder::new(shape, super::estimator(o.bound));
            let mut residual = vec![0f32; plan.padded_dim];
            let centroid = vec![0f32; plan.padded_dim];
            let mut prefix = vec![0u8; plan.prefix_dims / 8];
            let mut record = vec![0u8; shape.len()];
            for row in rows.chunks_exact(dim).take(ENCODE_ROWS) {
                rotation.apply(row, &mut residual);
                encoder.encode(&residual, &centroid, &mut prefix, &mut record);
            }
        });
    };
    encode();
    let start = Instant::now();
    encode();
    start.elapsed().as_secs_f64() / (threads * ENCODE_ROWS) as f64
}

/// Seconds to write [`WRITE_BYTES`] to the disk of `dir`.
fn write_seconds(dir: &Path) -> Result<f64, BuildError> {
    let probe = tempfile::Builder::new().prefix(".estimate-").tempdir_in(dir)?;
    let bytes = vec![0x5a; WRITE];
    let mut file = FileWriter::create(&probe.path().join("probe"))?;
    let start = Instant::now();
    for _ in 0..WRITE_BYTES / WRITE {
        file.write(&bytes)?;
    }
    file.finish()?;
    Ok(start.elapsed().as_secs_f64())
}

/// Values in [-1, 1), the same for the same seed.
fn random(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    std::iter::repeat_with(next).take(count).collect()
}
