//! The sums of the rows of every list.
//!
//! ```text
//!             columns of thread 0   of thread 1   ...
//! list 0    ┌─────────────────────┬─────────────┬─────┐    the columns of a thread lie together
//! list 1    │                     │             │     │    in memory, list after list; it adds
//! ...       │                     │             │     │    its part of every row, in order
//!           └─────────────────────┴─────────────┴─────┘
//! ```
//!
//! Every (list, column) is thus summed by one thread in row order, whatever the threads: the bytes
//! do not depend on their number, and there is one accumulator instead of one per thread.

use rayon::prelude::*;

use super::crew::Crew;

/// Columns of a thread at least, and the multiple they are rounded up to: a cache line of a row.
const LEAST_COLUMNS: usize = 16;

/// Sums in f64 and numbers of rows, by list.
pub(super) struct Sums {
    dim: usize,
    /// Columns that a thread adds, all but the last.
    columns: usize,
    counts: Vec<u32>,
    /// Part after part of columns; `nlist` x columns each.
    sums: Vec<f64>,
}

impl Sums {
    pub(super) fn new(nlist: usize, dim: usize, crew: &Crew<'_>) -> Self {
        let columns = dim.div_ceil(crew.threads()).next_multiple_of(LEAST_COLUMNS);
        Self { dim, columns, counts: vec![0; nlist], sums: vec![0.0; nlist * dim] }
    }

    /// Number of rows of every list.
    pub(super) fn counts(&self) -> &[u32] {
        &self.counts
    }

    pub(super) fn clear(&mut self) {
        self.counts.fill(0);
        self.sums.fill(0.0);
    }

    /// Adds every row to its list.
    pub(super) fn add(&mut self, rows: &[f32], lists: &[u32], crew: &Crew<'_>) {
        let (dim, nlist) = (self.dim, self.counts.len());
        lists.iter().for_each(|&list| self.counts[list as usize] += 1);
        let columns = self.columns;
        let parts = self.sums.par_chunks_mut(nlist * columns).enumerate();
        parts.with_min_len(crew.piece(1)).for_each(|(part, sums)| {
            let (first, width) = (part * columns, sums.len() / nlist);
            for (row, &list) in rows.chunks_exact(dim).zip(lists) {
                let sum = &mut sums[list as usize * width..][..width];
                for (s, x) in sum.iter_mut().zip(&row[first..first + width]) {
                    *s += f64::from(*x);
                }
            }
        });
    }

    /// Moves the centroid of every list that has rows to their mean.
    pub(super) fn move_to_means(&self, centroids: &mut [f32], crew: &Crew<'_>) {
        let nlist = self.counts.len();
        let centroids = centroids.par_chunks_mut(self.dim).enumerate();
        centroids.with_min_len(crew.piece(64)).for_each(|(list, centroid)| {
            let rows = f64::from(self.counts[list]);
            if rows == 0.0 {
                return;
            }
            let parts = self.sums.chunks(nlist * self.columns);
            for (sums, centroid) in parts.zip(centroid.chunks_mut(self.columns)) {
                let sum = &sums[list * centroid.len()..][..centroid.len()];
                centroid.iter_mut().zip(sum).for_each(|(c, s)| *c = (s / rows) as f32);
            }
        });
    }
}
