//! Which lists lie nearest to a query: the coarse quantizer (paper §4.2).
//!
//! Whatever finds the lists, their distances are then computed exactly, since every distance in a
//! list is built on them, and never fewer than min(nprobe, nlist) distinct lists are returned.

mod irq;
#[cfg(test)]
mod tests;

use cluster::{
    GraphMetric, Hnsw, HnswScratch, centroid_products, nearest_centroids, select_nearest,
};
use codec::{ListTerms, Query};
use simd::Kernels;

use crate::config::{CoarseKind, Metric};
use crate::store::manifest::Manifest;
use crate::store::shape::Shape;
use irq::Irq;

/// Below this nlist comparing every centroid is as fast as anything else.
const FLAT_BELOW: usize = 512;
/// Centroids in an inner list of `irq` (paper §4.2).
const CENTROIDS_PER_INNER: usize = 1000;
/// Search width of the graph beyond the lists wanted.
const EXTRA_WIDTH: usize = 64;

/// A list to visit and what it contributes to every distance in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Probe {
    pub(crate) list: u32,
    pub(crate) terms: ListTerms,
}

/// The structure over the centroids; the centroids themselves belong to the caller.
pub(crate) enum Coarse {
    Flat,
    Irq(Irq),
    Hnsw(Hnsw),
}

/// Buffers of one thread.
#[derive(Default)]
pub(crate) struct CoarseScratch {
    scores: Vec<f32>,
    nearest: Vec<(f32, u32)>,
    query: Query,
    bounds: irq::Bounds,
    graph: HnswScratch,
}

/// The centroids as every coarse quantizer sees them.
#[derive(Clone, Copy)]
pub(crate) struct Centroids<'a> {
    /// Rotated centroids, `dim` (padded) values each.
    pub(crate) rows: &'a [f32],
    pub(crate) dim: usize,
    pub(crate) metric: codec::Metric,
}

impl Centroids<'_> {
    pub(crate) fn len(&self) -> usize {
        self.rows.len() / self.dim
    }

    fn row(&self, list: u32) -> &[f32] {
        &self.rows[list as usize * self.dim..(list as usize + 1) * self.dim]
    }

    fn graph_metric(&self) -> GraphMetric {
        match self.metric {
            codec::Metric::L2 => GraphMetric::L2,
            codec::Metric::Ip => GraphMetric::Ip,
        }
    }

    /// What the lists are ranked by: `|q - c|²`, or `-<q, c>`.
    fn term(&self, kernels: &Kernels, query: &[f32], list: u32) -> f32 {
        match self.metric {
            codec::Metric::L2 => kernels.l2(query, self.row(list)),
            codec::Metric::Ip => -kernels.dot(query, self.row(list)),
        }
    }
}

/// What `auto` becomes.
pub(crate) fn resolve(kind: CoarseKind, nlist: usize) -> CoarseKind {
    match kind {
        CoarseKind::Auto if nlist < FLAT_BELOW => CoarseKind::Flat,
        CoarseKind::Auto => CoarseKind::Irq,
        CoarseKind::Irq | CoarseKind::Hnsw | CoarseKind::Flat => kind,
    }
}

/// Inner lists of a quantizer over `nlist` centroids; 0 for those that have none.
pub(crate) fn inner_lists(kind: CoarseKind, nlist: usize) -> usize {
    if kind == CoarseKind::Irq { (nlist / CENTROIDS_PER_INNER).max(1) } else { 0 }
}

/// Resident bytes of a quantizer that has not been built yet.
pub(crate) fn resident_bytes(
    kind: CoarseKind,
    inner: usize,
    nlist: usize,
    padded_dim: usize,
    seed: u64,
) -> u64 {
    match kind {
        CoarseKind::Irq => Irq::bytes_for(inner, nlist, padded_dim),
        CoarseKind::Hnsw => Hnsw::resident_bytes_for(nlist, seed) as u64,
        CoarseKind::Auto | CoarseKind::Flat => 0,
    }
}

