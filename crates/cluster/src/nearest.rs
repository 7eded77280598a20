//! One query against all centroids: the flat coarse quantizer.
//!
//! A query touches every centroid once, so this is bound by memory: plain passes with the `simd`
//! kernels, no blocking, and no allocation (the caller keeps the output slices).

use simd::Kernels;

/// Squared L2 distance of `query` to every centroid: `out[c] = |query - centroid_c|²`.
///
/// # Panics
/// When `query` does not have `dim` values or `centroids` does not have `out.len()` rows.
pub fn nearest_centroids(query: &[f32], centroids: &[f32], dim: usize, out: &mut [f32]) {
    check(query, centroids, dim, out);
    let kernels = Kernels::best();
    for (c, out) in centroids.chunks_exact(dim).zip(out) {
        *out = kernels.l2(query, c);
    }
}

/// Inner product of `query` with every centroid: `out[c] = <query, centroid_c>`.
///
/// # Panics
/// As [`nearest_centroids`].
pub fn centroid_products(query: &[f32], centroids: &[f32], dim: usize, out: &mut [f32]) {
    check(query, centroids, dim, out);
    let kernels = Kernels::best();
    for (c, out) in centroids.chunks_exact(dim).zip(out) {
        *out = kernels.dot(query, c);
    }
}

/// The `nprobe` least `scores`, ascending, the lower list first on ties, as `(score, list)`.
///
/// `out` is cleared and keeps its allocation; it ends with `min(nprobe, scores.len())` entries.
pub fn select_nearest(scores: &[f32], nprobe: usize, out: &mut Vec<(f32, u32)>) {
    out.clear();
    out.extend(scores.iter().zip(0u32..).map(|(s, list)| (*s, list)));
    let order = |a: &(f32, u32), b: &(f32, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    if nprobe < out.len() {
        if nprobe > 0 {
            out.select_nth_unstable_by(nprobe - 1, order);
        }
        out.truncate(nprobe);
    }
    out.sort_unstable_by(order);
}

fn check(query: &[f32], centroids: &[f32], dim: usize, out: &[f32]) {
    assert!(dim > 0, "dim is 0");
    assert_eq!(query.len(), dim, "the query must have dim values");
    assert_eq!(centroids.len(), out.len() * dim, "one output per centroid");
}
