//! Walking the graph: greedy descent, then a best-first search of one layer.
//!
//! A candidate is one u64: the bits of its distance above its row number. Distances are not
//! negative, so the integers sort as (distance, row) and ties have one order everywhere.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use simd::Kernels;

use super::{Hnsw, Layer};

/// The rows of a graph.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) values: &'a [f32],
    pub(super) dim: usize,
    pub(super) kernels: &'static Kernels,
}

impl<'a> Rows<'a> {
    pub(super) fn row(self, i: u32) -> &'a [f32] {
        &self.values[i as usize * self.dim..(i as usize + 1) * self.dim]
    }

    pub(super) fn candidate(self, query: &[f32], i: u32) -> u64 {
        let distance = self.kernels.l2(query, self.row(i));
        u64::from(distance.to_bits()) << 32 | u64::from(i)
    }
}

pub(super) fn row_of(candidate: u64) -> u32 {
    candidate as u32
}

pub(super) fn distance_of(candidate: u64) -> f32 {
    f32::from_bits((candidate >> 32) as u32)
}

/// Reusable memory of a search. One per thread.
#[derive(Default)]
pub struct HnswScratch {
    /// The search in which each node was seen last.
    seen: Vec<u32>,
    search: u32,
    frontier: BinaryHeap<Reverse<u64>>,
    /// The nearest so far, the farthest of them on top.
    found: BinaryHeap<u64>,
}

impl HnswScratch {
    fn begin(&mut self, nodes: usize) {
        self.frontier.clear();
        self.found.clear();
        if self.seen.len() < nodes {
            self.seen.resize(nodes, 0);
        }
        self.search = self.search.wrapping_add(1);
        if self.search == 0 {
            self.seen.fill(0);
            self.search = 1;
        }
    }

    fn see(&mut self, node: u32) -> bool {
        std::mem::replace(&mut self.seen[node as usize], self.search) != self.search
    }

    /// Moves what was found to `out`, nearest first.
    pub(super) fn take_sorted(&mut self, out: &mut Vec<(f32, u32)>) {
        out.extend(self.found.drain().map(|c| (distance_of(c), row_of(c))));
        out.sort_unstable_by_key(|&(d, row)| (d.to_bits(), row));
    }

    /// Moves what was found to `out` as candidates, nearest first.
    pub(super) fn take_candidates(&mut self, out: &mut Vec<u64>) {
        out.clear();
        out.extend(self.found.drain());
        out.sort_unstable();
    }
}

/// From the entry down to the layer above `layer`, going greedily to ever nearer nodes.
pub(super) fn descend(graph: &Hnsw, rows: Rows<'_>, query: &[f32], layer: usize) -> u64 {
    let mut nearest = rows.candidate(query, graph.entry);
    for layer in graph.layers.iter().skip(layer + 1).rev() {
        loop {
            let links = layer.links_of(row_of(nearest)).iter();
            let best = links.map(|&n| rows.candidate(query, n)).min().unwrap_or(nearest);
            if best >= nearest {
                break;
            }
            nearest = best;
        }
    }
    nearest
}

/// Best-first search of one layer from `start`; leaves up to `ef` candidates in the scratch.
pub(super) fn explore(
    layer: &Layer,
    rows: Rows<'_>,
    query: &[f32],
    start: u64,
    ef: usize,
    scratch: &mut HnswScratch,
) {
    scratch.begin(rows.values.len() / rows.dim);
    scratch.see(row_of(start));
    scratch.frontier.push(Reverse(start));
    scratch.found.push(start);
    while let Some(Reverse(nearest)) = scratch.frontier.pop() {
        let full = scratch.found.len() >= ef;
        if full && scratch.found.peek().is_some_and(|&worst| nearest > worst) {
            break;
        }
        for &node in layer.links_of(row_of(nearest)) {
            if !scratch.see(node) {
                continue;
            }
            let candidate = rows.candidate(query, node);
            let full = scratch.found.len() >= ef;
            if full && scratch.found.peek().is_some_and(|&worst| candidate > worst) {
                continue;
            }
            scratch.frontier.push(Reverse(candidate));
            scratch.found.push(candidate);
            if full {
                scratch.found.pop();
            }
        }
    }
}
