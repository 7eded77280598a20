//! Lloyd's iteration: assign every row, move every centroid to the mean of its rows.
//!
//! ```text
//! for each wave of rows       read while the one before is computed
//!     assign   row blocks in parallel            list, distance of each row
//!     add      columns in parallel               sums of every list, in row order
//! refill   each empty list takes a far row of a list with a large error
//! move     every centroid to the mean of its list
//! ```

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::crew::Crew;
use super::refill::refill_empty;
use super::sums::Sums;
use super::waves::for_each_wave;
use crate::{AssignMethod, Assigner, ClusterError, Rows};

/// Rows assigned by one task at most, and the multiple it is rounded to.
const BLOCK: usize = 512;
const BLOCK_STEP: usize = 16;

/// At most `iterations` rounds on `centroids`, in place; stops when no row changes its list.
pub(super) fn iterate(
    rows: &dyn Rows,
    centroids: &mut [f32],
    iterations: usize,
    crew: &Crew<'_>,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<(), ClusterError> {
    if iterations == 0 {
        return Ok(());
    }
    let mut assignment = Assignment::new(rows.n() as usize);
    let mut sums = Sums::new(centroids.len() / rows.dim(), rows.dim(), crew);
    for round in 0..iterations {
        sums.clear();
        let changed = assign(rows, centroids, &mut assignment, crew, |rows, lists| {
            sums.add(rows, lists, crew);
        })?;
        if !changed {
            break;
        }
        refill_empty(rows, &assignment, sums.counts(), centroids)?;
        sums.move_to_means(centroids, crew);
        progress((round + 1) as f64 / iterations as f64);
    }
    Ok(())
}

/// The list of every row and its squared distance to that centroid.
pub(super) struct Assignment {
    pub(super) lists: Vec<u32>,
    pub(super) dist2: Vec<f32>,
}

impl Assignment {
    /// Of rows that belong nowhere yet.
    pub(super) fn new(rows: usize) -> Self {
        Self { lists: vec![u32::MAX; rows], dist2: vec![0.0; rows] }
    }
}

/// Assigns every row; calls `then(rows, lists)` after each wave. True when a row changed its list.
pub(super) fn assign(
    rows: &dyn Rows,
    centroids: &[f32],
    assignment: &mut Assignment,
    crew: &Crew<'_>,
    mut then: impl FnMut(&[f32], &[u32]),
) -> Result<bool, ClusterError> {
    let dim = rows.dim();
    let assigner = Assigner::new(centroids, dim, AssignMethod::Auto, crew.pool)?;
    let changed = AtomicBool::new(false);
    for_each_wave(rows, |start, rows| {
        let count = rows.len() / dim;
        let block = block_rows(count, crew.threads());
        let lists = &mut assignment.lists[start..start + count];
        rows.par_chunks(block * dim)
            .zip(lists.par_chunks_mut(block))
            .zip(assignment.dist2[start..start + count].par_chunks_mut(block))
            .with_min_len(crew.piece(1))
            .for_each(|((rows, lists), dist2)| {
                crew.with_scratch(|scratch| {
                    scratch.before.clear();
                    scratch.before.extend_from_slice(lists);
                    assigner.assign_with(rows, lists, dist2, &mut scratch.assign);
                    if scratch.before != lists {
                        changed.store(true, Ordering::Relaxed);
                    }
                });
            });
        then(rows, lists);
    })?;
    Ok(changed.into_inner())
}

/// Rows per task, so that all threads get the same number of tasks of nearly the same size. Each
/// row is assigned by itself, so the blocks do not show in the result.
fn block_rows(rows: usize, threads: usize) -> usize {
    let tasks = rows.div_ceil(threads * BLOCK).max(1) * threads;
    rows.div_ceil(tasks).next_multiple_of(BLOCK_STEP)
}
