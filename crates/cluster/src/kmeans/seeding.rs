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
//! training and leave the start as good: Lloyd sees all rows afterwards.

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use simd::Kernels;

use super::Sample;

/// Rows drawn from, per list.
const ROWS_PER_LIST: usize = 32;

/// `nlist` rows of the sample, spread out; `nlist` is at most the number of rows.
///
/// Every row is chosen at most once, so with `nlist` equal to the number of rows all are returned.
/// Once all rows coincide with a centroid the rest is drawn uniformly.
pub(super) fn spread(sample: Sample<'_>, nlist: usize, seed: u64) -> Vec<f32> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let pool = draw_rows(sample.len(), nlist.saturating_mul(ROWS_PER_LIST), &mut rng);
    let kernels = Kernels::best();
    let mut distance = vec![f32::INFINITY; pool.len()];
    let mut free = vec![true; pool.len()];
    let mut centroids = Vec::with_capacity(nlist * sample.dim);
    let mut chosen = rng.random_range(0..pool.len());
    for left in (0..nlist).rev() {
        let centroid = sample.row(pool[chosen]);
        centroids.extend_from_slice(centroid);
        free[chosen] = false;
        if left == 0 {
            break;
        }
        for (d, &row) in distance.iter_mut().zip(&pool) {
            *d = d.min(kernels.l2(centroid, sample.row(row)));
        }
        chosen = draw_far(&distance, &free, &mut rng);
    }
    centroids
}

/// `min(wanted, rows)` distinct row numbers, ascending.
fn draw_rows(rows: usize, wanted: usize, rng: &mut impl Rng) -> Vec<usize> {
    if wanted >= rows {
        return (0..rows).collect();
    }
    // Selection sampling: row i is taken with probability (still wanted) / (rows still to come).
    let mut chosen = Vec::with_capacity(wanted);
    for i in 0..rows {
        let (missing, to_come) = (wanted - chosen.len(), rows - i);
        if rng.random_range(0..to_come) < missing {
            chosen.push(i);
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
