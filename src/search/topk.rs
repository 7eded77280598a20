//! The best results so far, kept sorted: the k-th distance prunes the scan, the r-th the drain.

/// One re-ranked record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hit {
    /// What results are ranked by: distance in the code's domain, smaller is nearer.
    pub(crate) key: f32,
    /// The score as reported.
    pub(crate) score: f32,
    /// The lower bound the scan gave it.
    pub(crate) lower: f32,
    /// Its id, or its position while ids are still on SSD.
    pub(crate) id: u64,
}

/// At most k hits by (key, id), and, while ids are unknown, every further hit that ties with the
/// k-th: which of them stay is decided when their ids have been read.
#[derive(Debug, Default)]
pub(crate) struct TopK {
    k: usize,
    keep_ties: bool,
    hits: Vec<Hit>,
}

impl TopK {
    /// Empties the set for a query that wants `k` hits.
    pub(crate) fn reset(&mut self, k: usize, keep_ties: bool) {
        self.k = k;
        self.keep_ties = keep_ties;
        self.hits.clear();
    }

    /// The key a new hit must not exceed: the k-th, or +infinity while there are fewer.
    pub(crate) fn threshold(&self) -> f32 {
        self.rank(self.k)
    }

    /// The `r`-th smallest key, counted from 1, or +infinity while there are fewer.
    pub(crate) fn rank(&self, r: usize) -> f32 {
        self.hits.get(r - 1).map_or(f32::INFINITY, |h| h.key)
    }

    /// Adds a hit if it belongs to the best.
    pub(crate) fn push(&mut self, hit: Hit) {
        if hit.key > self.threshold() {
            return;
        }
        let at = self.hits.partition_point(|h| {
            h.key.total_cmp(&hit.key).then(h.id.cmp(&hit.id)) == std::cmp::Ordering::Less
        });
        self.hits.insert(at, hit);
        if self.hits.len() > self.k {
            let kth = self.hits[self.k - 1].key;
            let keep_ties = self.keep_ties;
            while self.hits.len() > self.k
                && !(keep_ties && self.hits.last().is_some_and(|h| h.key <= kth))
            {
                self.hits.pop();
            }
        }
    }

    /// The hits, nearest first.
    pub(crate) fn hits(&self) -> &[Hit] {
        &self.hits
    }

    /// The hits, nearest first, to be changed in place.
    pub(crate) fn hits_mut(&mut self) -> &mut Vec<Hit> {
        &mut self.hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(key: f32, id: u64) -> Hit {
        Hit { key, score: key, lower: key, id }
    }

    fn filled(k: usize, keep_ties: bool, hits: &[(f32, u64)]) -> Vec<(f32, u64)> {
        let mut top = TopK::default();
        top.reset(k, keep_ties);
        for &(key, id) in hits {
            top.push(hit(key, id));
        }
        top.hits().iter().map(|h| (h.key, h.id)).collect()
    }

    #[test]
    fn keeps_the_k_smallest_by_key_then_id() {
        let hits = [(3.0, 1), (1.0, 9), (2.0, 5), (1.0, 2), (4.0, 0), (2.0, 1)];
        assert_eq!(filled(3, false, &hits), [(1.0, 2), (1.0, 9), (2.0, 1)]);
    }

    #[test]
    fn keeps_ties_with_the_kth_while_ids_are_unknown() {
        let hits = [(2.0, 7), (2.0, 3), (1.0, 4), (2.0, 1), (3.0, 0)];
        assert_eq!(filled(2, true, &hits), [(1.0, 4), (2.0, 1), (2.0, 3), (2.0, 7)]);
        let nearer = [(2.0, 7), (2.0, 3), (1.0, 4), (1.0, 5)];
        assert_eq!(filled(2, true, &nearer), [(1.0, 4), (1.0, 5)]);
    }

    #[test]
    fn the_threshold_is_infinite_until_k_are_found() {
        let mut top = TopK::default();
        top.reset(2, false);
        top.push(hit(1.0, 0));
        assert_eq!(top.threshold(), f32::INFINITY);
        assert_eq!(top.rank(1), 1.0);
        top.push(hit(5.0, 1));
        assert_eq!(top.threshold(), 5.0);
    }
}
