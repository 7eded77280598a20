//! Contract: from 32 FastScan sums to 32 distance bounds and the two masks a scan acts on.
//!
//! ```text
//! S        = delta * sum + offset                          the table's integers back to floats
//! base     = rescale * S + (add + list_term)               estimate of the distance
//! half     = error * eps_y + (|rescale| * table_error + slack)
//! lower    = base - half          survivors: not (lower > threshold), so NaN survives
//! upper    = base + half          seeds:     upper < seed_threshold
//! ```
//!
//! Every `x * y + z` is one fused multiply-add, so all instruction sets agree bit for bit.
//! Factors of a batch are stored by kind, not by vector:
//!
//! ```text
//! | add, 32 x f32 | rescale, 32 x f32 | error, 32 x f32 |      384 bytes, little endian
//! ```

use crate::dispatch::Kernels;
use crate::fastscan::BATCH;

pub(crate) type Bounds = unsafe fn(&[u32; BATCH], &BatchFactors, &BoundParams, &mut BatchBounds);

/// Factors of the 32 vectors of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct BatchFactors {
    /// What does not depend on the query.
    pub add: [f32; BATCH],
    /// Multiplies the sum over the signs.
    pub rescale: [f32; BATCH],
    /// Half-width of the bound at ε·Y = 1.
    pub error: [f32; BATCH],
}

impl BatchFactors {
    /// Floats of one batch.
    pub const FLOATS: usize = 3 * BATCH;

    /// Sees a buffer of floats as batches; a rest shorter than one batch is left out.
    pub fn view(floats: &[f32]) -> &[BatchFactors] {
        let batches = floats.len() / Self::FLOATS;
        // SAFETY: `BatchFactors` is `repr(C)` over 96 floats, so it has their alignment and no
        // padding, and `batches` of them lie inside the slice.
        unsafe { std::slice::from_raw_parts(floats.as_ptr().cast(), batches) }
    }

    /// As [`BatchFactors::view`], to write.
    pub fn view_mut(floats: &mut [f32]) -> &mut [BatchFactors] {
        let batches = floats.len() / Self::FLOATS;
        // SAFETY: as in `view`; every bit pattern is a float, and the borrow is unique.
        unsafe { std::slice::from_raw_parts_mut(floats.as_mut_ptr().cast(), batches) }
    }
}

/// What a query and a list contribute to the bounds of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BoundParams {
    /// Step of the lookup table.
    pub delta: f32,
    /// Offset of the lookup table.
    pub offset: f32,
    /// Term of the list: `Y²` for L2, `-<q,c>` for inner product.
    pub list_term: f32,
    /// `ε · Y`.
    pub eps_y: f32,
    /// Most that rounding of the table can move `S`.
    pub table_error: f32,
    /// Absolute widening of every bound.
    pub slack: f32,
    /// A lower bound above this is pruned.
    pub threshold: f32,
    /// An upper bound below this may tighten the threshold.
    pub seed_threshold: f32,
}

/// Bounds of a batch. Lanes that are in neither mask have unspecified floats.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BatchBounds {
    /// `S`: the scan's sum as a float.
    pub estimate_sum: [f32; BATCH],
    /// Lower bound of the distance.
    pub lower: [f32; BATCH],
    /// Upper bound of the distance.
    pub upper: [f32; BATCH],
    /// Bit `i`: vector `i` is not pruned.
    pub survivors: u32,
    /// Bit `i`: the upper bound of vector `i` is below `seed_threshold`.
    pub seeds: u32,
}

impl Kernels {
    /// Bounds and masks of a batch from its sums, each below `2^31` as the scans return them.
    ///
    /// Floats of `out` are written only for batches in which a mask is not zero, and for lanes in
    /// neither mask they are unspecified.
    pub fn bounds(
        &self,
        sums: &[u32; BATCH],
        factors: &BatchFactors,
        params: &BoundParams,
        out: &mut BatchBounds,
    ) {
        // SAFETY: `dispatch` hands out a table only on a CPU that has its instructions.
        unsafe { (self.bounds)(sums, factors, params, out) }
    }
}
