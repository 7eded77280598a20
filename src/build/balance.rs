//! No list far larger than the others: a query that visits it would wait for all of it.
//!
//! ```text
//! lists over the limit ─ k-means splits each ─▶ parts, in the slots of the smallest lists
//!                        rows of split and of displaced lists ─▶ their nearest list
//! still over (equal rows: no centroid tells them apart)
//!                      ─ copies of the centroid, rows dealt out to them in their order
//! ```
//! The number of lists stays what it was, so the size of the index does too.

use cluster::{AssignMethod, Assigner, KmeansOptions, kmeans_bytes};
use rayon::prelude::*;

use super::Watch;
use super::assign::{Assignment, PLACE, Place, Rows, entries};
use super::prepare::prepare;
use super::train::{READING, Sample, train_lists};
use crate::error::BuildError;

/// Most rows of a list, as a multiple of the mean.
const LIMIT_TIMES_MEAN: u64 = 8;
/// Lists below this are never split: visiting one costs nothing.
const LIMIT_LEAST: u64 = 256;
/// Rows that train each part, as in the training of all centroids.
const TRAIN_ROWS: u64 = 256;
/// Most values that train the parts of one list (64 MiB of f32).
const TRAIN_VALUES: u64 = 1 << 24;
/// Rounds at most: the first trains, the others deal out equal rows, and what rows of displaced
/// lists made too large.
const ROUNDS: u64 = 4;

/// A list that is split, and the slots its parts go to; its own comes first.
struct Split {
    slots: Vec<u32>,
    /// Rows before the split.
    count: u64,
}

/// What parts are trained with.
#[derive(Clone, Copy)]
pub(crate) struct Training<'a> {
    pub(crate) seed: u64,
    /// The samples are held in memory when they fit in so many bytes beside [`least_bytes`].
    pub(crate) spare: u64,
    pub(crate) pool: &'a rayon::ThreadPool,
    pub(crate) watch: &'a Watch<'a>,
}

/// The lists after balancing.
pub(crate) struct Balanced {
    /// Rows of each list.
    pub(crate) counts: Vec<u64>,
    /// Whether any row changed its list.
    pub(crate) moved: bool,
}

/// The least memory for [`balance`] besides the centroids, in bytes: to train the parts of one list,
/// and to assign rows again.
pub(crate) fn least_bytes(n: u64, dim: usize, nlist: usize, threads: usize) -> u64 {
    let parts = n.div_ceil(limit(n, nlist) / 2).min(nlist as u64);
    let rows = sample_rows(n, parts, dim);
    let mut options = KmeansOptions::default();
    options.memory = 0;
    // Row numbers of all samples. Parts of many lists are half as many again: each is rounded up.
    let samples = 8 * n.min(TRAIN_ROWS * (parts + parts.div_ceil(2)));
    let training = samples + kmeans_bytes(rows, dim, parts as usize, &options, threads);
    training + threads as u64 * READING + 32 * nlist as u64
}

/// Splits lists over the limit, in `centroids` and in `assignment`.
pub(crate) fn balance(
    rows: Rows<'_>,
    centroids: &mut [f32],
    assignment: &Assignment,
    with: Training<'_>,
) -> Result<Balanced, BuildError> {
    let nlist = centroids.len() / rows.base.dim();
    let mut counts = assignment.counts(nlist)?;
    let mut moved = false;
    for round in 0..ROUNDS {
        let splits = plan(&counts);
        if splits.is_empty() {
            break;
        }
        moved = true;
        if round == 0 {
            train(rows, &splits, centroids, assignment, with)?;
        } else {
            copy(&splits, centroids, rows.base.dim());
        }
        reassign(rows, &splits, centroids, assignment, with)?;
        if round > 0 {
            deal(&splits, nlist, assignment)?;
        }
        counts = assignment.counts(nlist)?;
    }
    Ok(Balanced { counts, moved })
}

/// The most rows a list of so many may have.
pub(crate) fn limit(stored: u64, nlist: usize) -> u64 {
    let mean = stored.div_ceil(nlist.max(1) as u64);
    (mean * LIMIT_TIMES_MEAN).max(LIMIT_LEAST)
}

