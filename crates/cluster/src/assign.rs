//! Which list a row belongs to: its nearest centroid.
//!
//! ```text
//! flat   for each tile of rows, for each tile of centroids:
//!            products (one matrix product), closeness = product - bias
//!            every centroid within 2 slack of the closest so far: exact distance, keep the least
//! graph  for each row: search the graph, take the first
//! ```
//!
//! Flat is exact: the answer is the least distance of the `simd` kernel over all lists, the lower
//! list on ties, whatever the matrix library rounds (see [`crate::screen`]). The graph misses a few:
//! it is for list numbers at which a product with every centroid costs more than a walk.

mod bytes;

use rayon::ThreadPool;
use simd::Kernels;

use crate::hnsw::{GraphMetric, Hnsw, HnswScratch};
use crate::{ClusterError, dots, screen};

/// Rows per product, and centroids per product: with 512 of each the products (1 MiB) stay in the
/// second-level cache and packing both sides costs a tenth.
const ROW_TILE: usize = 512;
const LIST_TILE: usize = 512;
/// From this many lists on `Auto` walks the graph. On 384 dims one AVX-512 thread assigned 6,600
/// (flat) against 3,100 (graph) rows a second to 16,384 lists, and 2,100 against 2,700 to 65,536,
/// where building the graph cost as much as assigning 100,000 rows: below twice that, flat wins.
const GRAPH_FROM: usize = 131_072;
/// Search width of the graph when assigning; 64 agreed with flat on 97.3 % of hard rows.
const GRAPH_EF: usize = 96;
/// Assigning must give the same lists in every run.
const GRAPH_SEED: u64 = 0x00A5_516E;

/// How to find the nearest centroid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AssignMethod {
    /// `Flat` for few lists, `Hnsw` where it is faster.
    #[default]
    Auto,
    /// Exact, by blocked matrix products.
    Flat,
    /// Approximate, by a graph over the centroids.
    Hnsw,
}

impl AssignMethod {
    fn walks_graph(self, nlist: usize) -> bool {
        match self {
            Self::Auto => nlist >= GRAPH_FROM,
            Self::Flat => false,
            Self::Hnsw => true,
        }
    }
}

/// Finds the nearest centroid of rows, many at a time.
///
/// Holds, next to the borrowed centroids, a shifted copy of them (flat) or a graph (HNSW).
pub struct Assigner<'a> {
    centroids: &'a [f32],
    dim: usize,
    route: Route,
}

enum Route {
    Flat(ShiftedCentroids),
    Graph(Box<Hnsw>),
}

/// Centroids moved to their mean, with the bias of each; see [`crate::screen`].
struct ShiftedCentroids {
    origin: Vec<f32>,
    rows: Vec<f32>,
    bias: Vec<f32>,
    max_norm: f64,
}

impl<'a> Assigner<'a> {
    /// Prepares for `centroids` (`nlist` rows of `dim` values). The pool is used to build the graph.
    ///
    /// # Errors
    /// When there is no centroid, `dim` is 0, the slice is not a whole number of rows, or there are
    /// more lists than 32 bits can number.
    pub fn new(
        centroids: &'a [f32],
        dim: usize,
        method: AssignMethod,
        pool: &ThreadPool,
    ) -> Result<Self, ClusterError> {
        let nlist = rows_of("centroids", centroids, dim)?;
        if nlist == 0 {
            return Err(ClusterError::Zero { what: "nlist" });
        }
        let route = if method.walks_graph(nlist) {
            let graph = Hnsw::build(centroids, dim, GraphMetric::L2, GRAPH_SEED, pool)?;
            Route::Graph(Box::new(graph))
        } else {
            Route::Flat(ShiftedCentroids::new(centroids, dim))
        };
        Ok(Self { centroids, dim, route })
    }

