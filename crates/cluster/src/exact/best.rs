//! The k best rows of one query, in f64.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A scored row; less is better, then the lower row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    pub(super) cost: f64,
    pub(super) id: u64,
}

impl Ord for Hit {
    fn cmp(&self, other: &Self) -> Ordering {
        self.cost.total_cmp(&other.cost).then(self.id.cmp(&other.id))
    }
}

impl PartialOrd for Hit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Hit {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Hit {}

/// Keeps the k least hits offered.
pub(super) struct Best {
    k: usize,
    hits: BinaryHeap<Hit>,
}

impl Best {
    pub(super) fn new(k: usize) -> Self {
        Self { k, hits: BinaryHeap::new() }
    }

    /// The k-th least cost, once there are k hits.
    pub(super) fn worst(&self) -> Option<f64> {
        if self.hits.len() < self.k { None } else { self.hits.peek().map(|h| h.cost) }
    }

    pub(super) fn offer(&mut self, cost: f64, id: u64) {
        // Adding zero turns -0.0 into 0.0: equal scores must compare equal.
        let hit = Hit { cost: cost + 0.0, id };
        if self.hits.len() < self.k {
            self.hits.push(hit);
        } else if let Some(mut worst) = self.hits.peek_mut()
            && hit < *worst
        {
            *worst = hit;
        }
    }

    /// All hits, best first.
    pub(super) fn into_sorted(self) -> Vec<Hit> {
        self.hits.into_sorted_vec()
    }
}
