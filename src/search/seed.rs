//! The threshold that RAM alone can give: the k-th smallest upper bound of the scanned codes.
//!
//! Each vector is counted once, so with high probability at least k vectors lie within it. The
//! smallest of many upper bounds fails more often than one, so at least the 10th is taken.

use std::collections::BinaryHeap;

/// The rank below which the seed would be a gamble.
const LEAST_RANK: usize = 10;

/// A total order on finite and infinite floats.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Upper(f32);

impl Eq for Upper {}

impl PartialOrd for Upper {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Upper {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The smallest upper bounds so far.
#[derive(Debug, Default)]
pub(crate) struct Seed {
    rank: usize,
    smallest: BinaryHeap<Upper>,
}

impl Seed {
    /// Empties the set for a query that wants `k` hits; 0 switches seeding off.
    pub(crate) fn reset(&mut self, k: usize) {
        self.rank = if k == 0 { 0 } else { k.max(LEAST_RANK) };
        self.smallest.clear();
    }

    /// The seed threshold; +infinity until enough codes were seen, -infinity never.
    pub(crate) fn threshold(&self) -> f32 {
        if self.rank > 0 && self.smallest.len() == self.rank {
            self.smallest.peek().map_or(f32::INFINITY, |u| u.0)
        } else {
            f32::INFINITY
        }
    }

    /// What an upper bound must be below to change the threshold.
    pub(crate) fn admits_below(&self) -> f32 {
        if self.rank == 0 { f32::NEG_INFINITY } else { self.threshold() }
    }

    /// Counts one more vector.
    pub(crate) fn push(&mut self, upper: f32) {
        if self.smallest.len() < self.rank {
            self.smallest.push(Upper(upper));
        } else if let Some(mut largest) = self.smallest.peek_mut()
            && upper < largest.0
        {
            *largest = Upper(upper);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_kth_smallest_and_at_least_the_tenth() {
        let mut seed = Seed::default();
        for (k, rank) in [(1, 10), (10, 10), (12, 12)] {
            seed.reset(k);
            for i in (0..40).rev() {
                seed.push(i as f32);
            }
            assert_eq!(seed.threshold(), (rank - 1) as f32);
        }
    }

    #[test]
    fn is_infinite_with_too_few_codes_and_admits_nothing_when_off() {
        let mut seed = Seed::default();
        seed.reset(3);
        (0..9).for_each(|i| seed.push(i as f32));
        assert_eq!(seed.threshold(), f32::INFINITY);
        seed.reset(0);
        seed.push(1.0);
        assert_eq!(seed.threshold(), f32::INFINITY);
        assert_eq!(seed.admits_below(), f32::NEG_INFINITY);
    }
}
