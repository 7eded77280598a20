//! K-means: from a sample of rows to `nlist` centroids.
//!
//! ```text
//! few lists    seed (k-means++) ─▶ lloyd x iterations
//! many lists   √nlist coarse lists ─▶ split each in proportion to its rows ─▶ lloyd x refinements
//! ```
//!
//! Lloyd's iteration compares every row with every centroid: `rows · nlist · dim` multiplications,
//! which at `rows ∝ nlist` grows with the square of nlist. Splitting coarse lists compares a row
//! with √nlist centroids twice instead; a global iteration then lets rows cross the borders of the
//! coarse lists.
//!
//! The result depends on the sample, the options and nothing else: assignment is exact (or a
//! deterministic graph), every list is summed by one thread in row order, and ties go to the lower
//! list.

mod lloyd;
mod seeding;
mod split;
#[cfg(test)]
mod tests;

use rayon::ThreadPool;

use crate::ClusterError;
use crate::assign::rows_of;

/// How to train centroids.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KmeansOptions {
    /// Seed of every random choice.
    pub seed: u64,
    /// Lloyd iterations at most, in each of the two levels when there are two. Fewer run once no
    /// row changes its list.
    pub iterations: usize,
    /// Global iterations after a two-level start. On 300,000 text embeddings of 384 dims, 4,688
    /// lists, the mean squared error was 0.543 without one, 0.533 with one and 0.529 with two, each
    /// of them a product of all rows with all centroids: one takes more time than all before it.
    pub refinements: usize,
    /// From this many lists on, train in two levels.
    pub two_level_from: usize,
}

impl Default for KmeansOptions {
    fn default() -> Self {
        Self { seed: 0, iterations: 10, refinements: 1, two_level_from: 512 }
    }
}

/// Trains `nlist` centroids on `sample` (rows of `dim` values); returns `nlist * dim` values.
///
/// `progress` is called with the fraction done, from any thread, never decreasing by much. When the
/// sample has fewer distinct rows than `nlist`, some centroids coincide. Memory besides the sample:
/// 8 bytes per row, the centroids twice, and for two levels the rows of the lists being split.
///
/// # Errors
/// When the sample has fewer rows than `nlist`, is not a whole number of rows, or `nlist` or `dim`
/// is 0.
pub fn kmeans(
    sample: &[f32],
    dim: usize,
    nlist: usize,
    options: &KmeansOptions,
    pool: &ThreadPool,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Vec<f32>, ClusterError> {
    let rows = rows_of("the k-means sample", sample, dim)?;
    if nlist == 0 {
        return Err(ClusterError::Zero { what: "nlist" });
    }
    if rows < nlist {
        return Err(ClusterError::TooFewRows { rows, nlist });
    }
    let sample = Sample { rows: sample, dim };
    let centroids = pool.install(|| {
        if nlist < options.two_level_from.max(4) {
            train(sample, nlist, options.seed, options.iterations, pool, progress)
        } else {
            split::train_in_two_levels(sample, nlist, options, pool, progress)
        }
    })?;
    progress(1.0);
    Ok(centroids)
}

/// Rows of `dim` values.
#[derive(Clone, Copy)]
struct Sample<'a> {
    rows: &'a [f32],
    dim: usize,
}

impl<'a> Sample<'a> {
    fn len(self) -> usize {
        self.rows.len() / self.dim
    }

    fn row(self, i: usize) -> &'a [f32] {
        &self.rows[i * self.dim..(i + 1) * self.dim]
    }
}

/// Seeds `nlist` centroids and iterates: one level.
fn train(
    sample: Sample<'_>,
    nlist: usize,
    seed: u64,
    iterations: usize,
    pool: &ThreadPool,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Vec<f32>, ClusterError> {
    let mut centroids = seeding::spread(sample, nlist, seed);
    lloyd::iterate(sample, &mut centroids, iterations, pool, progress)?;
    Ok(centroids)
}
