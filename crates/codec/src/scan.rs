//! The scan: from a batch of 32 prefix codes to 32 bounds, and the masks of who stays.
//!
//! ```text
//! S     = table sums of the batch
//! base  = add + rescale S + term              term = Y² (L2) or -<q, c> (IP)
//! half  = epsilon error Y + |rescale| table_error + slack
//! survivor  unless base - half > threshold        seed  if base + half < seed threshold
//! ```

use crate::prefix::PrefixCodes;
use crate::query::Query;
use simd::{BATCH, BatchBounds, BoundParams, Kernels};

/// How many batches ahead of the scan memory is asked for.
const AHEAD: u64 = 2;

/// Rounding allowance of a bound, relative to the terms that cancel in a small distance.
const SLACK: f32 = 1e-6;

/// What a query and a list contribute to every distance in the list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ListTerms {
    /// `Y²` for L2, `-<q, c>` for inner product.
    pub term: f32,
    /// `Y = |q - c|`.
    pub y: f32,
}

impl ListTerms {
    /// What f32 rounding can move a distance by in this list: a vector equal to the query, whose
    /// `N²` and `Y²` cancel, stays below a threshold of zero.
    pub fn slack(&self) -> f32 {
        SLACK * (self.y * self.y + self.term.abs())
    }
}

/// Distances a batch is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// A vector survives unless its lower bound is above this.
    pub prune: f32,
    /// A vector is a seed if its upper bound is below this.
    pub seed: f32,
}

/// One query against the prefix codes of an index.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'a> {
    /// Kernels to run on.
    pub kernels: &'a Kernels,
    /// The query, its table made for the codes' prefix dims.
    pub query: &'a Query,
    /// The codes.
    pub codes: &'a PrefixCodes,
    /// Half-width of the bounds: in standard deviations, or as in Theorem 3.1 of the paper if the
    /// factors are the paper's.
    pub epsilon: f32,
}

impl Scan<'_> {
    /// Bounds of one batch; returns the masks of survivors and of seeds among `lanes`, bit `i` for
    /// slot `i`. Of `out`, only the floats of these slots are specified, and its own masks cover
    /// slots outside `lanes` too.
    ///
    /// # Panics
    /// If there is no such batch or the query's table has other prefix dims.
    #[inline]
    pub fn batch(
        &self,
        batch: u64,
        lanes: u32,
        list: &ListTerms,
        thresholds: Thresholds,
        out: &mut BatchBounds,
    ) -> (u32, u32) {
        self.codes.prefetch(batch + AHEAD);
        let (codes, factors) = self.codes.batch(batch);
        let mut sums = [0; BATCH];
        self.query.sums(self.kernels, codes, &mut sums);
        let params = BoundParams {
            delta: self.query.delta(),
            offset: self.query.offset(),
            list_term: list.term,
            eps_y: self.epsilon * list.y,
            table_error: self.query.table_error(),
            slack: list.slack(),
            threshold: thresholds.prune,
            seed_threshold: thresholds.seed,
        };
        self.kernels.bounds(&sums, factors, &params, out);
        (out.survivors & lanes, out.seeds & lanes)
    }
}
