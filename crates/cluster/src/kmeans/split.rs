//! Two levels: few coarse lists, each split in proportion to its rows.
//!
//! ```text
//! sample ──train √nlist──▶ coarse lists ──share out nlist──▶ quota per coarse list
//!        each coarse list ──train quota──▶ its centroids ──concatenate──▶ nlist centroids
//!        whole sample ──lloyd x refinements──▶ centroids
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::lloyd::{self, Groups};
use super::{KmeansOptions, Sample, train};
use crate::{AssignMethod, ClusterError};

/// Rows per coarse list that train the coarse level: more do not move its centroids noticeably.
const COARSE_ROWS_PER_LIST: usize = 256;

/// Shares of the work, for the progress only.
const COARSE_DONE: f64 = 0.1;
const SPLIT_DONE: f64 = 0.3;

/// Trains `nlist` centroids in two levels; `nlist` is at most the number of rows.
pub(super) fn train_in_two_levels(
    sample: Sample<'_>,
    nlist: usize,
    options: &KmeansOptions,
    pool: &rayon::ThreadPool,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Vec<f32>, ClusterError> {
    let coarse = train_coarse(sample, nlist, options, pool)?;
    let assignment = lloyd::assign(sample, &coarse, AssignMethod::Auto, pool)?;
    let groups = Groups::new(&assignment.lists, coarse.len() / sample.dim);
    drop(assignment);
    progress(COARSE_DONE);

    let sizes: Vec<usize> = (0..groups.len()).map(|g| groups.of(g).len()).collect();
    let quotas = share_out(nlist, &sizes);
    let done = AtomicUsize::new(0);
    let parts = (0..groups.len())
        .into_par_iter()
        .map(|g| {
            let part = split_one(sample, groups.of(g), quotas[g], options, g, pool);
            let rows = done.fetch_add(sizes[g], Ordering::Relaxed) + sizes[g];
            let share = rows as f64 / sample.len() as f64;
            progress(COARSE_DONE + (SPLIT_DONE - COARSE_DONE) * share);
            part
        })
        .collect::<Result<Vec<_>, _>>()?;
    drop(groups);

    let mut centroids = parts.concat();
    lloyd::iterate(sample, &mut centroids, options.refinements, pool, &|f| {
        progress(SPLIT_DONE + (1.0 - SPLIT_DONE) * f);
    })?;
    Ok(centroids)
}

/// About √nlist centroids, trained on rows taken at even steps.
fn train_coarse(
    sample: Sample<'_>,
    nlist: usize,
    options: &KmeansOptions,
    pool: &rayon::ThreadPool,
) -> Result<Vec<f32>, ClusterError> {
    let lists = (nlist as f64).sqrt().round() as usize;
    let wanted = lists * COARSE_ROWS_PER_LIST;
    if wanted >= sample.len() {
        return train(sample, lists, options.seed, options.iterations, pool, &|_| {});
    }
    let mut rows = Vec::with_capacity(wanted * sample.dim);
    for i in 0..wanted {
        rows.extend_from_slice(
            sample.row((i as u128 * sample.len() as u128 / wanted as u128) as usize),
        );
    }
    let part = Sample { rows: &rows, dim: sample.dim };
    train(part, lists, options.seed, options.iterations, pool, &|_| {})
}

/// The centroids of one coarse list.
fn split_one(
    sample: Sample<'_>,
    rows: &[u32],
    quota: usize,
    options: &KmeansOptions,
    group: usize,
    pool: &rayon::ThreadPool,
) -> Result<Vec<f32>, ClusterError> {
    if quota == 0 {
        return Ok(Vec::new());
    }
    let mut gathered = Vec::with_capacity(rows.len() * sample.dim);
    for &row in rows {
        gathered.extend_from_slice(sample.row(row as usize));
    }
    let part = Sample { rows: &gathered, dim: sample.dim };
    let seed = options.seed.wrapping_add(1 + group as u64);
    train(part, quota, seed, options.iterations, pool, &|_| {})
}

/// Shares `nlist` out over groups in proportion to their sizes: every group that has rows gets at
/// least one and at most one per row, and the total is exactly `nlist`.
///
/// Needs `nlist` between the number of groups that have rows and the number of rows. Largest
/// remainders first, the lower group on ties.
fn share_out(nlist: usize, sizes: &[usize]) -> Vec<usize> {
    let total: usize = sizes.iter().sum();
    let ideal = |g: usize| nlist as f64 * sizes[g] as f64 / total.max(1) as f64;
    let mut quotas: Vec<usize> =
        (0..sizes.len()).map(|g| (ideal(g) as usize).max(1).min(sizes[g])).collect();
    let mut given: usize = quotas.iter().sum();
    while given != nlist {
        let grow = given < nlist;
        let candidates =
            (0..sizes.len()).filter(|&g| if grow { quotas[g] < sizes[g] } else { quotas[g] > 1 });
        let lack = |g: usize| ideal(g) - quotas[g] as f64;
        let by_lack = |a: &usize, b: &usize| lack(*a).total_cmp(&lack(*b)).then(b.cmp(a));
        let best = if grow { candidates.max_by(by_lack) } else { candidates.min_by(by_lack) };
        let Some(g) = best else { break };
        if grow {
            quotas[g] += 1;
            given += 1;
        } else {
            quotas[g] -= 1;
            given -= 1;
        }
    }
    quotas
}

#[cfg(test)]
mod tests {
    use super::share_out;

    #[test]
    fn quotas_add_up_and_respect_the_sizes() {
        let sizes = [0, 1, 2, 3, 50, 1000, 1, 0, 7];
        for nlist in 7..=1064 {
            let quotas = share_out(nlist, &sizes);
            assert_eq!(quotas.iter().sum::<usize>(), nlist);
            for (q, s) in quotas.iter().zip(sizes) {
                assert!(*q <= s && (*q > 0) == (s > 0), "nlist {nlist}: quota {q} of {s} rows");
            }
        }
    }

    #[test]
    fn equal_sizes_get_equal_quotas() {
        assert_eq!(share_out(12, &[9, 9, 9]), [4, 4, 4]);
        assert_eq!(share_out(13, &[9, 9, 9]), [5, 4, 4]);
    }
}
