//! Two levels: few coarse lists, each split in proportion to its rows.
//!
//! ```text
//! rows at even steps ──train √nlist──▶ coarse lists ──share out nlist──▶ quota per coarse list
//!        each coarse list's rows ──train quota──▶ its part of the nlist centroids
//!        all rows ──lloyd x refinements──▶ centroids
//! ```
//!
//! The rows of a coarse list, a group, are loaded for its training: many groups at a time, as far as
//! the memory goes, with one pass over the rows for all of them. A group that is too large for the
//! memory is trained from rows read in each iteration. Both give the same bytes.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::bytes::loaded_group;
use super::crew::Crew;
use super::groups::Groups;
use super::lloyd::{self, Assignment};
use super::load::load;
use super::picked::{Picked, even_steps};
use super::{KmeansOptions, train};
use crate::{ClusterError, RowSlice, Rows};

/// Rows per coarse list that train the coarse level: more do not move its centroids noticeably.
const COARSE_ROWS_PER_LIST: usize = 256;
/// A group trains on so many values (128 MiB) or so many rows per list, whichever is more: its
/// centroids are refined on all rows afterwards.
const GROUP_VALUES: usize = 1 << 25;
const GROUP_ROWS_PER_LIST: usize = 40;

/// Shares of the work, for the progress only.
const COARSE_DONE: f64 = 0.1;
const SPLIT_DONE: f64 = 0.3;

/// Fills `centroids` in two levels; they are at most as many as the rows.
pub(super) fn train_in_two_levels(
    rows: &dyn Rows,
    centroids: &mut [f32],
    options: &KmeansOptions,
    crew: &Crew<'_>,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<(), ClusterError> {
    let nlist = centroids.len() / rows.dim();
    let groups = {
        let coarse = train_coarse(rows, nlist, options, crew)?;
        let mut assignment = Assignment::new(rows.n() as usize);
        lloyd::assign(rows, &coarse, &mut assignment, crew, |_, _| {})?;
        Groups::new(assignment.lists, coarse_lists(nlist))
    };
    progress(COARSE_DONE);
    split(rows, &groups, centroids, options, crew, &|done| {
        progress(COARSE_DONE + (SPLIT_DONE - COARSE_DONE) * done);
    })?;
    drop(groups);
    lloyd::iterate(rows, centroids, options.refinements, crew, &|done| {
        progress(SPLIT_DONE + (1.0 - SPLIT_DONE) * done);
    })
}

/// Number of coarse lists.
pub(super) fn coarse_lists(nlist: usize) -> usize {
    (nlist as f64).sqrt().round() as usize
}

/// Number of rows that the coarse level trains on.
pub(super) fn coarse_rows(rows: usize, nlist: usize) -> usize {
    (coarse_lists(nlist) * COARSE_ROWS_PER_LIST).min(rows)
}

/// Number of rows of `rows` that a group of `quota` lists trains on.
pub(super) fn group_rows(rows: usize, quota: usize, dim: usize) -> usize {
    rows.min((GROUP_VALUES / dim).max(quota.saturating_mul(GROUP_ROWS_PER_LIST)))
}

/// The centroids of the coarse level.
fn train_coarse(
    rows: &dyn Rows,
    nlist: usize,
    options: &KmeansOptions,
    crew: &Crew<'_>,
) -> Result<Vec<f32>, ClusterError> {
    let (n, dim, lists) = (rows.n() as usize, rows.dim(), coarse_lists(nlist));
    let wanted = coarse_rows(n, nlist);
    let mut coarse = vec![0f32; lists * dim];
    let mut on =
        |rows: &dyn Rows| train(rows, &mut coarse, options.seed, options.iterations, crew, &|_| {});
    if wanted == n {
        on(rows)?;
        return Ok(coarse);
    }
    let chosen: Vec<u32> = even_steps(n, wanted).map(|i| i as u32).collect();
    if loaded_group(wanted, lists, dim) > options.memory {
        on(&Picked { rows, chosen: &chosen })?;
    } else {
        let mut values = Vec::new();
        load(rows, &[Cow::Borrowed(&chosen)], &mut values)?;
        on(&RowSlice::new(&values, dim)?)?;
    }
    Ok(coarse)
}

