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
use crate::{AssignMethod, Assigner, read_ahead};

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
        let (coarse, lists) = (coarse_rows(rows, nlist), coarse_lists(nlist));
        let first = 4 * coarse as u64 + within(options.memory, coarse, lists, dim);
        let grouping = 12 * rows as u64 + Assigner::bytes_for(lists, dim, AssignMethod::Auto);
        let largest = group_rows(rows, nlist, dim);
        let all = loaded_group(rows, nlist, dim);
        let batch = within(options.memory.min(all), largest, nlist, dim);
        let split = 8 * rows as u64 + centroids + batch;
        (values(lists, dim) + first.max(grouping))
            .max(split)
            .max(centroids + lloyd(rows, nlist, dim))
    } else {
        centroids + seeding(rows, nlist, dim).max(lloyd(rows, nlist, dim))
    };
    fixed + at_worst
}

/// Bytes to train a group of so many rows and lists from loaded rows, rows included, centroids not.
pub(super) fn loaded_group(rows: usize, lists: usize, dim: usize) -> u64 {
    values(rows, dim) + 12 * rows as u64 + training(rows, lists, dim)
}

/// Bytes to train one group of at most so many rows and lists, if need be from rows read in each
/// iteration; less than that for groups that fit in `memory`.
fn within(memory: u64, rows: usize, lists: usize, dim: usize) -> u64 {
    let loaded = loaded_group(rows, lists, dim);
    if loaded <= memory {
        return memory;
    }
    let streamed = 4 * rows as u64 + seeding(rows, lists, dim).max(lloyd(rows, lists, dim));
    memory.max(streamed)
}

/// Seeding or Lloyd, from rows in memory.
fn training(rows: usize, lists: usize, dim: usize) -> u64 {
    lloyd(rows, lists, dim).max(17 * rows_drawn_from(rows, lists, dim) as u64)
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
    let wave = wave_rows(dim).min(rows);
    read_ahead::bytes(wave, dim) + 4 * wave as u64
}

/// Bytes of f32 rows.
fn values(rows: usize, dim: usize) -> u64 {
    4 * rows as u64 * dim as u64
}
