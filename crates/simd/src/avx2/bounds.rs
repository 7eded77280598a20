//! Bounds, eight vectors a step; the floats are stored only when somebody will look at them.

use std::arch::x86_64::*;

use super::{load, store};
use crate::bounds::{BatchBounds, BatchFactors, BoundParams};
use crate::fastscan::BATCH;

#[target_feature(enable = "avx2,fma")]
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
    for i in 0..4 {
        let (s, low, up) =
            eight(&sums[i], load(&add[i]), load(&rescale[i]), load(&error[i]), params);
        let kept = _mm256_cmp_ps::<_CMP_NGT_UQ>(low, _mm256_set1_ps(params.threshold));
        let seed = _mm256_cmp_ps::<_CMP_LT_OQ>(up, _mm256_set1_ps(params.seed_threshold));
        let (kept, seed) = (_mm256_movemask_ps(kept) as u32, _mm256_movemask_ps(seed) as u32);
        out.survivors |= kept << (8 * i);
        out.seeds |= seed << (8 * i);
        if kept | seed != 0 {
            store(&mut estimate_sum[i], s);
            store(&mut lower[i], low);
            store(&mut upper[i], up);
        }
    }
}

/// (S, lower, upper) of eight vectors.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn eight(
    sums: &[u32; 8],
    add: __m256,
    rescale: __m256,
    error: __m256,
    params: &BoundParams,
) -> (__m256, __m256, __m256) {
    // SAFETY: the array is 32 readable bytes; the load asks for no alignment.
    let sums = unsafe { _mm256_loadu_si256(sums.as_ptr().cast()) };
    let delta = _mm256_set1_ps(params.delta);
    let s = _mm256_fmadd_ps(delta, _mm256_cvtepi32_ps(sums), _mm256_set1_ps(params.offset));
    let known = _mm256_add_ps(add, _mm256_set1_ps(params.list_term));
    let base = _mm256_fmadd_ps(rescale, s, known);
    let magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0), rescale);
    let table_error = _mm256_set1_ps(params.table_error);
    let rounding = _mm256_fmadd_ps(magnitude, table_error, _mm256_set1_ps(params.slack));
    let half = _mm256_fmadd_ps(error, _mm256_set1_ps(params.eps_y), rounding);
    (s, _mm256_sub_ps(base, half), _mm256_add_ps(base, half))
}
