//! A block of base rows, made ready for products.
//!
//! The origin is the mean of the first block: any point is valid, a central one keeps the rounding
//! bound narrow. Rows are normalised first for cosine, so there the origin is a mean of unit rows.

use rayon::prelude::*;

use super::{Metric, TILE_ROWS};
use crate::screen::{self, norm2};

/// The moved rows of one block.
pub(super) struct Block {
    dim: usize,
    metric: Metric,
    origin: Vec<f32>,
    origin_norm: f64,
    moved: Vec<f32>,
}

/// What the comparison must know of `TILE_ROWS` rows, or fewer at the end.
pub(super) struct Tile {
    /// Row number in the base.
    pub(super) start: u64,
    /// Row number in the block.
    pub(super) first: usize,
    /// Subtracted from each product; infinite for rows that are out.
    pub(super) bias: Vec<f32>,
    /// Norm of each original row; NaN for rows that are out.
    pub(super) norms: Vec<f64>,
    /// Largest norm of the moved rows.
    pub(super) max_norm: f64,
    /// Rows that may be neighbours, zero rows included.
    pub(super) eligible: u64,
    /// Eligible zero rows, under cosine.
    pub(super) zero_rows: Vec<u64>,
}

impl Block {
    pub(super) fn new(dim: usize, metric: Metric) -> Self {
        Self { dim, metric, origin: Vec::new(), origin_norm: 0.0, moved: Vec::new() }
    }

    /// Prepares the rows from `start` on; runs in the current pool.
    pub(super) fn prepare(
        &mut self,
        start: u64,
        rows: &[f32],
        skip: Option<&(dyn Fn(u64) -> bool + Sync)>,
    ) -> Vec<Tile> {
        let dim = self.dim;
        if self.origin.is_empty() {
            self.origin = origin_of(rows, dim, self.metric);
            self.origin_norm = norm2(&self.origin).sqrt();
        }
        let mut moved = std::mem::take(&mut self.moved);
        moved.resize(rows.len(), 0.0);
        let tiles = moved
            .par_chunks_mut(TILE_ROWS * dim)
            .zip(rows.par_chunks(TILE_ROWS * dim))
            .enumerate()
            .map(|(t, (moved, rows))| {
                let first = t * TILE_ROWS;
                self.prepare_tile(start + first as u64, first, rows, moved, skip)
            })
            .collect();
        self.moved = moved;
        tiles
    }

    pub(super) fn origin(&self) -> &[f32] {
        &self.origin
    }

    pub(super) fn origin_norm(&self) -> f64 {
        self.origin_norm
    }

    /// The moved rows of a tile.
    pub(super) fn moved(&self, tile: &Tile) -> &[f32] {
        &self.moved[tile.first * self.dim..(tile.first + tile.bias.len()) * self.dim]
    }

    fn prepare_tile(
        &self,
        start: u64,
        first: usize,
        rows: &[f32],
        moved: &mut [f32],
        skip: Option<&(dyn Fn(u64) -> bool + Sync)>,
    ) -> Tile {
        let count = rows.len() / self.dim;
        let mut tile = Tile {
            start,
            first,
            bias: Vec::with_capacity(count),
            norms: Vec::with_capacity(count),
            max_norm: 0.0,
            eligible: 0,
            zero_rows: Vec::new(),
        };
        let rows = rows.chunks_exact(self.dim).zip(moved.chunks_exact_mut(self.dim));
        for (id, (row, moved)) in (start..).zip(rows) {
            let norm = norm2(row).sqrt();
            let eligible = norm.is_finite() && !skip.is_some_and(|skip| skip(id));
            let zero = self.metric == Metric::Cosine && norm == 0.0;
            tile.eligible += u64::from(eligible);
            if zero && eligible {
                tile.zero_rows.push(id);
            }
            if !eligible || zero {
                moved.fill(0.0);
                tile.bias.push(f32::INFINITY);
                tile.norms.push(f64::NAN);
                continue;
            }
            let moved_norm2 = self.move_row(row, norm, moved);
            tile.max_norm = tile.max_norm.max(moved_norm2.sqrt());
            tile.norms.push(norm);
            tile.bias.push(match self.metric {
                Metric::L2 => (moved_norm2 / 2.0) as f32,
                Metric::Ip | Metric::Cosine => 0.0,
            });
        }
        tile
    }

    /// Scales (cosine) and moves one row; returns its squared norm then.
    fn move_row(&self, row: &[f32], norm: f64, moved: &mut [f32]) -> f64 {
        if self.metric != Metric::Cosine {
            return screen::shift(row, &self.origin, moved);
        }
        for ((m, x), o) in moved.iter_mut().zip(row).zip(&self.origin) {
            *m = (f64::from(*x) / norm) as f32 - o;
        }
        norm2(moved)
    }
}

/// The mean of the rows that are finite, after scaling them for cosine.
fn origin_of(rows: &[f32], dim: usize, metric: Metric) -> Vec<f32> {
    let mut sums = vec![0f64; dim];
    let mut count = 0u32;
    for row in rows.chunks_exact(dim).take(TILE_ROWS) {
        let norm = norm2(row).sqrt();
        if !norm.is_finite() || norm == 0.0 {
            continue;
        }
        let scale = if metric == Metric::Cosine { 1.0 / norm } else { 1.0 };
        for (s, x) in sums.iter_mut().zip(row) {
            *s += scale * f64::from(*x);
        }
        count += 1;
    }
    sums.iter().map(|s| (s / f64::from(count.max(1))) as f32).collect()
}
