//! Search options checked and resolved against an index: what one query runs with.

use codec::TableBits as CodecTableBits;
use pageio::most_slots;

use super::pages::Order;
use crate::config::{Pipeline, RecordKind, SearchOptions, TableBits, Threshold};
use crate::error::SearchError;
use crate::store::shape::Shape;

/// How candidates become reads: the paper's designs as one policy (§4.3, §4.4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Policy {
    /// One read for each page instead of each survivor.
    pub(crate) coalesce: bool,
    /// Wait for each read before the scan goes on.
    pub(crate) blocking: bool,
    /// Read a page as soon as the scan has left it, without asking once more.
    pub(crate) at_once: bool,
    /// Order of the pending set.
    pub(crate) order: Order,
    /// Reads in flight at most.
    pub(crate) inflight: usize,
    /// Rank of the result whose distance a page must beat in the drain: k, or alpha k.
    pub(crate) drain_rank: usize,
}

/// A search, resolved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) k: usize,
    pub(crate) nprobe: usize,
    pub(crate) epsilon: f32,
    /// Whether the threshold starts from upper bounds in RAM.
    pub(crate) seeded: bool,
    pub(crate) table_bits: CodecTableBits,
    pub(crate) deterministic: bool,
    /// Whether every record of the lists is read, pruning nothing: the small index is exact.
    pub(crate) exhaustive: bool,
    pub(crate) policy: Policy,
}

/// Up to this many rows, a search of all lists prunes nothing.
const EXHAUSTIVE_ROWS: u64 = 10_000;

impl SearchOptions {
    /// The alpha in force: pipelines without the drain rule and deterministic searches have 1.
    #[must_use]
    pub fn effective_alpha(&self) -> f32 {
        match self.pipeline {
            Pipeline::Full | Pipeline::Fifo if !self.deterministic => self.alpha,
            Pipeline::Naive
            | Pipeline::Coalesced
            | Pipeline::Overlapped
            | Pipeline::Scheduled
            | Pipeline::Full
            | Pipeline::Fifo => 1.0,
        }
    }

    /// The in-flight budget in force when `threads` threads search: the paper's rule by default.
    #[must_use]
    pub fn effective_inflight(&self, threads: usize) -> usize {
        match self.pipeline {
            Pipeline::Naive | Pipeline::Coalesced => 1,
            // No bound: as many as a reader can hold.
            Pipeline::Overlapped => most_slots(1) as usize,
            Pipeline::Scheduled | Pipeline::Full | Pipeline::Fifo => {
                self.inflight.unwrap_or(if threads <= 16 { 16 } else { 8 })
            }
        }
    }

    /// Checks the values and resolves the defaults.
    pub(crate) fn plan(&self, shape: &Shape, threads: usize) -> Result<Plan, SearchError> {
        let record = shape.record;
        let wrong = |option, problem: String| Err(SearchError::Option { option, problem });
        if self.k == 0 {
            return wrong("--k", "0 neighbours were asked for; ask for at least 1".into());
        }
        if self.nprobe == 0 {
            return wrong("--nprobe", "0 lists would be visited; visit at least 1".into());
        }
        if !(self.alpha > 0.0 && self.alpha <= 1.0) {
            return wrong("--alpha", format!("{} is not in (0, 1]", self.alpha));
        }
        if !(self.epsilon >= 0.0 && self.epsilon.is_finite()) {
            return wrong("--epsilon", format!("{} is not a finite number from 0", self.epsilon));
        }
        if threads == 0 {
            return wrong("--threads", "at least 1 is needed".into());
        }
        let mut inflight = self.effective_inflight(threads);
        let most = most_slots(shape.geometry().unit_pages as u32) as usize;
        if self.pipeline == Pipeline::Overlapped {
            inflight = inflight.min(most);
        }
        if inflight == 0 || inflight > most {
            return wrong("--inflight", format!("{inflight} is not in 1..={most}"));
        }
        let eight = match self.table_bits {
            TableBits::Auto => record != RecordKind::Split,
            TableBits::Eight if record == RecordKind::Split => {
                return wrong(
                    "--table-bits",
                    "split records build on the scan's sums, which need 16-bit tables".into(),
                );
            }
            TableBits::Eight => true,
            TableBits::Sixteen => false,
        };
        let exhaustive = self.nprobe >= shape.nlist && shape.stored <= EXHAUSTIVE_ROWS;
        Ok(Plan {
            k: self.k,
            nprobe: self.nprobe,
            epsilon: self.epsilon,
            seeded: self.threshold == Threshold::Seeded && !exhaustive,
            table_bits: if eight { CodecTableBits::Eight } else { CodecTableBits::Sixteen },
            deterministic: self.deterministic && !exhaustive,
            exhaustive,
            policy: Policy {
                coalesce: self.pipeline != Pipeline::Naive,
                blocking: matches!(self.pipeline, Pipeline::Naive | Pipeline::Coalesced),
                at_once: self.pipeline == Pipeline::Overlapped,
                order: match self.pipeline {
                    Pipeline::Scheduled | Pipeline::Full => Order::Bound,
                    Pipeline::Naive
                    | Pipeline::Coalesced
                    | Pipeline::Overlapped
                    | Pipeline::Fifo => Order::Arrival,
                },
                inflight,
                drain_rank: drain_rank(self.effective_alpha(), self.k),
            },
        })
    }
}

/// ceil(alpha k), at least 1. In `f32` the nearest to 0.4 is a little more than 0.4, and must
/// not make rank 5 of rank 4 at k = 10: what alpha's precision cannot tell from a whole number is one.
fn drain_rank(alpha: f32, k: usize) -> usize {
    let exact = f64::from(alpha) * k as f64;
    ((exact * (1.0 - f64::from(f32::EPSILON))).ceil() as usize).clamp(1, k.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_of_the_drain_is_alpha_k_rounded_up_and_no_further() {
        for tenths in 1..=10 {
            for k in [10, 100, 1000, 10_000] {
                assert_eq!(drain_rank(tenths as f32 / 10.0, k), tenths * k / 10, "{tenths} {k}");
            }
        }
        for (alpha, k, rank) in [(0.4, 1, 1), (0.4, 3, 2), (0.41, 10, 5), (0.01, 10, 1)] {
            assert_eq!(drain_rank(alpha, k), rank, "{alpha} {k}");
        }
    }
}
