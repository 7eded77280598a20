//! What a training allocates, known before it starts.
//!
//! ```text
//! one level    centroids + largest of  [ rows seeded from | Lloyd ]
//! two levels   largest of              [ coarse level | grouping | split | centroids + Lloyd ]
//!
//! Lloyd        lists, distances + sums + shifted centroids + two waves
//! split        grouped rows + centroids + the memory option, or one group that exceeds it
//! ```

use super::KmeansOptions;
use super::seeding::rows_drawn_from;
use super::split::{coarse_lists, coarse_rows, group_rows};
use super::waves::wave_rows;
use crate::{AssignMethod, Assigner};

/// Bytes that do not grow with anything: the reading thread, queues, small lists.
const SMALL: u64 = 256 << 10;

/// At least the bytes that [`super::kmeans`] has allocated at its worst moment, result included, for
/// `rows` sample rows of `dim` values that are read when needed, on `threads` threads.
///
/// Not included: what the source itself allocates while it is read.
pub fn kmeans_bytes(
    rows: u64,
    dim: usize,
    nlist: usize,
    options: &KmeansOptions,
    threads: usize,
) -> u64 {
    let (rows, dim, nlist) = (rows.min(u64::from(u32::MAX)) as usize, dim.max(1), nlist.max(1));
    let centroids = values(nlist, dim);
    let scratch = Assigner::scratch_bytes(nlist, dim, AssignMethod::Auto) + 4 * 1024;
    let fixed = SMALL + waves(rows, dim) + threads.max(1) as u64 * scratch;
    let at_worst = if options.in_two_levels(nlist) {
        let coarse = coarse_lists(nlist);
        let first = coarse_level(rows, nlist, dim, options.memory);
        let grouping = 12 * rows as u64 + Assigner::bytes_for(coarse, dim, AssignMethod::Auto);
        let split = 8 * rows as u64 + centroids + groups(rows, nlist, dim, options.memory);
        let refined = centroids + lloyd(rows, nlist, dim);
        (values(coarse, dim) + first.max(grouping)).max(split).max(refined)
    } else {
        centroids + seeding(rows, nlist, dim).max(lloyd(rows, nlist, dim))
    };
    fixed + at_worst
}

/// The rows of the coarse level and its training.
fn coarse_level(rows: usize, nlist: usize, dim: usize, memory: u64) -> u64 {
    let (rows, lists) = (coarse_rows(rows, nlist), coarse_lists(nlist));
    let loaded = loaded_group(rows, lists, dim);
    if loaded <= memory { loaded } else { streamed_group(rows, lists, dim) }
}

/// The groups that are trained at the same time.
fn groups(rows: usize, nlist: usize, dim: usize, memory: u64) -> u64 {
    let all = loaded_group(rows, nlist, dim) + coarse_lists(nlist) as u64 * 16 * dim as u64;
    let largest = group_rows(rows, nlist, dim);
    if loaded_group(largest, nlist, dim) <= memory {
        return all.min(memory);
    }
    all.min(memory).max(streamed_group(largest, nlist, dim))
}

/// Bytes to train a group of so many rows and lists from loaded rows: the rows, where they go, and
/// the training, centroids excepted. Adds up over groups.
pub(super) fn loaded_group(rows: usize, lists: usize, dim: usize) -> u64 {
    let assigner = Assigner::bytes_for(lists, dim, AssignMethod::Auto);
    let drawn = 17 * rows.min(32 * lists) as u64;
    values(rows, dim)
        + 24 * rows as u64
        + 2 * values(lists, dim)
        + 68 * lists as u64
        + assigner
        + drawn
}

/// Bytes to train a group from rows that are read in each iteration.
fn streamed_group(rows: usize, lists: usize, dim: usize) -> u64 {
    4 * rows as u64 + seeding(rows, lists, dim).max(lloyd(rows, lists, dim))
}

/// The rows drawn from, their numbers, distances and marks.
fn seeding(rows: usize, lists: usize, dim: usize) -> u64 {
    let drawn = rows_drawn_from(rows, lists, dim);
    values(drawn, dim) + 17 * drawn as u64
}

/// Lists and distances of the rows, sums and sizes of the lists; then the assignment, or the
/// rows of lists that give some to empty ones.
fn lloyd(rows: usize, lists: usize, dim: usize) -> u64 {
    let assigner = Assigner::bytes_for(lists, dim, AssignMethod::Auto);
    let refill = 4 * rows as u64 + 64 * lists as u64;
    8 * rows as u64 + 2 * values(lists, dim) + 4 * lists as u64 + assigner.max(refill)
}

/// The two buffers that rows are read into.
fn waves(rows: usize, dim: usize) -> u64 {
    let wave = wave_rows(dim);
    let (first, second) = (rows.min(wave), rows.saturating_sub(wave).min(wave));
    values(first + second, dim) + 4 * first as u64
}

/// Bytes of f32 rows.
fn values(rows: usize, dim: usize) -> u64 {
    4 * rows as u64 * dim as u64
}
