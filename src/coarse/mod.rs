//! Which lists lie nearest to a query: the coarse quantizer (paper §4.2).
//!
//! Whatever finds the lists, their distances are then computed exactly, since every distance in a
//! list is built on them, and never fewer than min(nprobe, nlist) distinct lists are returned.

mod centroids;
mod irq;
#[cfg(test)]
mod tests;

use cluster::{GraphMetric, Hnsw, HnswScratch, select_nearest};
use codec::{ListTerms, Query};
use simd::Kernels;

use crate::config::{CentroidKind, CoarseKind, Metric};
use crate::store::manifest::Manifest;
use crate::store::shape::Shape;
pub(crate) use centroids::{Centroids, Point};
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

/// What `auto` becomes.
pub(crate) fn resolve(kind: CoarseKind, nlist: usize) -> CoarseKind {
    match kind {
        CoarseKind::Auto if nlist < FLAT_BELOW => CoarseKind::Flat,
        CoarseKind::Auto => CoarseKind::Irq,
        CoarseKind::Irq | CoarseKind::Hnsw | CoarseKind::Flat => kind,
    }
}

/// What the centroids under a quantizer are, unless a build finds their lists too tight for it.
pub(crate) fn centroids(asked: CentroidKind, coarse: CoarseKind) -> CentroidKind {
    match asked {
        CentroidKind::Auto if coarse == CoarseKind::Hnsw => CentroidKind::F32,
        CentroidKind::Auto => CentroidKind::I8,
        CentroidKind::I8 | CentroidKind::F32 => asked,
    }
}

/// Whether a quantizer, resolved, can compare such centroids: graphs know floats alone.
pub(crate) fn goes_with(coarse: CoarseKind, centroids: CentroidKind) -> bool {
    match centroids {
        CentroidKind::F32 => true,
        CentroidKind::I8 => coarse != CoarseKind::Hnsw,
        CentroidKind::Auto => false,
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
        centroids: &Centroids,
        groups: Vec<u32>,
        group_centroids: Vec<f32>,
        seed: u64,
        pool: &rayon::ThreadPool,
    ) -> Result<Self, cluster::ClusterError> {
        Ok(match kind {
            CoarseKind::Irq => Self::Irq(Irq::build(centroids, groups, group_centroids)),
            CoarseKind::Hnsw => {
                let metric = graph_metric(centroids.metric());
                let rows = centroids.as_f32().unwrap_or_default();
                Self::Hnsw(Hnsw::build(rows, centroids.dim(), metric, seed, pool)?)
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
        centroids: &Centroids,
        query: &[f32],
        nprobe: usize,
        s: &mut CoarseScratch,
        out: &mut Vec<Probe>,
    ) {
        let wanted = nprobe.min(centroids.len());
        let kernels = Kernels::best();
        let point = Point::of(query);
        match self {
            // More than half of all lists: nothing is faster than looking at each.
            _ if wanted * 2 > centroids.len() => flat(centroids, point, wanted, s),
            Self::Flat => flat(centroids, point, wanted, s),
            Self::Irq(irq) => irq.select(centroids, point, wanted, s),
            Self::Hnsw(graph) => {
                let (rows, width) = (centroids.as_f32().unwrap_or_default(), wanted + EXTRA_WIDTH);
                graph.search(rows, query, width, &mut s.graph, &mut s.nearest);
                s.nearest.truncate(wanted);
            }
        }
        if s.nearest.len() < wanted {
            flat(centroids, point, wanted, s);
        }
        out.clear();
        out.extend(s.nearest.iter().map(|&(term, list)| {
            let y = centroids.length(kernels, point, list, term);
            Probe { list, terms: ListTerms { term, y } }
        }));
    }
}

fn graph_metric(metric: codec::Metric) -> GraphMetric {
    match metric {
        codec::Metric::L2 => GraphMetric::L2,
        codec::Metric::Ip => GraphMetric::Ip,
    }
}

/// Compares every centroid.
fn flat(centroids: &Centroids, query: Point<'_>, wanted: usize, s: &mut CoarseScratch) {
    let kernels = Kernels::best();
    s.scores.clear();
    let lists = 0..centroids.len() as u32;
    s.scores.extend(lists.map(|list| centroids.term(kernels, query, list)));
    select_nearest(&s.scores, wanted, &mut s.nearest);
}