impl Coarse {
    /// Builds the quantizer; `groups` and `group_centroids` are those of `irq`.
    pub(crate) fn build(
        kind: CoarseKind,
        centroids: Centroids,
        groups: Vec<u32>,
        group_centroids: Vec<f32>,
        seed: u64,
        pool: &rayon::ThreadPool,
    ) -> Result<Self, cluster::ClusterError> {
        Ok(match kind {
            CoarseKind::Irq => Self::Irq(Irq::build(centroids, groups, group_centroids)),
            CoarseKind::Hnsw => {
                let metric = centroids.graph_metric();
                Self::Hnsw(Hnsw::build(centroids.rows, centroids.dim, metric, seed, pool)?)
            }
            CoarseKind::Auto | CoarseKind::Flat => Self::Flat,
        })
    }

    /// The content of coarse.bin; `None` when there is nothing to store.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Flat => None,
            Self::Irq(irq) => Some(irq.to_bytes()),
            Self::Hnsw(graph) => Some(graph.to_bytes()),
        }
    }

    /// Reads what [`Coarse::to_bytes`] gave; the error says what contradicts what.
    pub(crate) fn from_bytes(
        kind: CoarseKind,
        bytes: Option<&[u8]>,
        manifest: &Manifest,
        shape: &Shape,
    ) -> Result<Self, String> {
        match (kind, bytes) {
            (CoarseKind::Flat, None) => Ok(Self::Flat),
            (CoarseKind::Irq, Some(bytes)) => {
                Irq::from_bytes(bytes, manifest.coarse_lists, shape).map(Self::Irq)
            }
            (CoarseKind::Hnsw, Some(bytes)) => {
                let graph = Hnsw::from_bytes(bytes).map_err(|e| e.to_string())?;
                if graph.len() != shape.nlist {
                    return Err(format!("{} nodes for {} lists", graph.len(), shape.nlist));
                }
                let (found, metric) = (graph.metric(), manifest.metric);
                if (found == GraphMetric::Ip) != (metric == Metric::Ip) {
                    return Err(format!("a graph for {found:?} in an index for {metric}"));
                }
                Ok(Self::Hnsw(graph))
            }
            (CoarseKind::Auto | CoarseKind::Flat | CoarseKind::Irq | CoarseKind::Hnsw, _) => {
                Err(format!("the file does not go with the coarse quantizer {kind}"))
            }
        }
    }

    pub(crate) fn resident_bytes(&self) -> u64 {
        match self {
            Self::Flat => 0,
            Self::Irq(irq) => irq.resident_bytes(),
            Self::Hnsw(graph) => graph.resident_bytes() as u64,
        }
    }

    /// The `nprobe` lists nearest to the rotated query, nearest first, with exact distances.
    pub(crate) fn select(
        &self,
        centroids: Centroids,
        query: &[f32],
        nprobe: usize,
        s: &mut CoarseScratch,
        out: &mut Vec<Probe>,
    ) {
        let wanted = nprobe.min(centroids.len());
        let kernels = Kernels::best();
        match self {
            // More than half of all lists: nothing is faster than looking at each.
            _ if wanted * 2 > centroids.len() => flat(centroids, query, wanted, s),
            Self::Flat => flat(centroids, query, wanted, s),
            Self::Irq(irq) => irq.select(centroids, query, wanted, s),
            Self::Hnsw(graph) => {
                let width = wanted + EXTRA_WIDTH;
                graph.search(centroids.rows, query, width, &mut s.graph, &mut s.nearest);
                s.nearest.truncate(wanted);
            }
        }
        if s.nearest.len() < wanted {
            flat(centroids, query, wanted, s);
        }
        out.clear();
        out.extend(s.nearest.iter().map(|&(term, list)| {
            let y = match centroids.metric {
                codec::Metric::L2 => term.max(0.0).sqrt(),
                codec::Metric::Ip => kernels.l2(query, centroids.row(list)).sqrt(),
            };
            Probe { list, terms: ListTerms { term, y } }
        }));
    }
}

/// Compares every centroid.
fn flat(centroids: Centroids, query: &[f32], wanted: usize, s: &mut CoarseScratch) {
    s.scores.resize(centroids.len(), 0.0);
    match centroids.metric {
        codec::Metric::L2 => {
            nearest_centroids(query, centroids.rows, centroids.dim, &mut s.scores);
        }
        codec::Metric::Ip => {
            centroid_products(query, centroids.rows, centroids.dim, &mut s.scores);
            s.scores.iter_mut().for_each(|v| *v = -*v);
        }
    }
    select_nearest(&s.scores, wanted, &mut s.nearest);
}
