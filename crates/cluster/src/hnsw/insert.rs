//! Building the graph, batch by batch.
//!
//! ```text
//! draw a layer for every node; order them highest layer first, randomly within a layer
//! for each batch of that order (at most 1/16 of what is in, at most MAX_BATCH):
//!     in parallel, on the graph as it is:
//!         descend to the node's layer; on each layer from there down:
//!             ef nearest candidates ─▶ spread links
//!     set the links of the new nodes
//!     in parallel per node linked to: old links + new ones, spread again when too many
//! ```
//!
//! Near means a small squared distance or, for inner products, a large product between rows too
//! (ip-NSW: Morozov and Babenko, NeurIPS 2018). Lifting the rows onto a sphere, where the largest
//! product is the least distance, was tried: long rows then link to short ones, which lie between
//! them, and with norms from 0.1 to 10 in 64 dims half of the 16 largest products were found, against
//! 0.998 with links by product.
//!
//! Random order matters: centroids come sorted by coarse list, and neighbours inside one batch do
//! not see each other.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use simd::Kernels;

use super::walk::{self, HnswScratch, candidate, row_of};
use super::{BASE_LINKS, EF_CONSTRUCTION, GraphMetric, Hnsw, LINKS, Layer};

/// Nodes inserted against the same graph, at most.
const MAX_BATCH: usize = 512;
/// More layers than any number of nodes needs.
const MAX_LAYERS: usize = 12;

/// The rows of a graph in the making.
struct Rows<'a> {
    values: &'a [f32],
    dim: usize,
    metric: GraphMetric,
    kernels: &'static Kernels,
}

impl<'a> Rows<'a> {
    fn row(&self, i: u32) -> &'a [f32] {
        &self.values[i as usize * self.dim..(i as usize + 1) * self.dim]
    }

    fn distance(&self, i: u32, j: u32) -> f32 {
        self.metric.distance(self.kernels, self.row(i), self.row(j))
    }
}

/// The links of a new node on one layer.
struct NewLinks {
    node: u32,
    layer: usize,
    links: Vec<u32>,
}

/// Inserts all rows.
pub(super) fn build(
    values: &[f32],
    dim: usize,
    nodes: usize,
    metric: GraphMetric,
    seed: u64,
) -> Hnsw {
    let rows = &Rows { values, dim, metric, kernels: Kernels::best() };
    let (order, tops) = draw_order(nodes, seed);
    let mut graph = empty_graph(&order, &tops, metric);
    let mut inserted = 1;
    while inserted < nodes {
        let batch = (inserted / 16).clamp(1, MAX_BATCH).min(nodes - inserted);
        let batch = &order[inserted..inserted + batch];
        let new: Vec<NewLinks> = batch
            .par_iter()
            .map_init(HnswScratch::default, |scratch, &node| {
                find_links(&graph, rows, node, tops[node as usize], scratch)
            })
            .flatten_iter()
            .collect();
        link(&mut graph, rows, &new);
        inserted += batch.len();
    }
    graph
}

/// The order of insertion and the top layer of every node.
fn draw_order(nodes: usize, seed: u64) -> (Vec<u32>, Vec<usize>) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut order: Vec<u32> = (0..nodes as u32).collect();
    for i in (1..nodes).rev() {
        order.swap(i, rng.random_range(0..=i));
    }
    let tops: Vec<usize> = (0..nodes)
        .map(|_| {
            let uniform = 1.0 - rng.random::<f64>();
            ((-uniform.ln() / (LINKS as f64).ln()) as usize).min(MAX_LAYERS - 1)
        })
        .collect();
    order.sort_by_key(|&node| std::cmp::Reverse(tops[node as usize]));
    (order, tops)
}

/// Bytes of the graph of so many nodes: the layers are drawn before any row is seen.
pub(super) fn bytes_for(nodes: usize, seed: u64) -> usize {
    let (_, tops) = draw_order(nodes, seed);
    4 * (nodes * BASE_LINKS + tops.iter().sum::<usize>() * (1 + LINKS))
}

fn empty_graph(order: &[u32], tops: &[usize], metric: GraphMetric) -> Hnsw {
    let entry = order[0];
    let mut layers = vec![Layer::new(None, order.len(), BASE_LINKS)];
    for layer in 1..=tops[entry as usize] {
        let members: Vec<u32> =
            (0..order.len() as u32).filter(|&node| tops[node as usize] >= layer).collect();
        let count = members.len();
        layers.push(Layer::new(Some(members), count, LINKS));
    }
    Hnsw { metric, nodes: order.len(), entry, layers }
}

/// The links of one new node on each of its layers.
fn find_links(
    graph: &Hnsw,
    rows: &Rows<'_>,
    node: u32,
    top: usize,
    scratch: &mut HnswScratch,
) -> Vec<NewLinks> {
    let distance = |row| rows.distance(node, row);
    let mut start = walk::descend(graph, top, distance);
    let mut candidates = Vec::new();
    let mut found = Vec::with_capacity(top + 1);
    for layer in (0..=top).rev() {
        let on = &graph.layers[layer];
        walk::explore(on, graph.nodes, distance, start, EF_CONSTRUCTION, scratch);
        scratch.take_candidates(&mut candidates);
        start = candidates[0];
        let links = spread(rows, &candidates, LINKS);
        found.push(NewLinks { node, layer, links });
    }
    found
}

/// Sets the links of the new nodes and the links back to them.
fn link(graph: &mut Hnsw, rows: &Rows<'_>, new: &[NewLinks]) {
    let mut back: Vec<(usize, u32, u32)> = Vec::new();
    for n in new {
        graph.layers[n.layer].set_links(n.node, &n.links);
        back.extend(n.links.iter().map(|&target| (n.layer, target, n.node)));
    }
    back.sort_unstable();
    let targets: Vec<&[(usize, u32, u32)]> =
        back.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).collect();
    let updated: Vec<(usize, u32, Vec<u32>)> = targets
        .par_iter()
        .map(|links| {
            let (layer, target, _) = links[0];
            let sources = links.iter().map(|l| l.2);
            (layer, target, extended(&graph.layers[layer], rows, target, sources))
        })
        .collect();
    for (layer, target, links) in updated {
        graph.layers[layer].set_links(target, &links);
    }
}

/// The links of `target` with `sources` added, spread again when they are too many.
fn extended(
    layer: &Layer,
    rows: &Rows<'_>,
    target: u32,
    sources: impl Iterator<Item = u32>,
) -> Vec<u32> {
    let limit = if layer.members.is_none() { BASE_LINKS - 1 } else { LINKS };
    let mut links = layer.links_of(target).to_vec();
    links.extend(sources);
    if links.len() <= limit {
        return links;
    }
    let mut candidates: Vec<u64> =
        links.iter().map(|&n| candidate(rows.distance(target, n), n)).collect();
    candidates.sort_unstable();
    spread(rows, &candidates, limit)
}

/// Up to `limit` of the candidates (ascending) in different directions: one is taken if it is
/// nearer to the node than to every one taken before (the paper's Algorithm 4).
fn spread(rows: &Rows<'_>, candidates: &[u64], limit: usize) -> Vec<u32> {
    let mut taken: Vec<u32> = Vec::with_capacity(limit);
    for &candidate in candidates {
        if taken.len() == limit {
            break;
        }
        let (row, distance) = (row_of(candidate), walk::distance_of(candidate));
        if taken.iter().all(|&t| rows.distance(row, t) >= distance) {
            taken.push(row);
        }
    }
    taken
}