    /// The nearest list of every row and the squared L2 distance to its centroid.
    ///
    /// Runs on the calling thread; callers give blocks of rows (512 or more at a time, the work of
    /// a call is cut into such tiles) to their own threads. A row with non-finite values gets list
    /// 0 and an infinite distance.
    ///
    /// # Panics
    /// When `rows` is not a whole number of rows or the outputs do not have one entry per row.
    pub fn assign(&self, rows: &[f32], out_list: &mut [u32], out_dist2: &mut [f32]) {
        self.assign_with(rows, out_list, out_dist2, &mut AssignScratch::default());
    }

    /// [`Assigner::assign`] with the buffers of an earlier call.
    ///
    /// # Panics
    /// As [`Assigner::assign`].
    pub fn assign_with(
        &self,
        rows: &[f32],
        out_list: &mut [u32],
        out_dist2: &mut [f32],
        scratch: &mut AssignScratch,
    ) {
        assert_eq!(rows.len(), out_list.len() * self.dim, "assign: one list per row");
        assert_eq!(out_list.len(), out_dist2.len(), "assign: one distance per row");
        match &self.route {
            Route::Flat(flat) => {
                self.assign_flat(flat, rows, out_list, out_dist2, &mut scratch.tile);
            }
            Route::Graph(graph) => {
                self.assign_by_graph(graph, rows, out_list, out_dist2, scratch);
            }
        }
    }

    /// True when rows are assigned exactly, false when by the graph.
    pub fn is_exact(&self) -> bool {
        matches!(self.route, Route::Flat(_))
    }

    /// Bytes held besides the borrowed centroids.
    pub fn resident_bytes(&self) -> usize {
        match &self.route {
            Route::Flat(c) => 4 * (c.origin.len() + c.rows.len() + c.bias.len()),
            Route::Graph(graph) => graph.resident_bytes(),
        }
    }

    fn assign_flat(
        &self,
        flat: &ShiftedCentroids,
        rows: &[f32],
        out_list: &mut [u32],
        out_dist2: &mut [f32],
        tile: &mut Tile,
    ) {
        tile.fit(ROW_TILE.min(out_list.len()), self.dim, LIST_TILE.min(flat.bias.len()));
        for ((rows, list), dist2) in rows
            .chunks(ROW_TILE * self.dim)
            .zip(out_list.chunks_mut(ROW_TILE))
            .zip(out_dist2.chunks_mut(ROW_TILE))
        {
            tile.load(rows, self.dim, flat);
            list.fill(0);
            dist2.fill(f32::INFINITY);
            for first in (0..flat.bias.len()).step_by(LIST_TILE) {
                self.closest_in_tile(flat, first, rows, tile, list, dist2);
            }
        }
    }

    /// Lowers `dist2` of every row of the tile by what the lists `first..first + LIST_TILE` offer.
    fn closest_in_tile(
        &self,
        flat: &ShiftedCentroids,
        first: usize,
        rows: &[f32],
        tile: &mut Tile,
        list: &mut [u32],
        dist2: &mut [f32],
    ) {
        let (dim, kernels) = (self.dim, Kernels::best());
        let end = (first + LIST_TILE).min(flat.bias.len());
        let (bias, lists) = (&flat.bias[first..end], end - first);
        let products = &mut tile.products[..list.len() * lists];
        dots(&tile.rows[..rows.len()], &flat.rows[first * dim..end * dim], dim, products);
        for (i, products) in products.chunks_exact(lists).enumerate() {
            let top = screen::largest(products, bias).max(tile.top[i]);
            tile.top[i] = top;
            let threshold = screen::round_down(f64::from(top) - 2.0 * tile.slack[i]);
            let row = &rows[i * dim..(i + 1) * dim];
            screen::not_below(products, bias, threshold, |j| {
                let c = first + j;
                let d = kernels.l2(row, &self.centroids[c * dim..(c + 1) * dim]);
                if d < dist2[i] {
                    (dist2[i], list[i]) = (d, c as u32);
                }
            });
        }
    }