/// A group to be split.
struct Part<'a> {
    group: usize,
    rows: Cow<'a, [u32]>,
    centroids: &'a mut [f32],
}

/// Trains a part on the rows given.
type TrainPart<'a> =
    dyn Fn(&mut Part<'_>, &dyn Rows, &Crew<'_>) -> Result<(), ClusterError> + Sync + 'a;

/// Trains the centroids of every group: those of the first group come first.
fn split(
    rows: &dyn Rows,
    groups: &Groups,
    mut centroids: &mut [f32],
    options: &KmeansOptions,
    crew: &Crew<'_>,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<(), ClusterError> {
    let dim = rows.dim();
    let sizes: Vec<usize> = (0..groups.len()).map(|g| groups.of(g).len()).collect();
    let quotas = share_out(centroids.len() / dim, &sizes);
    let done = AtomicUsize::new(0);
    let train_part = |part: &mut Part<'_>, rows: &dyn Rows, crew: &Crew<'_>| {
        if part.centroids.is_empty() {
            return Ok(());
        }
        let seed = options.seed.wrapping_add(1 + part.group as u64);
        train(rows, part.centroids, seed, options.iterations, crew, &|_| {})?;
        let rows = done.fetch_add(sizes[part.group], Ordering::Relaxed) + sizes[part.group];
        progress(rows as f64 / groups.rows() as f64);
        Ok(())
    };
    let mut buffer = Vec::new();
    let mut next = 0;
    while next < groups.len() {
        let charge = |g: usize| loaded_group(group_rows(sizes[g], quotas[g], dim), quotas[g], dim);
        let batch = batch_from(next, groups.len(), charge, options.memory);
        next = batch.end;
        let mut parts = Vec::with_capacity(batch.len());
        for group in batch {
            let (head, tail) = centroids.split_at_mut(quotas[group] * dim);
            let rows = thinned(groups.of(group), group_rows(sizes[group], quotas[group], dim));
            parts.push(Part { group, rows, centroids: head });
            centroids = tail;
        }
        if let [part] = &mut parts[..]
            && charge(part.group) > options.memory
        {
            let chosen = std::mem::take(&mut part.rows);
            train_part(part, &Picked { rows, chosen: &chosen }, crew)?;
        } else {
            train_loaded(rows, &mut parts, &mut buffer, crew, &train_part)?;
        }
    }
    Ok(())
}

/// Loads the rows of the parts and trains them: a part per thread, or all threads on one after
/// the other where there are fewer parts than threads.
fn train_loaded(
    rows: &dyn Rows,
    parts: &mut [Part<'_>],
    buffer: &mut Vec<f32>,
    crew: &Crew<'_>,
    train_part: &TrainPart<'_>,
) -> Result<(), ClusterError> {
    let dim = rows.dim();
    let chosen: Vec<Cow<'_, [u32]>> =
        parts.iter_mut().map(|p| std::mem::take(&mut p.rows)).collect();
    load(rows, &chosen, buffer)?;
    let mut rest = &buffer[..];
    let mut tasks = Vec::with_capacity(parts.len());
    for (part, chosen) in parts.iter_mut().zip(&chosen) {
        let (head, tail) = rest.split_at(chosen.len() * dim);
        tasks.push((part, RowSlice::new(head, dim)?));
        rest = tail;
    }
    if tasks.len() < crew.threads() {
        return tasks.into_iter().try_for_each(|(part, rows)| train_part(part, &rows, crew));
    }
    let tasks = tasks.into_par_iter().with_max_len(1);
    tasks.try_for_each(|(part, rows)| train_part(part, &rows, &crew.alone()))
}

/// As many groups from `first` on as the memory holds, and at least one.
fn batch_from(
    first: usize,
    groups: usize,
    charge: impl Fn(usize) -> u64,
    memory: u64,
) -> Range<usize> {
    let mut left = memory.saturating_sub(charge(first));
    let mut end = first + 1;
    while end < groups && charge(end) <= left {
        left -= charge(end);
        end += 1;
    }
    first..end
}

/// `wanted` of the rows at even steps.
fn thinned(rows: &[u32], wanted: usize) -> Cow<'_, [u32]> {
    if wanted == rows.len() {
        return Cow::Borrowed(rows);
    }
    Cow::Owned(even_steps(rows.len(), wanted).map(|i| rows[i]).collect())
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
