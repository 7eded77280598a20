//! The nearest of many, by scores: what the flat coarse quantizer ends with.

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
