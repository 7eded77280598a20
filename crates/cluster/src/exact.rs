//! Exact k nearest neighbours of many queries: the ground truth.
//!
//! ```text
//! reader thread   base rows ──blocks──▶
//! pool            block ──prepare──▶ tiles: rows moved to the origin, bias, largest norm
//!                 for each group of queries (parallel), for each tile:
//!                     products = queries x rowsᵀ                      f32, one matrix product
//!                     threshold of a query = its k-th best score - rounding bound
//!                     row not below the threshold ─▶ score in f64 ─▶ k best of that query
//! ```
//!
//! The product only screens (see [`crate::screen`]); scores and order come from f64 sums over the
//! original values, so the result is that of a brute force in f64 with ties to the lower row. Rows
//! are seen in ascending order and about `k · ln(n / tile)` of them are scored per query; data full
//! of near ties is scored more often, never wrongly, and memory stays bounded: two blocks being read
//! and computed, one prepared copy, and k entries per query.

mod best;
mod prepare;
mod score;
#[cfg(test)]
mod tests;

use rayon::ThreadPool;
use rayon::prelude::*;

use self::best::Best;
use self::prepare::{Block, Tile};
use self::score::PreparedQueries;
use crate::assign::rows_of;
use crate::{ClusterError, RowSource, dots, read_ahead, screen};

/// Bytes of base rows per block; two of them are read, one more is prepared.
const BLOCK_BYTES: usize = 16 << 20;
/// Base rows per product.
const TILE_ROWS: usize = 256;
/// Queries per product at most.
const GROUP_QUERIES: usize = 1024;

/// How two vectors are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Squared Euclidean distance, ascending.
    L2,
    /// Inner product, descending.
    Ip,
    /// Cosine similarity, descending; zero rows score 0 and come after all others. To a zero query
    /// every row scores 0, zero rows included, and all come by row number.
    Cosine,
}

/// The k best rows of every query, row-major: query `i` has entries `i*k..(i+1)*k`.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbours {
    /// Entries per query: what was asked for, or the number of eligible rows when that is less.
    pub k: usize,
    /// Row numbers, best first, the lower row first on equal scores.
    pub ids: Vec<u64>,
    /// Squared L2 distances, inner products or cosines, computed in f64.
    pub scores: Vec<f32>,
}

/// The `k` best base rows of every query (rows of `base.dim()` values), exactly.
///
/// Rows for which `skip` returns true and rows with non-finite values are not eligible. `progress`
/// is called with the fraction of the base that was compared.
///
/// # Errors
/// When a size is 0, `queries` is not a whole number of rows, a query is not finite, or the base
/// cannot be read.
pub fn exact_neighbours(
    base: &dyn RowSource,
    queries: &[f32],
    k: usize,
    metric: Metric,
    skip: Option<&(dyn Fn(u64) -> bool + Sync)>,
    pool: &ThreadPool,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Neighbours, ClusterError> {
    let dim = base.dim();
    let count = rows_of("queries", queries, dim)?;
    if k == 0 {
        return Err(ClusterError::Zero { what: "k" });
    }
    if let Some(at) = queries.iter().position(|v| !v.is_finite()) {
        return Err(ClusterError::NonFiniteQuery { row: at / dim, column: at % dim });
    }
    let k = k.min(usize::try_from(base.n()).unwrap_or(usize::MAX));
    let mut search = Search::new(queries, dim, count, k, metric, pool);
    let block_rows = (BLOCK_BYTES / (4 * dim)).max(1).next_multiple_of(TILE_ROWS);
    let read = |start, out: &mut [f32]| base.read_f32(start, out);
    read_ahead::for_each_block(base.n(), dim, block_rows, read, |start, rows| {
        pool.install(|| search.compare(start, rows, skip));
        progress((start + (rows.len() / dim) as u64) as f64 / base.n() as f64);
    })?;
    Ok(search.finish())
}

/// All queries in the course of one pass over the base.
struct Search<'a> {
    queries: PreparedQueries<'a>,
    block: Block,
    /// The k best of each query.
    best: Vec<Best>,
    /// Queries per task.
    group: usize,
    metric: Metric,
    k: usize,
    /// Rows that may be neighbours, so far.
    eligible: u64,
    /// The first k zero rows, which cosine puts last.
    zero_rows: Vec<u64>,
}

