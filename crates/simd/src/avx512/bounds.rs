//! Bounds, 16 vectors a step; the floats are stored only when somebody will look at them.

use std::arch::x86_64::*;

use super::{load, store};
use crate::bounds::{BatchBounds, BatchFactors, BoundParams};
use crate::fastscan::BATCH;

#[target_feature(enable = "avx512f,avx512dq")]
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

    let mut halves = [(_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()); 2];
    (out.survivors, out.seeds) = (0, 0);
    for i in 0..2 {
        let (s, low, up) =
            sixteen(&sums[i], load(&add[i]), load(&rescale[i]), load(&error[i]), params);
        let kept = _mm512_cmp_ps_mask::<_CMP_NGT_UQ>(low, _mm512_set1_ps(params.threshold));
        let seed = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(up, _mm512_set1_ps(params.seed_threshold));
        out.survivors |= u32::from(kept) << (16 * i);
        out.seeds |= u32::from(seed) << (16 * i);
        halves[i] = (s, low, up);
    }
    if out.survivors | out.seeds != 0 {
        for (i, (s, low, up)) in halves.into_iter().enumerate() {
            store(&mut estimate_sum[i], s);
            store(&mut lower[i], low);
            store(&mut upper[i], up);
        }
    }
}

/// (S, lower, upper) of 16 vectors.
#[inline]
#[target_feature(enable = "avx512f")]
fn sixteen(
    sums: &[u32; 16],
    add: __m512,
    rescale: __m512,
    error: __m512,
    params: &BoundParams,
) -> (__m512, __m512, __m512) {
    // SAFETY: the array is 64 readable bytes; the load asks for no alignment.
    let sums = unsafe { _mm512_loadu_si512(sums.as_ptr().cast()) };
    let delta = _mm512_set1_ps(params.delta);
    let s = _mm512_fmadd_ps(delta, _mm512_cvtepi32_ps(sums), _mm512_set1_ps(params.offset));
    let known = _mm512_add_ps(add, _mm512_set1_ps(params.list_term));
    let base = _mm512_fmadd_ps(rescale, s, known);
    let table_error = _mm512_set1_ps(params.table_error);
    let rounding =
        _mm512_fmadd_ps(_mm512_abs_ps(rescale), table_error, _mm512_set1_ps(params.slack));
    let half = _mm512_fmadd_ps(error, _mm512_set1_ps(params.eps_y), rounding);
    (s, _mm512_sub_ps(base, half), _mm512_add_ps(base, half))
}
