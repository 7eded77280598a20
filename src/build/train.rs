//! The mean, the rotation and the centroids, from a sample of the rows.

mod sample;
#[cfg(test)]
mod tests;

use cluster::{KmeansOptions, RowSlice, RowSource, Rows, kmeans, kmeans_bytes};
use codec::Rotation;
use dataset::Base;

pub(super) use self::sample::Sample;
pub(crate) use self::sample::sample_rows_count;
use super::Watch;
use super::plan::BuildPlan;
use super::survey::Survey;
use crate::error::BuildError;

/// Steps of the progress.
const STEPS: u64 = 1000;

/// What reading takes on a thread: a block, and a span of the file (see [`Base::gather_f32`]).
pub(super) const READING: u64 = 4 * sample::BLOCK_VALUES as u64 + (2 << 20);

/// What training found.
pub(crate) struct Trained {
    pub(crate) mean: Vec<f32>,
    pub(crate) rotation: Rotation,
    /// nlist × dim, less the mean.
    pub(crate) centroids: Vec<f32>,
}

impl Trained {
    /// For the checkpoint: the mean, then the centroids.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.mean.iter().chain(&self.centroids).flat_map(|v| v.to_le_bytes()).collect()
    }

    /// What [`to_bytes`](Self::to_bytes) gave; `None` when it does not fit the plan.
    pub(crate) fn from_bytes(plan: &BuildPlan, bytes: &[u8]) -> Option<Self> {
        let mut values = bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b));
        let mean: Vec<f32> = values.by_ref().take(plan.dim).collect();
        let centroids: Vec<f32> = values.collect();
        let fits = mean.len() == plan.dim && centroids.len() == plan.nlist * plan.dim;
        let finite = mean.iter().chain(&centroids).all(|v| v.is_finite());
        (fits && finite).then(|| Self {
            mean,
            rotation: Rotation::new(plan.dim, plan.seed),
            centroids,
        })
    }
}

/// The least memory for [`train`], in bytes: what it allocates when it holds no more of the sample
/// than it must.
pub(crate) fn least_bytes(n: u64, dim: usize, nlist: usize, threads: usize) -> u64 {
    let rows = sample_rows_count(n, dim, nlist);
    let mut options = KmeansOptions::default();
    options.memory = 0;
    let drawing = 32 * rows + n / 8;
    let centroids = 4 * nlist as u64 * dim as u64;
    let rotated = 4 * nlist as u64 * dim.next_multiple_of(64) as u64;
    let kmeans = kmeans_bytes(rows, dim, nlist, &options, threads).max(centroids + rotated);
    threads as u64 * READING + drawing.max(8 * rows + kmeans)
}

/// Trains the plan's number of centroids in `memory` bytes or [`least_bytes`], whichever is more.
/// The memory decides how often the sample is read and does not show in the result.
pub(crate) fn train(
    base: &Base,
    survey: &Survey,
    plan: &BuildPlan,
    memory: u64,
    pool: &rayon::ThreadPool,
    watch: &Watch<'_>,
) -> Result<Trained, BuildError> {
    let (dim, nlist, seed) = (base.dim(), plan.nlist, plan.seed);
    let rotation = Rotation::new(dim, seed);
    if nlist == 0 {
        return Ok(Trained { mean: vec![0.0; dim], rotation, centroids: Vec::new() });
    }
    watch.update("train", 0, STEPS)?;
    let mut sample = Sample::draw(base, survey, plan.metric, nlist, seed, watch);
    let mean = pool.install(|| sample.centre())?;
    let least = least_bytes(base.n(), dim, nlist, pool.current_num_threads());
    let spare = memory.saturating_sub(least);
    let report = |done: f64| watch.show("train", (done * STEPS as f64) as u64, STEPS);
    let centroids = train_lists(sample, nlist, seed, spare, pool, watch, &report)?;
    Ok(Trained { mean, rotation, centroids })
}

/// The centroids. The sample is held in memory when it fits in `spare` bytes beside the rows of
/// some coarse lists.
pub(super) fn train_lists(
    sample: Sample<'_>,
    nlist: usize,
    seed: u64,
    spare: u64,
    pool: &rayon::ThreadPool,
    watch: &Watch<'_>,
    report: &(dyn Fn(f64) + Sync),
) -> Result<Vec<f32>, BuildError> {
    let mut options = KmeansOptions::default();
    options.seed = seed;
    let bytes = 4 * sample.n() * sample.dim() as u64;
    let held = bytes.saturating_add(options.memory.min(bytes)) <= spare;
    if !held {
        // Each load of groups is a pass over the sample: the fewer the better.
        options.memory = spare;
    }
    let train = |rows: &dyn Rows| kmeans(rows, nlist, &options, pool, report);
    if !held {
        return Ok(train(&sample)?);
    }
    let values = pool.install(|| sample.load())?;
    let dim = sample.dim();
    drop(sample);
    let rows = Held { values: RowSlice::new(&values, dim)?, watch };
    Ok(train(&rows)?)
}

/// The sample in memory. Once the work is cancelled it has to be read, and reading fails.
struct Held<'a> {
    values: RowSlice<'a>,
    watch: &'a Watch<'a>,
}

type ReadError = Box<dyn std::error::Error + Send + Sync>;

impl RowSource for Held<'_> {
    fn n(&self) -> u64 {
        self.values.n()
    }

    fn dim(&self) -> usize {
        self.values.dim()
    }

    fn read_f32(&self, start: u64, out: &mut [f32]) -> Result<(), ReadError> {
        self.watch.cancelled()?;
        self.values.read_f32(start, out)
    }
}

impl Rows for Held<'_> {
    fn gather_f32(&self, rows: &[u32], out: &mut [f32]) -> Result<(), ReadError> {
        self.watch.cancelled()?;
        self.values.gather_f32(rows, out)
    }

    fn values(&self) -> Option<&[f32]> {
        self.values.values().filter(|_| self.watch.cancelled().is_ok())
    }
}