impl<'a> Search<'a> {
    fn new(
        queries: &'a [f32],
        dim: usize,
        count: usize,
        k: usize,
        metric: Metric,
        pool: &ThreadPool,
    ) -> Self {
        // Equal groups, as many as keep all threads busy, none larger than a product takes.
        let threads = pool.current_num_threads().max(1);
        let rounds = count.div_ceil(threads * GROUP_QUERIES).max(1);
        Self {
            queries: PreparedQueries::new(queries, dim, metric),
            block: Block::new(dim, metric),
            best: (0..count).map(|_| Best::new(k)).collect(),
            group: count.div_ceil(threads * rounds).max(1),
            metric,
            k,
            eligible: 0,
            zero_rows: Vec::new(),
        }
    }

    /// Compares all queries with the rows `start..` of the base.
    fn compare(&mut self, start: u64, rows: &[f32], skip: Option<&(dyn Fn(u64) -> bool + Sync)>) {
        let tiles = self.block.prepare(start, rows, skip);
        self.queries.move_to(self.block.origin());
        for tile in &tiles {
            self.eligible += tile.eligible;
            let room = self.k - self.zero_rows.len();
            self.zero_rows.extend(tile.zero_rows.iter().take(room));
        }
        let (block, queries, k, group) = (&self.block, &self.queries, self.k, self.group);
        self.best.par_chunks_mut(group).enumerate().for_each_init(
            Scratch::default,
            |scratch, (g, best)| {
                for tile in &tiles {
                    compare_tile(queries, g * group, best, block, tile, rows, k, scratch);
                }
            },
        );
    }

    fn finish(self) -> Neighbours {
        let k = self.k.min(usize::try_from(self.eligible).unwrap_or(usize::MAX));
        let mut found = Neighbours { k, ids: Vec::new(), scores: Vec::new() };
        for (query, best) in self.best.into_iter().enumerate() {
            let hits = best.into_sorted();
            let scored = hits.iter().map(|h| (self.queries.score_of(h.cost), h.id));
            let zeros = self.zero_rows.iter().map(|&id| (0.0, id));
            let mut all: Vec<(f64, u64)> = scored.chain(zeros).collect();
            if self.metric == Metric::Cosine && self.queries.is_zero(query) {
                all.sort_unstable_by_key(|&(_, id)| id);
            }
            for (score, id) in all.into_iter().take(k) {
                found.ids.push(id);
                found.scores.push(score as f32);
            }
        }
        found
    }
}

/// Buffers of one task.
#[derive(Default)]
struct Scratch {
    products: Vec<f32>,
    closeness: Vec<f32>,
}

/// Compares the queries `first..first + best.len()` with one tile of a block.
#[allow(clippy::too_many_arguments)]
fn compare_tile(
    queries: &PreparedQueries<'_>,
    first: usize,
    best: &mut [Best],
    block: &Block,
    tile: &Tile,
    rows: &[f32],
    k: usize,
    scratch: &mut Scratch,
) {
    let (dim, lanes) = (queries.dim(), tile.bias.len());
    scratch.products.resize(best.len() * lanes, 0.0);
    dots(queries.moved(first, best.len()), block.moved(tile), dim, &mut scratch.products);
    for (i, (products, best)) in scratch.products.chunks_exact(lanes).zip(best).enumerate() {
        let query = first + i;
        let slack = queries.slack(query, tile.max_norm, block.origin_norm());
        let threshold = match best.worst() {
            Some(cost) => queries.closeness_of(query, cost) - slack,
            None => kth_largest(products, &tile.bias, k, &mut scratch.closeness) - 2.0 * slack,
        };
        screen::not_below(products, &tile.bias, screen::round_down(threshold), |j| {
            let norm = tile.norms[j];
            if norm.is_nan() {
                return;
            }
            let row = tile.first + j;
            let cost = queries.cost(query, &rows[row * dim..(row + 1) * dim], norm);
            best.offer(cost, tile.start + j as u64);
        });
    }
}

/// The k-th largest closeness of a tile: a first threshold while a query has fewer than k rows.
/// Minus infinity when the tile has fewer than k rows.
fn kth_largest(products: &[f32], bias: &[f32], k: usize, closeness: &mut Vec<f32>) -> f64 {
    if products.len() < k {
        return f64::NEG_INFINITY;
    }
    closeness.clear();
    closeness.extend(products.iter().zip(bias).map(|(p, b)| p - b));
    let (_, kth, _) = closeness.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
    f64::from(*kth)
}
