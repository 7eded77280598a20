//! The sums of the rows of every list.
//!
//! ```text
//!            columns 0..32   32..64   64..96  ...        one block of columns holds all lists
//! list 0    ┌─────────────┬─────────┬─────────┐          and lies together in memory:
//! list 1    │             │         │         │          a thread adds the rows of a wave, in
//! ...       │             │         │         │          order, to the columns of its block
//!           └─────────────┴─────────┴─────────┘
//! ```
//!
//! Every (list, column) is thus summed by one thread in row order, whatever the threads: the bytes
//! do not depend on their number, and there is one accumulator instead of one per thread.

use rayon::prelude::*;

use super::crew::Crew;

/// Columns of a block: two cache lines of a row, four of a sum.
const COLUMNS: usize = 32;

/// Sums in f64 and numbers of rows, by list.
pub(super) struct Sums {
    dim: usize,
    counts: Vec<u32>,
    /// Block after block of columns; `nlist` x columns each.
    sums: Vec<f64>,
}

impl Sums {
    pub(super) fn new(nlist: usize, dim: usize) -> Self {
        Self { dim, counts: vec![0; nlist], sums: vec![0.0; nlist * dim] }
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
        let blocks = self.sums.par_chunks_mut(nlist * COLUMNS).enumerate();
        blocks.with_min_len(crew.piece(1)).for_each(|(block, sums)| {
            let (first, width) = (block * COLUMNS, sums.len() / nlist);
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
            let blocks = self.sums.chunks(nlist * COLUMNS).zip(centroid.chunks_mut(COLUMNS));
            for (sums, centroid) in blocks {
                let sum = &sums[list * centroid.len()..][..centroid.len()];
                centroid.iter_mut().zip(sum).for_each(|(c, s)| *c = (s / rows) as f32);
            }
        });
    }
}
