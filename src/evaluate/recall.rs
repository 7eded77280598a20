//! Tie-aware recall: of the k nearest, how many came back.
//!
//! Equally near vectors are equally right. With the ground truth's scores `s[0..K]`, best first:
//!
//! ```text
//! rank      0   1   2  ...  k-1 | k   k+1 ...  K-1
//! score    .1  .1  .3  ...  .7  | .7  .7  ...  .9       accepted: every id up to the last .7
//! ```
//! When the tie runs to the end of the list it may go on beyond it, and the file cannot tell. An id
//! that is not in the list then counts only if its own score is exact and equals the tied one.

use std::collections::HashSet;

use crate::Metric;

/// Scores this close, relative to the one at rank k, are equal.
const TOLERANCE: f64 = 1e-6;

/// The exact neighbours of a set of queries.
#[derive(Clone, Debug)]
pub struct Truth {
    k: usize,
    metric: Metric,
    ids: Vec<u64>,
    scores: Option<Vec<f32>>,
}

/// Why ground truth does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TruthError {
    /// The tables have different lengths, or are no multiple of k.
    #[error("ground truth of k {k} with {ids} ids and {scores} scores is no table")]
    Shape {
        /// Neighbours a query.
        k: usize,
        /// Number of ids.
        ids: usize,
        /// Number of scores.
        scores: usize,
    },
    /// Scores do not go from best to worst: most likely another metric's.
    #[error(
        "ground truth of query {query} is not sorted by {metric} score ({order} expected): it \
         belongs to another metric or is damaged"
    )]
    Order {
        /// The first query out of order.
        query: usize,
        /// The metric asked for.
        metric: Metric,
        /// `ascending` or `descending`.
        order: &'static str,
    },
}

impl Truth {
    /// Ground truth of `ids.len() / k` queries, `k` neighbours each, best first, with the metric's
    /// scores (squared L2, or the inner product or cosine itself) if they are known.
    ///
    /// # Errors
    /// When the tables do not fit together or the scores are not in the metric's order.
    pub fn new(
        k: usize,
        metric: Metric,
        ids: Vec<u64>,
        scores: Option<Vec<f32>>,
    ) -> Result<Self, TruthError> {
        let count = scores.as_ref().map_or(ids.len(), Vec::len);
        if k == 0 || !ids.len().is_multiple_of(k) || count != ids.len() {
            return Err(TruthError::Shape { k, ids: ids.len(), scores: count });
        }
        let truth = Self { k, metric, ids, scores };
        match truth.first_unsorted() {
            None => Ok(truth),
            Some(query) => {
                let order = if metric == Metric::L2 { "ascending" } else { "descending" };
                Err(TruthError::Order { query, metric, order })
            }
        }
    }

    /// Number of queries.
    #[must_use]
    pub fn queries(&self) -> usize {
        self.ids.len() / self.k
    }

    /// Neighbours known of each query: the largest k that recall can be computed for.
    #[must_use]
    pub fn k(&self) -> usize {
        self.k
    }

    /// Recall@k of one query: the share of its k nearest that `ids` holds, ties counting alike.
    ///
    /// An id counts if its ground-truth score is at least as good as that at rank k, within 1e-6 of
    /// it. `scores` are those returned with the ids; they matter only if `exact` (raw records) and
    /// a tie runs past the end of the ground truth. Without ground-truth scores only the first k
    /// ids count.
    ///
    /// # Panics
    /// If `query` or `k` is beyond the ground truth, or k is 0.
    #[must_use]
    pub fn recall(&self, query: usize, k: usize, ids: &[u64], scores: &[f32], exact: bool) -> f64 {
        assert!(k >= 1 && k <= self.k, "recall@{k} from ground truth of {}", self.k);
        let row = query * self.k..(query + 1) * self.k;
        let truth = &self.ids[row.clone()];
        let returned: HashSet<u64> = ids.iter().copied().take(k).collect();
        let Some(truth_scores) = self.scores.as_ref().map(|scores| &scores[row]) else {
            return share(truth[..k].iter().filter(|id| returned.contains(id)).count(), k);
        };
        let limit = f64::from(truth_scores[k - 1]);
        let accepted = truth_scores.partition_point(|&score| self.within(score, limit));
        let mut hits = truth[..accepted].iter().filter(|id| returned.contains(id)).count();
        if exact && accepted == self.k {
            let mut known: HashSet<u64> = truth.iter().copied().collect();
            hits += ids
                .iter()
                .zip(scores)
                .take(k)
                .filter(|(id, score)| known.insert(**id) && self.within(**score, limit))
                .count();
        }
        share(hits.min(k), k)
    }

