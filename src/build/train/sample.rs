//! The rows that the lists are trained on: a uniform sample, prepared as the index sees rows.
//!
//! ```text
//! row numbers (ascending) ──gather──▶ values ──unit length under cosine──▶ minus the mean
//! ```
//!
//! The sample is read again in every pass over it, or once into memory where there is room: the
//! values are the same.

use std::error::Error;

use cluster::{RowSource, Rows};
use dataset::{Base, sample_rows};
use rayon::prelude::*;

use crate::build::Watch;
use crate::build::prepare::prepare;
use crate::build::survey::Survey;
use crate::config::Metric;
use crate::error::BuildError;

/// Sample rows per list: k-means gains nothing measurable from more (faiss uses the same).
const ROWS_PER_LIST: u64 = 256;
/// Most values the sample holds, but for [`LEAST_ROWS_PER_LIST`].
const VALUES: u64 = 1 << 29;
/// Rows per list below which centroids are visibly worse, whatever the dim.
const LEAST_ROWS_PER_LIST: u64 = 64;

/// Number of rows that `nlist` lists are trained on, of a base of `n` rows.
pub(crate) fn sample_rows_count(n: u64, dim: usize, nlist: usize) -> u64 {
    let nlist = nlist as u64;
    let most = (VALUES / dim.max(1) as u64).max(nlist * LEAST_ROWS_PER_LIST);
    (nlist * ROWS_PER_LIST).min(most).min(n).min(u64::from(u32::MAX - 1))
}

/// Values of a block that one thread reads at a time, about (2 MiB of f32).
pub(super) const BLOCK_VALUES: usize = 1 << 19;

/// Rows of a base, prepared when they are read.
pub(crate) struct Sample<'a> {
    base: &'a Base,
    metric: Metric,
    /// Row numbers of the base, ascending.
    rows: Vec<u64>,
    /// What is subtracted from each row; empty as long as nothing is.
    mean: Vec<f32>,
    watch: &'a Watch<'a>,
}

impl<'a> Sample<'a> {
    /// Draws rows that belong in lists, at least `nlist` where the base has as many.
    pub(super) fn draw(
        base: &'a Base,
        survey: &Survey,
        metric: Metric,
        nlist: usize,
        seed: u64,
        watch: &'a Watch<'a>,
    ) -> Self {
        let count = sample_rows_count(base.n(), base.dim(), nlist);
        let mut rows = sample_rows(base.n(), count, seed);
        rows.retain(|&row| survey.listed(row));
        if rows.len() < nlist {
            // Most rows belong in no list: draw from those that do.
            let mut ranks = sample_rows(survey.stored(), count, seed).into_iter().peekable();
            let listed = (0..base.n()).filter(|&row| survey.listed(row));
            let drawn = listed.zip(0..).filter(|(_, rank)| ranks.next_if_eq(rank).is_some());
            rows = drawn.map(|(row, _)| row).collect();
        }
        Self { base, metric, rows, mean: Vec::new(), watch }
    }

    /// Chosen rows, ascending, less the `mean`.
    pub(crate) fn of(
        base: &'a Base,
        rows: Vec<u64>,
        metric: Metric,
        mean: &[f32],
        watch: &'a Watch<'a>,
    ) -> Self {
        Self { base, metric, rows, mean: mean.to_vec(), watch }
    }

    /// Takes the mean of the rows off them from now on, and returns it: summed in f64, in the
    /// order of the rows.
    pub(super) fn centre(&mut self) -> Result<Vec<f32>, BuildError> {
        let dim = self.base.dim();
        let wave = rayon::current_num_threads() * self.block();
        let mut values = vec![0f32; wave.min(self.rows.len()) * dim];
        let mut sum = vec![0f64; dim];
        for rows in self.rows.chunks(wave) {
            let values = &mut values[..rows.len() * dim];
            self.read_together(rows, values)?;
            for row in values.chunks_exact(dim) {
                sum.iter_mut().zip(row).for_each(|(s, &v)| *s += f64::from(v));
            }
        }
        let n = self.rows.len().max(1) as f64;
        self.mean = sum.iter().map(|s| (s / n) as f32).collect();
        Ok(self.mean.clone())
    }

    /// All rows.
    pub(super) fn load(&self) -> Result<Vec<f32>, BuildError> {
        let mut values = vec![0f32; self.rows.len() * self.base.dim()];
        self.read_together(&self.rows, &mut values)?;
        Ok(values)
    }

    /// Reads rows with all threads.
    fn read_together(&self, rows: &[u64], out: &mut [f32]) -> Result<(), BuildError> {
        out.par_chunks_mut(self.block() * self.base.dim())
            .zip(rows.par_chunks(self.block()))
            .try_for_each(|(out, rows)| self.read(rows, out))
    }

    /// Rows a thread reads at a time.
    fn block(&self) -> usize {
        (BLOCK_VALUES / self.base.dim()).max(1)
    }

    fn read(&self, rows: &[u64], out: &mut [f32]) -> Result<(), BuildError> {
        self.watch.cancelled()?;
        match (rows.first(), rows.last()) {
            (Some(&first), Some(&last)) if last - first == rows.len() as u64 - 1 => {
                self.base.read_f32(first, out)?;
            }
            _ => self.base.gather_f32(rows, out)?,
        }
        out.chunks_exact_mut(self.base.dim()).for_each(|row| prepare(row, self.metric, &self.mean));
        Ok(())
    }
}

impl RowSource for Sample<'_> {
    fn n(&self) -> u64 {
        self.rows.len() as u64
    }

    fn dim(&self) -> usize {
        self.base.dim()
    }

    fn read_f32(&self, start: u64, out: &mut [f32]) -> Result<(), Box<dyn Error + Send + Sync>> {
        let (start, count) = (start as usize, out.len() / self.base.dim());
        Ok(self.read(&self.rows[start..start + count], out)?)
    }
}

impl Rows for Sample<'_> {
    fn gather_f32(
        &self,
        rows: &[u32],
        out: &mut [f32],
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let rows: Vec<u64> = rows.iter().map(|&row| self.rows[row as usize]).collect();
        Ok(self.read(&rows, out)?)
    }
}
