//! Whether several runs found the same: the paper's measure of determinism (Appendix B).
//!
//! A query is unchanged in a range of ranks if every run returned the same set there, whatever the
//! order. Two sets also count as the same if their members lie at the same true distances, rank by
//! rank: then equally near rows stood in for each other.

use std::ops::Range;

use serde::Serialize;

use crate::SearchResult;

/// Two distances this close, relative to each other, are the same.
const TOLERANCE: f64 = 1e-6;

/// Shares of queries that no run answered differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Agreement {
    /// In all ranks.
    pub top_k: f64,
    /// In ranks [1, r].
    pub head: f64,
    /// In ranks (r, k].
    pub tail: f64,
}

impl Agreement {
    /// How far `runs` agree; every run answered the same queries in the same order, `r` splits the
    /// ranks, and `distance` gives the true distance of a query and an id.
    ///
    /// # Errors
    /// The first of `distance`.
    pub fn of<E>(
        runs: &[Vec<SearchResult>],
        r: usize,
        mut distance: impl FnMut(usize, u64) -> Result<f64, E>,
    ) -> Result<Self, E> {
        let queries = runs.first().map_or(0, Vec::len);
        let mut unchanged = [0usize; 3];
        for query in 0..queries {
            for (count, range) in unchanged.iter_mut().zip([0..usize::MAX, 0..r, r..usize::MAX]) {
                *count += usize::from(agree(runs, query, &range, &mut distance)?);
            }
        }
        let [top_k, head, tail] = unchanged.map(|count| count as f64 / queries.max(1) as f64);
        Ok(Self { top_k, head, tail })
    }
}

fn agree<E>(
    runs: &[Vec<SearchResult>],
    query: usize,
    ranks: &Range<usize>,
    distance: &mut impl FnMut(usize, u64) -> Result<f64, E>,
) -> Result<bool, E> {
    let sets: Vec<Vec<u64>> = runs.iter().map(|run| set(&run[query].ids, ranks)).collect();
    let mut distances: Option<Vec<f64>> = None;
    for other in sets.iter().skip(1).filter(|&other| *other != sets[0]) {
        let mut sorted = |ids: &[u64]| -> Result<Vec<f64>, E> {
            let mut all =
                ids.iter().map(|&id| distance(query, id)).collect::<Result<Vec<f64>, E>>()?;
            all.sort_unstable_by(f64::total_cmp);
            Ok(all)
        };
        let first = match &distances {
            Some(first) => first.clone(),
            None => sorted(&sets[0])?,
        };
        let same = |a: f64, b: f64| (a - b).abs() <= TOLERANCE * a.abs().max(b.abs());
        let others = sorted(other)?;
        if first.len() != others.len() || !first.iter().zip(&others).all(|(&a, &b)| same(a, b)) {
            return Ok(false);
        }
        distances = Some(first);
    }
    Ok(true)
}

/// The ids in a range of ranks, in the order of ids.
fn set(ids: &[u64], ranks: &Range<usize>) -> Vec<u64> {
    let mut set = ids[ranks.start.min(ids.len())..ranks.end.min(ids.len())].to_vec();
    set.sort_unstable();
    set
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn agreement(runs: &[&[u64]]) -> Agreement {
        let runs: Vec<Vec<SearchResult>> = runs
            .iter()
            .map(|ids| vec![SearchResult { ids: ids.to_vec(), ..SearchResult::default() }])
            .collect();
        // Ids 10 apart are equally far.
        Agreement::of::<Infallible>(&runs, 2, |_, id| Ok((id % 10) as f64)).unwrap()
    }

    #[test]
    fn order_within_a_range_does_not_matter_and_between_ranges_it_does() {
        let same = Agreement { top_k: 1.0, head: 1.0, tail: 1.0 };
        assert_eq!(agreement(&[&[1, 2, 3, 4], &[2, 1, 4, 3], &[1, 2, 3, 4]]), same);
        let moved = Agreement { top_k: 1.0, head: 0.0, tail: 0.0 };
        assert_eq!(agreement(&[&[1, 2, 3, 4], &[1, 3, 2, 4]]), moved);
    }

    #[test]
    fn equally_far_rows_stand_in_for_each_other_and_others_do_not() {
        let same = Agreement { top_k: 1.0, head: 1.0, tail: 1.0 };
        assert_eq!(agreement(&[&[1, 2, 3, 4], &[1, 2, 3, 14], &[11, 2, 3, 4]]), same);
        let changed = Agreement { top_k: 0.0, head: 1.0, tail: 0.0 };
        assert_eq!(agreement(&[&[1, 2, 3, 4], &[1, 2, 3, 5]]), changed);
        assert_eq!(agreement(&[&[1, 2, 3, 4], &[1, 2, 3, 4], &[1, 2, 3]]), changed);
    }
}