/// Lists over the limit, and the slots of the smallest lists for their parts: parts of half the
/// limit, so that what they gain from displaced lists does not make them too large again.
fn plan(counts: &[u64]) -> Vec<Split> {
    let limit = limit(counts.iter().sum(), counts.len());
    let over = |list: u32| counts[list as usize] > limit;
    let mut free: Vec<u32> = (0..counts.len() as u32).filter(|&list| !over(list)).collect();
    free.sort_unstable_by_key(|&list| (counts[list as usize], list));
    let mut free = free.into_iter();
    let split = |list: u32| {
        let count = counts[list as usize];
        let more = count.div_ceil(limit / 2) as usize - 1;
        let slots = std::iter::once(list).chain(free.by_ref().take(more)).collect();
        Split { slots, count }
    };
    (0..counts.len() as u32).filter(|&list| over(list)).map(split).collect()
}

/// Moves the centroid of every slot onto a part of the list that is split.
fn train(
    rows: Rows<'_>,
    splits: &[Split],
    centroids: &mut [f32],
    assignment: &Assignment,
    with: Training<'_>,
) -> Result<(), BuildError> {
    let Training { seed, spare, pool, watch } = with;
    let dim = rows.base.dim();
    let wanted = |split: &Split| sample_rows(split.count, split.slots.len() as u64, dim);
    let samples = sample(splits, centroids.len() / dim, wanted, assignment)?;
    for (split, sample) in splits.iter().zip(samples) {
        let sample = Sample::of(rows.base, sample, rows.metric, rows.mean, watch);
        let parts = split.slots.len();
        let parts = train_lists(sample, parts, seed, spare, pool, watch, &|_| {})?;
        for (&slot, part) in split.slots.iter().zip(parts.chunks_exact(dim)) {
            centroids[slot as usize * dim..][..dim].copy_from_slice(part);
        }
    }
    Ok(())
}

/// Rows that train so many parts of a list of `count` rows.
fn sample_rows(count: u64, parts: u64, dim: usize) -> u64 {
    let most = TRAIN_VALUES / dim as u64;
    count.min((TRAIN_ROWS * parts).min(most).max(parts))
}

/// Rows of each list that is split, at even steps.
fn sample(
    splits: &[Split],
    nlist: usize,
    wanted: impl Fn(&Split) -> u64,
    assignment: &Assignment,
) -> Result<Vec<Vec<u64>>, BuildError> {
    let of = split_of(splits, nlist, |split| &split.slots[..1]);
    let mut seen = vec![0u64; splits.len()];
    let mut samples: Vec<Vec<u64>> =
        splits.iter().map(|split| Vec::with_capacity(wanted(split) as usize)).collect();
    assignment.each(|start, places| {
        for (row, place) in (start..).zip(entries(places)).filter(|(_, place)| place.is_listed()) {
            let Some(number) = of[place.list as usize] else { continue };
            let (split, number) = (&splits[number as usize], number as usize);
            let step =
                |seen: u64| u128::from(seen) * u128::from(wanted(split)) / u128::from(split.count);
            if step(seen[number] + 1) > step(seen[number]) {
                samples[number].push(row);
            }
            seen[number] += 1;
        }
        Ok(())
    })?;
    Ok(samples)
}

/// Gives every slot of a split the centroid of its list.
fn copy(splits: &[Split], centroids: &mut [f32], dim: usize) {
    for split in splits {
        let first = split.slots[0] as usize * dim;
        for &slot in &split.slots[1..] {
            centroids.copy_within(first..first + dim, slot as usize * dim);
        }
    }
}

/// Moves the rows of all slots, whose centroids have moved, to their nearest list.
fn reassign(
    rows: Rows<'_>,
    splits: &[Split],
    centroids: &[f32],
    assignment: &Assignment,
    with: Training<'_>,
) -> Result<(), BuildError> {
    let Training { pool, watch, .. } = with;
    let dim = rows.base.dim();
    let moved = split_of(splits, centroids.len() / dim, |split| &split.slots);
    let assigner = Assigner::new(centroids, dim, AssignMethod::Auto, pool)?;
    assignment.each(|start, places| {
        watch.update("balance", start, rows.base.n())?;
        let affected: Vec<u64> = (start..)
            .zip(entries(places))
            .filter(|(_, place)| place.is_listed() && moved[place.list as usize].is_some())
            .map(|(row, _)| row)
            .collect();
        for numbers in affected.chunks(rows.waves.rows()) {
            let (lists, distances) = nearest(rows, &assigner, numbers, pool)?;
            for ((&row, list), distance) in numbers.iter().zip(lists).zip(distances) {
                let at = (row - start) as usize * PLACE;
                places[at..at + PLACE].copy_from_slice(&Place { list, distance }.to_bytes());
            }
        }
        if affected.is_empty() { Ok(()) } else { assignment.write(start, places) }
    })
}

