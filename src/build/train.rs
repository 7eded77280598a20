//! The mean, the rotation and the centroids, from a sample of the rows.

mod grouping;
mod sample;
#[cfg(test)]
mod tests;

use cluster::{KmeansOptions, RowSlice, RowSource, Rows, kmeans, kmeans_bytes};
use codec::Rotation;
use dataset::Base;
use rayon::prelude::*;

pub(crate) use self::grouping::{Grouping, group};
use self::sample::Sample;
pub(crate) use self::sample::sample_rows_count;
use super::survey::Survey;
use crate::error::BuildError;
use crate::progress::Progress;

/// What reading takes on a thread: a block, and a span of the file (see [`Base::gather_f32`]).
const READING: u64 = 4 * super::BLOCK_VALUES as u64 + (2 << 20);

/// What training found; centroids are centred, and rotated ones besides.
pub(crate) struct Trained {
    pub(crate) mean: Vec<f32>,
    pub(crate) rotation: Rotation,
    /// nlist × dim, for the assignment.
    pub(crate) centroids: Vec<f32>,
    /// nlist × padded dim, as stored.
    pub(crate) rotated: Vec<f32>,
    /// Where each group of the coarse quantizer starts among the lists.
    pub(crate) groups: Vec<u32>,
    /// Rotated centroids of the groups.
    pub(crate) group_centroids: Vec<f32>,
}

impl Trained {
    /// For a base without a row that belongs in a list.
    fn empty(dim: usize, seed: u64) -> Self {
        Self {
            mean: vec![0.0; dim],
            rotation: Rotation::new(dim, seed),
            centroids: Vec::new(),
            rotated: Vec::new(),
            groups: Vec::new(),
            group_centroids: Vec::new(),
        }
    }

    /// Orders the lists by their groups.
    fn order_by(&mut self, grouping: Grouping) {
        let (dim, padded) = (self.mean.len(), self.rotation.padded_dim());
        grouping.permute(&mut self.centroids, dim);
        grouping.permute(&mut self.rotated, padded);
        self.groups = grouping.starts;
        self.group_centroids = grouping.centroids;
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

/// Trains `nlist` centroids, and `groups` groups of them for the coarse quantizer, in `memory`
/// bytes or [`least_bytes`], whichever is more. The memory decides how often the sample is read and
/// does not show in the result.
pub(crate) fn train(
    base: &Base,
    survey: &Survey,
    plan: &super::plan::BuildPlan,
    memory: u64,
    pool: &rayon::ThreadPool,
    progress: &dyn Progress,
) -> Result<Trained, BuildError> {
    let (dim, nlist, seed) = (base.dim(), plan.nlist, plan.seed);
    if nlist == 0 {
        return Ok(Trained::empty(dim, seed));
    }
    let mut sample = Sample::draw(base, survey, plan.metric, nlist, seed);
    let mean = sample.centre()?;
    let least = least_bytes(base.n(), dim, nlist, pool.current_num_threads());
    let spare = memory.saturating_sub(least);
    let centroids = train_lists(sample, plan, spare, pool, progress)?;

    let rotation = Rotation::new(dim, seed);
    let padded = rotation.padded_dim();
    let mut rotated = vec![0f32; nlist * padded];
    rotated
        .par_chunks_exact_mut(padded)
        .zip(centroids.par_chunks_exact(dim))
        .for_each(|(out, c)| rotation.apply(c, out));

    let mut trained = Trained {
        mean,
        rotation,
        centroids,
        rotated,
        groups: Vec::new(),
        group_centroids: Vec::new(),
    };
    if plan.coarse_lists > 0 {
        let grouping = group(&trained.rotated, padded, plan.coarse_lists, seed, pool)?;
        trained.order_by(grouping);
    }
    Ok(trained)
}

/// The centroids. The sample is held in memory when it fits in `spare` bytes beside the rows of
/// some coarse lists.
fn train_lists(
    sample: Sample<'_>,
    plan: &super::plan::BuildPlan,
    spare: u64,
    pool: &rayon::ThreadPool,
    progress: &dyn Progress,
) -> Result<Vec<f32>, BuildError> {
    let report = |done: f64| progress.update("train", (done * 1000.0) as u64, 1000);
    let mut options = KmeansOptions::default();
    options.seed = plan.seed;
    let bytes = 4 * sample.n() * sample.dim() as u64;
    let held = bytes.saturating_add(options.memory.min(bytes)) <= spare;
    if !held {
        // Each load of groups is a pass over the sample: the fewer the better.
        options.memory = spare;
    }
    let train = |rows: &dyn Rows| kmeans(rows, plan.nlist, &options, pool, &report);
    if !held {
        return Ok(train(&sample)?);
    }
    let values = sample.load()?;
    drop(sample);
    Ok(train(&RowSlice::new(&values, plan.dim)?)?)
}
