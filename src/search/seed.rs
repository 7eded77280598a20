//! What RAM alone says about the k-th distance.
//!
//! *Seed*: the k-th smallest upper bound of the scanned codes. Each vector is counted once, so with
//! high probability at least k vectors lie within it, and a lower bound above it can be pruned. The
//! smallest of many upper bounds fails more often than one, so at least the 10th is taken.
//!
//! *Guess*: the k-th smallest estimate. Being the smallest of many it lies below the k-th distance
//! more often than not, so it prunes nothing; but a page whose bound is below it will be needed
//! whatever else the scan finds, and can be read at once.

use std::collections::BinaryHeap;

/// The rank below which the seed would be a gamble.
const LEAST_RANK: usize = 10;

/// A total order on finite and infinite floats.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Value(f32);

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The `rank` smallest values so far.
#[derive(Debug, Default)]
struct Smallest {
    rank: usize,
    heap: BinaryHeap<Value>,
}

impl Smallest {
    fn reset(&mut self, rank: usize) {
        self.rank = rank;
        self.heap.clear();
    }

    /// The value at the rank; +infinity while there are fewer.
    fn last(&self) -> f32 {
        if self.heap.len() < self.rank {
            return f32::INFINITY;
        }
        self.heap.peek().map_or(f32::INFINITY, |v| v.0)
    }

    fn push(&mut self, value: f32) {
        if self.heap.len() < self.rank {
            self.heap.push(Value(value));
        } else if let Some(mut largest) = self.heap.peek_mut()
            && value < largest.0
        {
            *largest = Value(value);
        }
    }
}

/// Seed and guess of one query.
#[derive(Debug, Default)]
pub(crate) struct Seed {
    uppers: Smallest,
    estimates: Smallest,
}

impl Seed {
    /// Empties both for a query that wants `k` hits; 0 switches them off.
    pub(crate) fn reset(&mut self, k: usize) {
        self.uppers.reset(if k == 0 { 0 } else { k.max(LEAST_RANK) });
        self.estimates.reset(k);
    }

    /// What a lower bound must not exceed; +infinity until enough codes were seen, or when off.
    pub(crate) fn threshold(&self) -> f32 {
        self.uppers.last()
    }

    /// What an upper bound must be below to change the threshold.
    pub(crate) fn admits_below(&self) -> f32 {
        if self.uppers.rank == 0 { f32::NEG_INFINITY } else { self.threshold() }
    }

    /// Below this a page will be needed in any case; +infinity when off.
    pub(crate) fn guess(&self) -> f32 {
        self.estimates.last()
    }

    /// Counts the upper bound of one more vector.
    pub(crate) fn push_upper(&mut self, upper: f32) {
        self.uppers.push(upper);
    }

    /// Counts the estimate of one more vector.
    pub(crate) fn push_estimate(&mut self, estimate: f32) {
        self.estimates.push(estimate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_is_the_kth_smallest_and_at_least_the_tenth() {
        let mut seed = Seed::default();
        for (k, rank) in [(1, 10), (10, 10), (12, 12)] {
            seed.reset(k);
            for i in (0..40).rev() {
                seed.push_upper(i as f32);
                seed.push_estimate(i as f32);
            }
            assert_eq!(seed.threshold(), (rank - 1) as f32);
            assert_eq!(seed.guess(), (k - 1) as f32);
        }
    }

    #[test]
    fn both_are_infinite_with_too_few_codes_and_admit_nothing_when_off() {
        let mut seed = Seed::default();
        seed.reset(3);
        (0..9).for_each(|i| seed.push_upper(i as f32));
        assert_eq!((seed.threshold(), seed.guess()), (f32::INFINITY, f32::INFINITY));
        seed.reset(0);
        seed.push_upper(1.0);
        seed.push_estimate(1.0);
        assert_eq!((seed.threshold(), seed.guess()), (f32::INFINITY, f32::INFINITY));
        assert_eq!(seed.admits_below(), f32::NEG_INFINITY);
    }
}
