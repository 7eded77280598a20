//! The mean, the rotation and the centroids, from a sample of the rows.

use cluster::{AssignMethod, Assigner, KmeansOptions, RowSlice, kmeans};
use codec::Rotation;
use dataset::{Base, sample_rows};
use rayon::prelude::*;

use super::prepare::prepare;
use super::survey::Survey;
use crate::config::Metric;
use crate::error::BuildError;
use crate::progress::Progress;

/// Sample rows per list: k-means gains nothing measurable from more (faiss uses the same).
const SAMPLE_PER_LIST: u64 = 256;
/// Most values the sample holds (2 GiB of f32).
const SAMPLE_VALUES: u64 = 1 << 29;

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
}

/// Trains `nlist` centroids, and `groups` groups of them for the coarse quantizer.
pub(crate) fn train(
    base: &Base,
    survey: &Survey,
    plan: &super::plan::BuildPlan,
    pool: &rayon::ThreadPool,
    progress: &dyn Progress,
) -> Result<Trained, BuildError> {
    let (dim, nlist, seed) = (base.dim(), plan.nlist, plan.seed);
    if nlist == 0 {
        return Ok(Trained::empty(dim, seed));
    }
    let mut sample = read_sample(base, survey, plan.metric, nlist as u64, seed)?;
    let mean = mean_of(&sample, dim);
    sample.par_chunks_exact_mut(dim).for_each(|row| {
        row.iter_mut().zip(&mean).for_each(|(v, m)| *v -= m);
    });
    let report = |done: f64| progress.update("train", (done * 1000.0) as u64, 1000);
    let mut options = KmeansOptions::default();
    options.seed = seed;
    let centroids = kmeans(&RowSlice::new(&sample, dim)?, nlist, &options, pool, &report)?;
    drop(sample);

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
        group(&mut trained, plan, pool)?;
    }
    Ok(trained)
}

/// Orders the lists so that those of one group of the coarse quantizer lie together.
fn group(
    t: &mut Trained,
    plan: &super::plan::BuildPlan,
    pool: &rayon::ThreadPool,
) -> Result<(), BuildError> {
    let padded = plan.padded_dim;
    let mut options = KmeansOptions::default();
    options.seed = plan.seed;
    let lists = RowSlice::new(&t.rotated, padded)?;
    t.group_centroids = kmeans(&lists, plan.coarse_lists, &options, pool, &|_| {})?;
    let mut of = vec![0u32; plan.nlist];
    let mut distance = vec![0f32; plan.nlist];
    let assigner = Assigner::new(&t.group_centroids, padded, AssignMethod::Flat, pool)?;
    assigner.assign(&t.rotated, &mut of, &mut distance);
    drop(assigner);
    let mut order: Vec<usize> = (0..plan.nlist).collect();
    order.sort_by_key(|&list| (of[list], list));
    t.groups = vec![0; plan.coarse_lists + 1];
    of.iter().for_each(|&g| t.groups[g as usize + 1] += 1);
    (0..plan.coarse_lists).for_each(|g| t.groups[g + 1] += t.groups[g]);
    t.rotated = permuted(&t.rotated, padded, &order);
    t.centroids = permuted(&t.centroids, plan.dim, &order);
    Ok(())
}

fn permuted(rows: &[f32], dim: usize, order: &[usize]) -> Vec<f32> {
    order.iter().flat_map(|&i| &rows[i * dim..(i + 1) * dim]).copied().collect()
}

/// Uniform rows that belong in lists, of unit length under cosine.
fn read_sample(
    base: &Base,
    survey: &Survey,
    metric: Metric,
    nlist: u64,
    seed: u64,
) -> Result<Vec<f32>, BuildError> {
    let dim = base.dim();
    let most = (SAMPLE_VALUES / dim as u64).max(nlist);
    let count = (nlist * SAMPLE_PER_LIST).min(most).min(base.n());
    let listed =
        |rows: Vec<u64>| -> Vec<u64> { rows.into_iter().filter(|&r| survey.listed(r)).collect() };
    let mut rows = listed(sample_rows(base.n(), count, seed));
    if (rows.len() as u64) < nlist {
        rows = listed((0..base.n()).collect());
    }
    let mut sample = vec![0f32; rows.len() * dim];
    let block = super::block_rows(dim) as usize;
    sample
        .par_chunks_mut(block * dim)
        .zip(rows.par_chunks(block))
        .try_for_each(|(out, rows)| base.gather_f32(rows, out))?;
    if metric == Metric::Cosine {
        sample.par_chunks_exact_mut(dim).for_each(|row| prepare(row, metric, &[]));
    }
    Ok(sample)
}

/// The mean in f64, summed in the order of the rows.
fn mean_of(rows: &[f32], dim: usize) -> Vec<f32> {
    let mut sum = vec![0f64; dim];
    for row in rows.chunks_exact(dim) {
        sum.iter_mut().zip(row).for_each(|(s, &v)| *s += f64::from(v));
    }
    let n = (rows.len() / dim).max(1) as f64;
    sum.iter().map(|s| (s / n) as f32).collect()
}
