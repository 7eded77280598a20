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
//! Rows are read when they are needed, in waves of a fixed size, so a sample may be larger than
//! memory. What is held: the centroids, one sum per centroid, 8 bytes per row, and the rows of as
//! many coarse lists as [`KmeansOptions::memory`] allows ([`kmeans_bytes`] adds it up).
//!
//! The result depends on the rows, the options that say so, and nothing else: assignment is exact
//! (or a deterministic graph), every sum is taken in row order, and ties go to the lower list.

mod bytes;
mod crew;
mod groups;
mod lloyd;
mod load;
mod picked;
mod refill;
mod seeding;
mod split;
mod sums;
#[cfg(test)]
mod tests;
mod waves;

use rayon::ThreadPool;

pub use self::bytes::kmeans_bytes;
use self::crew::Crew;
use crate::{ClusterError, Rows};

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
    /// Bytes for rows of coarse lists that are split at the same time. Less memory means more
    /// passes over the rows; the result is the same.
    pub memory: u64,
}

impl Default for KmeansOptions {
    fn default() -> Self {
        Self { seed: 0, iterations: 10, refinements: 1, two_level_from: 512, memory: 256 << 20 }
    }
}

impl KmeansOptions {
    fn in_two_levels(&self, nlist: usize) -> bool {
        nlist >= self.two_level_from.max(4)
    }
}

/// Trains `nlist` centroids on `rows`; returns `nlist * dim` values.
///
/// `progress` is called with the fraction done, from any thread, never decreasing by much. When
/// fewer rows are distinct than `nlist`, some centroids coincide. For the memory see
/// [`kmeans_bytes`].
///
/// # Errors
/// When there are fewer rows than `nlist`, or more than 32 bits can number, when `nlist` or the dim
/// is 0, or when the rows cannot be read.
pub fn kmeans(
    rows: &dyn Rows,
    nlist: usize,
    options: &KmeansOptions,
    pool: &ThreadPool,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Vec<f32>, ClusterError> {
    let n = usize::try_from(rows.n()).unwrap_or(usize::MAX);
    if nlist == 0 {
        return Err(ClusterError::Zero { what: "nlist" });
    }
    if rows.dim() == 0 {
        return Err(ClusterError::Zero { what: "dim" });
    }
    if n >= u32::MAX as usize {
        return Err(ClusterError::TooManyRows { what: "the k-means sample", rows: n });
    }
    if n < nlist {
        return Err(ClusterError::TooFewRows { rows: n, nlist });
    }
    let scratch = Crew::scratch_for(pool);
    let crew = Crew::together(pool, &scratch);
    let mut centroids = vec![0f32; nlist * rows.dim()];
    pool.install(|| {
        if options.in_two_levels(nlist) {
            split::train_in_two_levels(rows, &mut centroids, options, &crew, progress)
        } else {
            train(rows, &mut centroids, options.seed, options.iterations, &crew, progress)
        }
    })?;
    progress(1.0);
    Ok(centroids)
}

/// Seeds the centroids and iterates: one level.
fn train(
    rows: &dyn Rows,
    centroids: &mut [f32],
    seed: u64,
    iterations: usize,
    crew: &Crew<'_>,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<(), ClusterError> {
    seeding::spread(rows, centroids, seed, crew)?;
    lloyd::iterate(rows, centroids, iterations, crew, progress)
}
