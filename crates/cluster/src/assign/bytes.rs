//! What an assignment allocates, known before it starts.

use super::{AssignMethod, Assigner, GRAPH_EF, GRAPH_SEED, LIST_TILE, ROW_TILE};
use crate::Hnsw;

/// Depth to which the matrix library cuts its products, at most; it follows the first-level cache.
const PACKED_DIMS: u64 = if cfg!(target_arch = "x86_64") { 512 } else { 1024 };
/// Rows the matrix library may round each side of a packed product up by.
const PACKED_MARGIN: u64 = 64;
/// What the matrix library keeps per thread where it does not pack a whole side of a product at
/// once: as much as the second-level cache holds.
const PACKED_SLAB: u64 = 2 << 20;
/// Bytes the building of a graph takes per node besides the graph: order, layers, reversed links.
const GRAPH_BUILDING: u64 = 600;

impl Assigner<'_> {
    /// At least the bytes [`Assigner::new`] allocates for `nlist` centroids of `dim` values, while
    /// it prepares and after: a copy of the centroids, or a graph over them.
    pub fn bytes_for(nlist: usize, dim: usize, method: AssignMethod) -> u64 {
        if method.walks_graph(nlist) {
            let graph = Hnsw::resident_bytes_for(nlist, GRAPH_SEED) as u64;
            return graph + GRAPH_BUILDING * nlist as u64 + (1 << 20);
        }
        let (nlist, dim) = (nlist as u64, dim as u64);
        4 * (nlist * dim + nlist) + 12 * dim
    }

    /// At least the bytes one thread needs to assign rows: [`crate::AssignScratch`] and the
    /// buffers of the matrix library.
    pub fn scratch_bytes(nlist: usize, dim: usize, method: AssignMethod) -> u64 {
        if method.walks_graph(nlist) {
            return 4 * nlist as u64 + 64 * (GRAPH_EF as u64 + 256) + (64 << 10);
        }
        let (rows, lists) = (ROW_TILE as u64, LIST_TILE.min(nlist) as u64);
        let tile = rows * (4 * dim as u64 + 12 + 4 * lists);
        tile + packed(rows, lists, PACKED_DIMS.min(dim as u64))
    }
}

/// The buffers of the matrix library for `rows` x `lists` products: it packs the lists, with
/// narrow registers a part of them at a time, and outside of x86 the rows too.
fn packed(rows: u64, lists: u64, depth: u64) -> u64 {
    let side = |rows: u64| 4 * (rows + PACKED_MARGIN) * depth;
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") {
        return side(lists) + 4096;
    }
    side(lists).max(PACKED_SLAB) + if cfg!(target_arch = "x86_64") { 4096 } else { side(rows) }
}