fn nearest(
    rows: Rows<'_>,
    assigner: &Assigner<'_>,
    numbers: &[u64],
    pool: &rayon::ThreadPool,
) -> Result<(Vec<u32>, Vec<f32>), BuildError> {
    let (dim, block) = (rows.base.dim(), rows.waves.block_rows);
    let (mut lists, mut distances) = (vec![0; numbers.len()], vec![0.0; numbers.len()]);
    let blocks = numbers.par_chunks(block);
    let found = lists.par_chunks_mut(block).zip(distances.par_chunks_mut(block));
    pool.install(|| {
        blocks.zip(found).try_for_each(|(numbers, (lists, distances))| {
            let mut values = vec![0f32; numbers.len() * dim];
            rows.base.gather_f32(numbers, &mut values)?;
            values.chunks_exact_mut(dim).for_each(|row| prepare(row, rows.metric, rows.mean));
            assigner.assign(&values, lists, distances);
            Ok::<(), BuildError>(())
        })
    })?;
    Ok((lists, distances))
}

/// Deals the rows of lists with the same centroid out to them evenly, in the order of the rows.
fn deal(splits: &[Split], nlist: usize, assignment: &Assignment) -> Result<(), BuildError> {
    let of = split_of(splits, nlist, |split| &split.slots);
    let mut counts = vec![0u64; splits.len()];
    assignment.each(|_, places| {
        for place in entries(places).filter(|place| place.is_listed()) {
            if let Some(number) = of[place.list as usize] {
                counts[number as usize] += 1;
            }
        }
        Ok(())
    })?;
    let mut dealt = vec![0u64; splits.len()];
    assignment.each(|start, places| {
        for bytes in places.as_chunks_mut::<PLACE>().0 {
            let place = Place::read(bytes);
            if !place.is_listed() {
                continue;
            }
            let Some(number) = of[place.list as usize] else { continue };
            let number = number as usize;
            let slots = &splits[number].slots;
            let share = counts[number].div_ceil(slots.len() as u64);
            let list = slots[(dealt[number] / share) as usize];
            dealt[number] += 1;
            *bytes = Place { list, ..place }.to_bytes();
        }
        assignment.write(start, places)
    })
}

/// The split that each list has to do with, by the lists that `of` gives.
fn split_of(splits: &[Split], nlist: usize, of: impl Fn(&Split) -> &[u32]) -> Vec<Option<u32>> {
    let mut numbers = vec![None; nlist];
    for (number, split) in (0..).zip(splits) {
        of(split).iter().for_each(|&list| numbers[list as usize] = Some(number));
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_lists_take_the_slots_of_the_smallest() {
        // 100 lists of 100 rows on average: the limit is 800.
        let mut counts = vec![10u64; 100];
        counts[7] = 8_000;
        counts[3] = 0;
        counts[90] = 1_000;
        counts[91] = 0;
        let limit = limit(counts.iter().sum(), 100);
        let splits = plan(&counts);
        assert_eq!(splits.len(), 2);
        assert_eq!(splits[0].slots[..3], [7, 3, 91]);
        assert_eq!(splits[0].slots.len() as u64, 8_000u64.div_ceil(limit / 2));
        assert_eq!(splits[1].slots[0], 90);
        let mut all: Vec<u32> = splits.iter().flat_map(|split| split.slots.clone()).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "a slot is taken once");
    }

    #[test]
    fn even_and_few_rows_are_left_alone() {
        assert!(plan(&[100; 50]).is_empty());
        assert!(plan(&[250, 0, 0, 0]).is_empty());
        assert!(plan(&[100_000]).is_empty());
    }
}
