//! Passing over rows in waves.
//!
//! A wave has a number of rows that depends on their dim alone: sums are added wave by wave, and
//! must not notice how many threads or how much memory there is. Rows in memory are cut where they
//! lie, others are read one wave ahead.

use super::ClusterError;
use crate::{Rows, read_ahead};

/// Values of a wave: 8 MiB, so that what the assignment has read is still cached for the sums.
const WAVE_VALUES: usize = 1 << 21;

/// Rows of a wave.
pub(super) fn wave_rows(dim: usize) -> usize {
    (WAVE_VALUES / dim).max(1)
}

/// Calls `consume(first row, rows)` for all rows in order.
pub(super) fn for_each_wave(
    rows: &dyn Rows,
    mut consume: impl FnMut(usize, &[f32]),
) -> Result<(), ClusterError> {
    let (dim, wave) = (rows.dim(), wave_rows(rows.dim()));
    if let Some(values) = rows.values() {
        values.chunks(wave * dim).enumerate().for_each(|(i, rows)| consume(i * wave, rows));
        return Ok(());
    }
    let read = |start, out: &mut [f32]| rows.read_f32(start, out);
    read_ahead::for_each_block(rows.n(), dim, wave, read, |start, rows| {
        consume(start as usize, rows);
    })
}

/// Chosen rows, ascending, into `out`.
pub(super) fn gather(rows: &dyn Rows, chosen: &[u32], out: &mut [f32]) -> Result<(), ClusterError> {
    rows.gather_f32(chosen, out).map_err(|source| ClusterError::Read {
        start: chosen.first().copied().unwrap_or(0).into(),
        end: u64::from(chosen.last().copied().unwrap_or(0)) + 1,
        source,
    })
}
