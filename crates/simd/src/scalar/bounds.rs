//! Bounds one vector at a time.

use crate::bounds::{BatchBounds, BatchFactors, BoundParams};
use crate::fastscan::BATCH;

pub(super) fn bounds(
    sums: &[u32; BATCH],
    factors: &BatchFactors,
    params: &BoundParams,
    out: &mut BatchBounds,
) {
    (out.survivors, out.seeds) = (0, 0);
    for (i, sum) in sums.iter().enumerate() {
        let sum = sum.cast_signed() as f32;
        let (add, rescale, error) = (factors.add[i], factors.rescale[i], factors.error[i]);

        let estimate_sum = params.delta.mul_add(sum, params.offset);
        let base = rescale.mul_add(estimate_sum, add + params.list_term);
        let rounding = rescale.abs().mul_add(params.table_error, params.slack);
        let half = error.mul_add(params.eps_y, rounding);
        let (lower, upper) = (base - half, base + half);

        out.estimate_sum[i] = estimate_sum;
        out.lower[i] = lower;
        out.upper[i] = upper;
        let pruned = lower > params.threshold;
        out.survivors |= u32::from(!pruned) << i;
        out.seeds |= u32::from(upper < params.seed_threshold) << i;
    }
}