    fn assign_by_graph(
        &self,
        graph: &Hnsw,
        rows: &[f32],
        out_list: &mut [u32],
        out_dist2: &mut [f32],
        scratch: &mut AssignScratch,
    ) {
        let AssignScratch { walk, found, .. } = scratch;
        let outputs = out_list.iter_mut().zip(out_dist2);
        for (row, (list, dist2)) in rows.chunks_exact(self.dim).zip(outputs) {
            graph.search(self.centroids, row, GRAPH_EF, walk, found);
            let first = found.first().filter(|(d, _)| d.is_finite());
            (*dist2, *list) = first.copied().unwrap_or((f32::INFINITY, 0));
        }
    }
}

impl ShiftedCentroids {
    fn new(centroids: &[f32], dim: usize) -> Self {
        let origin = screen::mean(centroids, dim);
        let mut rows = vec![0.0; centroids.len()];
        let mut bias = Vec::with_capacity(centroids.len() / dim);
        let mut max_norm2 = 0f64;
        for (c, out) in centroids.chunks_exact(dim).zip(rows.chunks_exact_mut(dim)) {
            let norm2 = screen::shift(c, &origin, out);
            bias.push((norm2 / 2.0) as f32);
            max_norm2 = max_norm2.max(norm2);
        }
        Self { origin, rows, bias, max_norm: max_norm2.sqrt() }
    }
}

/// Buffers of [`Assigner::assign_with`]. One per thread; [`Assigner::scratch_bytes`] bounds them.
#[derive(Default)]
pub struct AssignScratch {
    tile: Tile,
    walk: HnswScratch,
    found: Vec<(f32, u32)>,
}

/// Scratch for one tile of rows.
#[derive(Default)]
struct Tile {
    /// The rows, moved to the centroids' origin.
    rows: Vec<f32>,
    /// Rounding bound of each row's closeness, twice as wide as the products need: the other half
    /// covers the rounding of the exact distances that decide.
    slack: Vec<f64>,
    /// Largest closeness of each row so far.
    top: Vec<f32>,
    products: Vec<f32>,
}

impl Tile {
    /// Grows the buffers to `rows` rows of `dim` values against `lists` lists.
    fn fit(&mut self, rows: usize, dim: usize, lists: usize) {
        grow(&mut self.rows, rows * dim);
        grow(&mut self.slack, rows);
        grow(&mut self.top, rows);
        grow(&mut self.products, rows * lists);
    }

    fn load(&mut self, rows: &[f32], dim: usize, flat: &ShiftedCentroids) {
        let kernels = Kernels::best();
        self.top.fill(f32::NEG_INFINITY);
        let shifted = self.rows.chunks_exact_mut(dim).zip(&mut self.slack);
        for (row, (out, slack)) in rows.chunks_exact(dim).zip(shifted) {
            let norm = screen::shift_fast(row, &flat.origin, out, kernels);
            *slack = screen::slack(dim, norm, norm.max(flat.max_norm));
        }
    }
}

/// Makes a buffer hold at least `len` values, whatever they are; exactly that many when it grows.
fn grow<T: Clone + Default>(buffer: &mut Vec<T>, len: usize) {
    if buffer.len() < len {
        *buffer = Vec::new();
        *buffer = vec![T::default(); len];
    }
}

/// Number of rows in `values`.
pub(crate) fn rows_of(
    what: &'static str,
    values: &[f32],
    dim: usize,
) -> Result<usize, ClusterError> {
    if dim == 0 {
        return Err(ClusterError::Zero { what: "dim" });
    }
    if !values.len().is_multiple_of(dim) {
        return Err(ClusterError::Shape { what, len: values.len(), dim });
    }
    let rows = values.len() / dim;
    if rows >= u32::MAX as usize {
        return Err(ClusterError::TooManyRows { what, rows });
    }
    Ok(rows)
}