    /// At least as good as the score at rank k.
    fn within(&self, score: f32, limit: f64) -> bool {
        let slack = TOLERANCE * limit.abs();
        match self.metric {
            Metric::L2 => f64::from(score) <= limit + slack,
            Metric::Ip | Metric::Cosine => f64::from(score) >= limit - slack,
        }
    }

    fn first_unsorted(&self) -> Option<usize> {
        let scores = self.scores.as_ref()?;
        scores
            .chunks_exact(self.k)
            .position(|row| row.windows(2).any(|pair| !self.within(pair[0], f64::from(pair[1]))))
    }
}

fn share(hits: usize, k: usize) -> f64 {
    hits as f64 / k as f64
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn l2(k: usize, scores: &[f32]) -> Truth {
        let ids = (0..scores.len() as u64).collect();
        Truth::new(k, Metric::L2, ids, Some(scores.to_vec())).unwrap()
    }

    #[test]
    fn every_id_tied_with_rank_k_counts() {
        let truth = l2(5, &[0.1, 0.3, 0.7, 0.7, 0.9]);
        assert_eq!(truth.recall(0, 3, &[0, 1, 3], &[0.0; 3], false), 1.0);
        assert_eq!(truth.recall(0, 3, &[0, 1, 4], &[0.0; 3], false), 2.0 / 3.0);
        assert_eq!(truth.recall(0, 2, &[1, 2], &[0.0; 2], false), 0.5);
    }

    #[test]
    fn an_id_counts_once_and_missing_results_count_as_misses() {
        let truth = l2(4, &[0.1, 0.2, 0.3, 0.4]);
        assert_eq!(truth.recall(0, 4, &[0, 0, 0, 0], &[0.0; 4], false), 0.25);
        assert_eq!(truth.recall(0, 4, &[1], &[0.0], false), 0.25);
        assert_eq!(truth.recall(0, 4, &[], &[], false), 0.0);
    }

    #[test]
    fn beyond_the_end_of_a_tie_only_exact_equal_scores_count() {
        let truth = l2(3, &[0.0, 0.5, 0.5]);
        let (ids, scores) = ([0, 8, 9], [0.0, 0.5, 0.500_1]);
        assert_eq!(truth.recall(0, 2, &ids[..2], &scores[..2], true), 1.0);
        assert_eq!(truth.recall(0, 2, &ids[..2], &scores[..2], false), 0.5);
        assert_eq!(truth.recall(0, 3, &ids, &scores, true), 2.0 / 3.0);
    }

    #[test]
    fn an_id_that_no_tie_explains_never_counts() {
        let truth = l2(3, &[0.1, 0.5, 0.9]);
        assert_eq!(truth.recall(0, 2, &[0, 7], &[0.1, 0.5], true), 0.5);
    }

    #[test]
    fn inner_products_descend_and_may_be_negative() {
        let truth =
            Truth::new(4, Metric::Ip, vec![5, 6, 7, 8], Some(vec![1.0, -2.0, -2.0, -3.0])).unwrap();
        assert_eq!(truth.recall(0, 2, &[5, 7], &[0.0; 2], false), 1.0);
        assert_eq!(truth.recall(0, 2, &[5, 8], &[0.0; 2], false), 0.5);
    }

    #[test]
    fn without_scores_the_first_k_ids_count() {
        let truth = Truth::new(3, Metric::L2, vec![1, 2, 3, 4, 5, 6], None).unwrap();
        assert_eq!(truth.queries(), 2);
        assert_eq!(truth.recall(1, 2, &[4, 6], &[0.0; 2], true), 0.5);
    }

    #[test]
    fn tables_that_do_not_fit_and_scores_of_another_metric_are_refused() {
        let shape = Truth::new(2, Metric::L2, vec![1, 2, 3], None);
        assert!(matches!(shape, Err(TruthError::Shape { .. })));
        let order = Truth::new(2, Metric::Ip, vec![1, 2, 3, 4], Some(vec![2.0, 1.0, 1.0, 2.0]));
        assert!(matches!(order, Err(TruthError::Order { query: 1, .. })));
    }
}
