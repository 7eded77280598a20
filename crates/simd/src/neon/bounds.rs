//! Bounds, four vectors a step; the floats are stored only when somebody will look at them.

use std::arch::aarch64::*;

use super::{load, load_words, store};
use crate::bounds::{BatchBounds, BatchFactors, BoundParams};
use crate::fastscan::BATCH;

#[target_feature(enable = "neon")]
pub(super) fn bounds(
    sums: &[u32; BATCH],
    factors: &BatchFactors,
    params: &BoundParams,
    out: &mut BatchBounds,
) {
    let (sums, _) = sums.as_chunks();
    let (add, _) = factors.add.as_chunks();
    let (rescale, _) = factors.rescale.as_chunks();
    let (error, _) = factors.error.as_chunks();
    let (estimate_sum, _) = out.estimate_sum.as_chunks_mut();
    let (lower, _) = out.lower.as_chunks_mut();
    let (upper, _) = out.upper.as_chunks_mut();

    (out.survivors, out.seeds) = (0, 0);
    for i in 0..8 {
        let (s, low, up) =
            four(&sums[i], load(&add[i]), load(&rescale[i]), load(&error[i]), params);
        let kept = bits(vmvnq_u32(vcgtq_f32(low, vdupq_n_f32(params.threshold))));
        let seed = bits(vcltq_f32(up, vdupq_n_f32(params.seed_threshold)));
        out.survivors |= kept << (4 * i);
        out.seeds |= seed << (4 * i);
        if kept | seed != 0 {
            store(&mut estimate_sum[i], s);
            store(&mut lower[i], low);
            store(&mut upper[i], up);
        }
    }
}

/// (S, lower, upper) of four vectors.
#[inline]
#[target_feature(enable = "neon")]
fn four(
    sums: &[u32; 4],
    add: float32x4_t,
    rescale: float32x4_t,
    error: float32x4_t,
    params: &BoundParams,
) -> (float32x4_t, float32x4_t, float32x4_t) {
    let sums = vcvtq_f32_s32(vreinterpretq_s32_u32(load_words(sums)));
    let s = vfmaq_f32(vdupq_n_f32(params.offset), vdupq_n_f32(params.delta), sums);
    let known = vaddq_f32(add, vdupq_n_f32(params.list_term));
    let base = vfmaq_f32(known, rescale, s);
    let table_error = vdupq_n_f32(params.table_error);
    let rounding = vfmaq_f32(vdupq_n_f32(params.slack), vabsq_f32(rescale), table_error);
    let half = vfmaq_f32(rounding, error, vdupq_n_f32(params.eps_y));
    (s, vsubq_f32(base, half), vaddq_f32(base, half))
}

/// Bit `i` = lane `i` of a comparison.
#[inline]
#[target_feature(enable = "neon")]
fn bits(mask: uint32x4_t) -> u32 {
    vaddvq_u32(vandq_u32(mask, load_words(&[1, 2, 4, 8])))
}
