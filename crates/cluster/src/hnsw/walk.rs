//! Walking the graph: greedy descent, then a best-first search of one layer.
//!
//! What is near is for the caller to say: a function from a row to its distance. A candidate is one
//! u64: the distance, its bits mapped so that integers sort as the numbers do (negative ones
//! included: inner products), above the row number. So ties have one order everywhere.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Hnsw, Layer};

const SIGN: u32 = 1 << 31;

/// A row at a distance; less is nearer, then the lower row.
pub(super) fn candidate(distance: f32, row: u32) -> u64 {
    let bits = distance.to_bits();
    let ordered = if bits & SIGN == 0 { bits | SIGN } else { !bits };
    u64::from(ordered) << 32 | u64::from(row)
}

pub(super) fn row_of(candidate: u64) -> u32 {
    candidate as u32
}

pub(super) fn distance_of(candidate: u64) -> f32 {
    let ordered = (candidate >> 32) as u32;
    f32::from_bits(if ordered & SIGN == 0 { !ordered } else { ordered & !SIGN })
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
        out.sort_unstable_by_key(|&(distance, row)| candidate(distance, row));
    }

    /// Moves what was found to `out` as candidates, nearest first.
    pub(super) fn take_candidates(&mut self, out: &mut Vec<u64>) {
        out.clear();
        out.extend(self.found.drain());
        out.sort_unstable();
    }
}

/// From the entry down to the layer above `layer`, going greedily to ever nearer nodes.
pub(super) fn descend(graph: &Hnsw, layer: usize, distance: impl Fn(u32) -> f32) -> u64 {
    let at = |row| candidate(distance(row), row);
    let mut nearest = at(graph.entry);
    for layer in graph.layers.iter().skip(layer + 1).rev() {
        loop {
            let links = layer.links_of(row_of(nearest)).iter();
            let best = links.map(|&n| at(n)).min().unwrap_or(nearest);
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
    nodes: usize,
    distance: impl Fn(u32) -> f32,
    start: u64,
    ef: usize,
    scratch: &mut HnswScratch,
) {
    scratch.begin(nodes);
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
            let candidate = candidate(distance(node), node);
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
