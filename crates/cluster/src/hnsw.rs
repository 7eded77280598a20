//! A small HNSW graph over rows in memory (Malkov and Yashunin, arXiv 1603.09320).
//!
//! ```text
//! layer 2     ·───────────────·            few nodes, long links     greedy: go to the nearest
//! layer 1     ·────·──────·───·────·                                  neighbour while it is nearer
//! layer 0     ·─·──·─·─·──·─·─·─·──·─·─·   all nodes, short links    best first, ef candidates
//! ```
//!
//! What differs from the usual implementation:
//!
//! * The graph does not own the rows: the caller keeps the centroids once and passes them in.
//! * Nodes enter highest layer first, so upper layers are complete before layer 0 grows, in batches
//!   of fixed size: the nodes of a batch search the same frozen graph in parallel, then all links
//!   are set in a fixed order. The graph depends on rows and seed, not on threads.
//! * Layer 0 is strongly connected: a final step links what pruning has cut off, so a search with
//!   `ef = n` finds every row.
//! * For inner products the same code compares by `-<a, b>`, while linking (see [`insert`]) as well as
//!   while searching.

mod bytes;
mod connect;
mod insert;
mod walk;
#[cfg(test)]
mod tests;

use rayon::ThreadPool;
use simd::Kernels;

pub use self::walk::HnswScratch;
use crate::ClusterError;
use crate::assign::rows_of;

/// Links per node above layer 0.
const LINKS: usize = 16;
/// Links per node on layer 0. One of them is left free by the insertion, for [`connect`].
const BASE_LINKS: usize = 2 * LINKS;
/// Candidates from which the links of a new node are chosen.
const EF_CONSTRUCTION: usize = 128;
/// Fills the unused link slots of a node.
const NONE: u32 = u32::MAX;

/// Which rows a graph finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphMetric {
    /// Those of the least squared distance.
    L2,
    /// Those of the largest inner product.
    Ip,
}

impl GraphMetric {
    /// Less is nearer: `|a - b|²` or `-<a, b>`.
    fn distance(self, kernels: &Kernels, a: &[f32], b: &[f32]) -> f32 {
        match self {
            Self::L2 => kernels.l2(a, b),
            Self::Ip => -kernels.dot(a, b),
        }
    }
}

/// A graph over `n` rows that finds near rows without comparing all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hnsw {
    metric: GraphMetric,
    /// Number of rows.
    nodes: usize,
    /// Where every search starts; on the top layer.
    entry: u32,
    /// Layer 0 first; at least one.
    layers: Vec<Layer>,
}

/// The links of one layer, `stride` per node, unused ones [`NONE`] and last.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layer {
    /// The nodes of the layer, ascending; empty on layer 0, which has all.
    members: Option<Vec<u32>>,
    stride: usize,
    links: Vec<u32>,
}

impl Layer {
    fn new(members: Option<Vec<u32>>, count: usize, stride: usize) -> Self {
        Self { members, stride, links: vec![NONE; count * stride] }
    }

    /// Where the links of `node` start; none when the node is not on this layer.
    fn slot(&self, node: u32) -> Option<usize> {
        match &self.members {
            None => Some(node as usize * self.stride),
            Some(members) => members.binary_search(&node).ok().map(|i| i * self.stride),
        }
    }

    /// The neighbours of `node`.
    fn links_of(&self, node: u32) -> &[u32] {
        let Some(slot) = self.slot(node) else { return &[] };
        let links = &self.links[slot..slot + self.stride];
        let used = links.iter().position(|&l| l == NONE).unwrap_or(links.len());
        &links[..used]
    }

    /// Replaces the neighbours of `node`; those beyond the stride are dropped.
    fn set_links(&mut self, node: u32, neighbours: &[u32]) {
        let Some(slot) = self.slot(node) else { return };
        let links = &mut self.links[slot..slot + self.stride];
        links.fill(NONE);
        for (link, n) in links.iter_mut().zip(neighbours) {
            *link = *n;
        }
    }
}

impl Hnsw {
    /// Builds the graph over `rows` (`n` rows of `dim` values).
    ///
    /// # Errors
    /// When there is no row, `dim` is 0, the slice is not a whole number of rows, or there are more
    /// rows than 32 bits can number.
    pub fn build(
        rows: &[f32],
        dim: usize,
        metric: GraphMetric,
        seed: u64,
        pool: &ThreadPool,
    ) -> Result<Self, ClusterError> {
        let nodes = rows_of("the centroid graph", rows, dim)?;
        if nodes == 0 {
            return Err(ClusterError::Zero { what: "the number of rows of the centroid graph" });
        }
        let mut graph = pool.install(|| insert::build(rows, dim, nodes, metric, seed));
        connect::connect(&mut graph);
        Ok(graph)
    }

    /// The up to `ef` nearest rows found, as `(squared distance, row)`, or `(-product, row)` for
    /// [`GraphMetric::Ip`], ascending, the lower row first on ties. `out` is cleared first.
    ///
    /// `rows` are those the graph was built over. A wider `ef` finds more of the true nearest rows
    /// and takes longer; the result has `min(ef, n)` entries.
    ///
    /// # Panics
    /// When `rows` does not have one row of `query.len()` values per node.
    pub fn search(
        &self,
        rows: &[f32],
        query: &[f32],
        ef: usize,
        scratch: &mut HnswScratch,
        out: &mut Vec<(f32, u32)>,
    ) {
        let dim = query.len();
        assert_eq!(rows.len(), self.nodes * dim, "the graph was built over other rows");
        out.clear();
        if ef == 0 {
            return;
        }
        let kernels = Kernels::best();
        let distance = |i: u32| {
            self.metric.distance(kernels, query, &rows[i as usize * dim..(i as usize + 1) * dim])
        };
        let start = walk::descend(self, 0, distance);
        walk::explore(&self.layers[0], self.nodes, distance, start, ef, scratch);
        scratch.take_sorted(out);
    }

    /// Which rows the graph finds.
    pub fn metric(&self) -> GraphMetric {
        self.metric
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.nodes
    }

    /// Never: a graph has at least one row.
    pub fn is_empty(&self) -> bool {
        self.nodes == 0
    }

    /// Bytes a graph of `nodes` rows will hold: they depend on the seed, not on the rows.
    pub fn resident_bytes_for(nodes: usize, seed: u64) -> usize {
        if nodes == 0 { 0 } else { insert::bytes_for(nodes, seed) }
    }

    /// Bytes held by the graph.
    pub fn resident_bytes(&self) -> usize {
        let members = |l: &Layer| l.members.as_ref().map_or(0, Vec::len);
        self.layers.iter().map(|l| 4 * (members(l) + l.links.len())).sum()
    }
}
