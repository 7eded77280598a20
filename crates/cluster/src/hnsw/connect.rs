//! Making layer 0 strongly connected.
//!
//! Pruning keeps near and spread links, and can cut a node off: nobody links to it, or a clique of
//! duplicates links only inside. One slot per node is still free:
//!
//! ```text
//! core     nodes that the entry reaches and that reach the entry
//! node outside the core   1. a neighbour v of it is in the core and has a free slot,
//!                            and the node reaches the core: link v ─▶ node
//!                         2. else: it joins a ring  entry ─▶ a ─▶ b ─▶ ... ─▶ entry
//! ```
//!
//! Step 1 keeps links short. The ring of step 2 goes through the free slots, so it always fits.

use super::{BASE_LINKS, Hnsw, Layer, NONE};

/// Adds links on layer 0 until every node reaches every other.
pub(super) fn connect(graph: &mut Hnsw) {
    let entry = graph.entry;
    let layer = &mut graph.layers[0];
    let mut reached = reach(graph.nodes, entry, |n| layer.links_of(n));
    let reverse = reversed(layer, graph.nodes);
    let reaches = reach(graph.nodes, entry, |n| &reverse[n as usize]);

    let mut ring = vec![entry];
    for node in 0..graph.nodes as u32 {
        let at = node as usize;
        if reached[at] && reaches[at] {
            continue;
        }
        if reaches[at] && link_from_neighbour(layer, node, &reached, &reaches, entry) {
            reached[at] = true;
            continue;
        }
        ring.push(node);
    }
    if ring.len() > 1 {
        for (i, &node) in ring.iter().enumerate() {
            append(layer, node, ring[(i + 1) % ring.len()]);
        }
    }
}

/// Links a neighbour of `node` that belongs to the core to `node`. The entry keeps its free slot
/// for the ring.
fn link_from_neighbour(
    layer: &mut Layer,
    node: u32,
    reached: &[bool],
    reaches: &[bool],
    entry: u32,
) -> bool {
    let from = layer.links_of(node).iter().copied().find(|&v| {
        let at = v as usize;
        v != entry && reached[at] && reaches[at] && layer.links_of(v).len() < BASE_LINKS
    });
    from.is_some_and(|v| append(layer, v, node))
}

/// Adds one link if a slot is free.
fn append(layer: &mut Layer, from: u32, to: u32) -> bool {
    let slot = from as usize * layer.stride;
    let links = &mut layer.links[slot..slot + layer.stride];
    match links.iter_mut().find(|l| **l == NONE) {
        Some(link) => {
            *link = to;
            true
        }
        None => false,
    }
}

/// The nodes that can be reached from `start`.
fn reach<'a>(nodes: usize, start: u32, links: impl Fn(u32) -> &'a [u32]) -> Vec<bool> {
    let mut reached = vec![false; nodes];
    reached[start as usize] = true;
    let mut open = vec![start];
    while let Some(node) = open.pop() {
        for &next in links(node) {
            if !std::mem::replace(&mut reached[next as usize], true) {
                open.push(next);
            }
        }
    }
    reached
}

fn reversed(layer: &Layer, nodes: usize) -> Vec<Vec<u32>> {
    let mut reverse = vec![Vec::new(); nodes];
    for node in 0..nodes as u32 {
        for &to in layer.links_of(node) {
            reverse[to as usize].push(node);
        }
    }
    reverse
}
