//! Lloyd's iteration: assign every row, move every centroid to the mean of its rows.
//!
//! ```text
//! assign   row blocks in parallel            list, distance of each row
//! group    counting sort by list             order: rows of list 0, of list 1, ... ascending
//! refill   each empty list takes the farthest row of the list with the largest error
//! move     lists in parallel, each summed by one thread over its rows in order
//! ```
//!
//! Summing a list in row order, instead of adding partial sums of threads, is what makes the bytes
//! independent of the number of threads; it also needs no `threads · nlist · dim` accumulators.

use rayon::prelude::*;

use super::Sample;
use crate::{AssignMethod, Assigner, ClusterError};

/// Rows assigned by one task.
const BLOCK: usize = 1024;

/// At most `iterations` rounds on `centroids`, in place; stops when no row changes its list.
pub(super) fn iterate(
    sample: Sample<'_>,
    centroids: &mut [f32],
    iterations: usize,
    pool: &rayon::ThreadPool,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<(), ClusterError> {
    let mut lists = vec![u32::MAX; sample.len()];
    for round in 0..iterations {
        let assignment = assign(sample, centroids, AssignMethod::Auto, pool)?;
        if assignment.lists == lists {
            break;
        }
        let groups = Groups::new(&assignment.lists, centroids.len() / sample.dim);
        refill_empty(sample, &groups, &assignment, centroids);
        move_to_means(sample, &groups, centroids);
        lists = assignment.lists;
        progress((round + 1) as f64 / iterations as f64);
    }
    Ok(())
}

/// The list of every row and its squared distance to that centroid.
pub(super) struct Assignment {
    pub(super) lists: Vec<u32>,
    pub(super) dist2: Vec<f32>,
}

/// Assigns every row of the sample, row blocks in parallel.
pub(super) fn assign(
    sample: Sample<'_>,
    centroids: &[f32],
    method: AssignMethod,
    pool: &rayon::ThreadPool,
) -> Result<Assignment, ClusterError> {
    let assigner = Assigner::new(centroids, sample.dim, method, pool)?;
    let mut lists = vec![0; sample.len()];
    let mut dist2 = vec![0.0; sample.len()];
    sample
        .rows
        .par_chunks(BLOCK * sample.dim)
        .zip(lists.par_chunks_mut(BLOCK))
        .zip(dist2.par_chunks_mut(BLOCK))
        .for_each(|((rows, lists), dist2)| assigner.assign(rows, lists, dist2));
    Ok(Assignment { lists, dist2 })
}

/// Row numbers grouped by list, ascending within each.
pub(super) struct Groups {
    rows: Vec<u32>,
    starts: Vec<usize>,
}

impl Groups {
    /// Groups the rows of `lists`; every entry is below `nlist`.
    pub(super) fn new(lists: &[u32], nlist: usize) -> Self {
        let mut starts = vec![0; nlist + 1];
        for &list in lists {
            starts[list as usize + 1] += 1;
        }
        for i in 0..nlist {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut rows = vec![0; lists.len()];
        for (row, &list) in (0u32..).zip(lists) {
            rows[next[list as usize]] = row;
            next[list as usize] += 1;
        }
        Self { rows, starts }
    }

    /// Number of lists.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The rows of one list.
    pub(super) fn of(&self, list: usize) -> &[u32] {
        &self.rows[self.starts[list]..self.starts[list + 1]]
    }
}

/// Moves the centroid of every empty list onto the farthest row of the list with the largest
/// summed error, which counts as halved afterwards. Where all errors are 0 (no more distinct rows
/// than lists) the centroid stays.
fn refill_empty(
    sample: Sample<'_>,
    groups: &Groups,
    assignment: &Assignment,
    centroids: &mut [f32],
) {
    let empty: Vec<usize> = (0..groups.len()).filter(|&l| groups.of(l).is_empty()).collect();
    if empty.is_empty() {
        return;
    }
    let dist2 = |row: u32| assignment.dist2[row as usize];
    let mut error: Vec<f64> = (0..groups.len())
        .map(|l| groups.of(l).iter().map(|&r| f64::from(dist2(r))).sum())
        .collect();
    let mut taken = vec![0usize; groups.len()];
    for list in empty {
        let Some((donor, _)) = error
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, e)| e.is_finite() && *e > 0.0)
            .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
        else {
            return;
        };
        let mut rows = groups.of(donor).to_vec();
        rows.sort_unstable_by(|a, b| dist2(*b).total_cmp(&dist2(*a)).then(a.cmp(b)));
        let row = rows[taken[donor].min(rows.len() - 1)] as usize;
        centroids[list * sample.dim..(list + 1) * sample.dim].copy_from_slice(sample.row(row));
        taken[donor] += 1;
        error[donor] = if taken[donor] < rows.len() { error[donor] / 2.0 } else { 0.0 };
    }
}

/// Moves the centroid of every list that has rows to their mean.
fn move_to_means(sample: Sample<'_>, groups: &Groups, centroids: &mut [f32]) {
    let dim = sample.dim;
    centroids.par_chunks_mut(dim).enumerate().for_each_init(
        || vec![0f64; dim],
        |sums, (list, centroid)| {
            let rows = groups.of(list);
            if rows.is_empty() {
                return;
            }
            sums.fill(0.0);
            for &row in rows {
                for (s, x) in sums.iter_mut().zip(sample.row(row as usize)) {
                    *s += f64::from(*x);
                }
            }
            for (c, s) in centroid.iter_mut().zip(sums.iter()) {
                *c = (s / rows.len() as f64) as f32;
            }
        },
    );
}
