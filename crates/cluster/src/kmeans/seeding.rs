//! Where the centroids start: k-means++ on a part of the sample.
//!
//! ```text
//! first   a random row
//! next    a row drawn with probability proportional to its squared distance from the nearest
//!         centroid so far
//! ```
//!
//! Each draw passes over all rows, so seeding on the whole sample would read it nlist times: more
//! than ten Lloyd iterations cost. [`ROWS_PER_LIST`] random rows per list keep it to a tenth of the
//! training and leave the start as good: Lloyd sees all rows afterwards. Rows that are not in memory
//! are read into it once.

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;
use simd::Kernels;

use super::crew::Crew;
use super::waves::gather;
use crate::{ClusterError, Rows};

/// Rows drawn from, per list: fewer where they would be more than [`VALUES`], but not below
/// [`LEAST_ROWS_PER_LIST`].
const ROWS_PER_LIST: usize = 32;
const LEAST_ROWS_PER_LIST: usize = 4;
const VALUES: usize = 1 << 24;
/// Distances that a thread computes at least.
const PIECE: usize = 256;

/// Number of rows that `nlist` centroids are drawn from.
pub(super) fn rows_drawn_from(rows: usize, nlist: usize, dim: usize) -> usize {
    let least = nlist.saturating_mul(LEAST_ROWS_PER_LIST);
    nlist.saturating_mul(ROWS_PER_LIST).min((VALUES / dim).max(least)).min(rows)
}

/// Fills `centroids` with distinct rows, spread out; they are at most as many as the rows.
///
/// With as many centroids as rows all are chosen. Once all rows coincide with a centroid the rest
/// is drawn uniformly.
pub(super) fn spread(
    rows: &dyn Rows,
    centroids: &mut [f32],
    seed: u64,
    crew: &Crew<'_>,
) -> Result<(), ClusterError> {
    let (dim, n) = (rows.dim(), rows.n() as usize);
    let nlist = centroids.len() / dim;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let drawn = draw_rows(n, rows_drawn_from(n, nlist, dim), &mut rng);
    let candidates = Candidates::new(rows, &drawn)?;
    let kernels = Kernels::best();
    let mut distance = vec![f32::INFINITY; drawn.len()];
    let mut free = vec![true; drawn.len()];
    let mut chosen = rng.random_range(0..drawn.len());
    for (list, centroid) in centroids.chunks_exact_mut(dim).enumerate() {
        centroid.copy_from_slice(candidates.row(chosen));
        free[chosen] = false;
        if list + 1 == nlist {
            break;
        }
        let pieces = distance.par_iter_mut().enumerate().with_min_len(crew.piece(PIECE));
        pieces.for_each(|(i, d)| *d = d.min(kernels.l2(centroid, candidates.row(i))));
        chosen = draw_far(&distance, &free, &mut rng);
    }
    Ok(())
}

/// The rows drawn from: where they lie, or read into memory.
enum Candidates<'a> {
    Within { values: &'a [f32], rows: &'a [u32], dim: usize },
    Gathered { values: Vec<f32>, dim: usize },
}

impl<'a> Candidates<'a> {
    fn new(rows: &'a dyn Rows, drawn: &'a [u32]) -> Result<Self, ClusterError> {
        let dim = rows.dim();
        if let Some(values) = rows.values() {
            return Ok(Self::Within { values, rows: drawn, dim });
        }
        let mut values = vec![0f32; drawn.len() * dim];
        gather(rows, drawn, &mut values)?;
        Ok(Self::Gathered { values, dim })
    }

    fn row(&self, i: usize) -> &[f32] {
        match self {
            Self::Within { values, rows, dim } => &values[rows[i] as usize * dim..][..*dim],
            Self::Gathered { values, dim } => &values[i * dim..][..*dim],
        }
    }
}

/// `min(wanted, rows)` distinct row numbers, ascending.
fn draw_rows(rows: usize, wanted: usize, rng: &mut impl Rng) -> Vec<u32> {
    if wanted >= rows {
        return (0..rows as u32).collect();
    }
    // Selection sampling: row i is taken with probability (still wanted) / (rows still to come).
    let mut chosen = Vec::with_capacity(wanted);
    for i in 0..rows {
        let (missing, to_come) = (wanted - chosen.len(), rows - i);
        if rng.random_range(0..to_come) < missing {
            chosen.push(i as u32);
        }
    }
    chosen
}

/// A free position, drawn in proportion to its distance; uniformly when all distances are 0.
/// At least one position must be free.
fn draw_far(distance: &[f32], free: &[bool], rng: &mut impl Rng) -> usize {
    let weight = |i: usize| {
        let d = f64::from(distance[i]);
        if free[i] && d.is_finite() { d } else { 0.0 }
    };
    let total: f64 = (0..distance.len()).map(weight).sum();
    if total > 0.0 {
        let mut rest = rng.random::<f64>() * total;
        let mut last = None;
        for i in (0..distance.len()).filter(|&i| weight(i) > 0.0) {
            last = Some(i);
            rest -= weight(i);
            if rest < 0.0 {
                break;
            }
        }
        if let Some(i) = last {
            return i;
        }
    }
    let nth = rng.random_range(0..free.iter().filter(|f| **f).count().max(1));
    (0..free.len()).filter(|&i| free[i]).nth(nth).unwrap_or(0)
}
