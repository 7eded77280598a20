//! Loading the rows of several groups with one ascending pass.
//!
//! ```text
//! groups   [3 8 9] [1 4]            slots 0..5 of the buffer
//! order    1→3  3→0  4→4  8→1  9→2  row → slot, ascending by row: as the file lies
//! ```

use std::borrow::Cow;

use rayon::prelude::*;

use super::ClusterError;
use super::waves::wave_rows;
use crate::{Rows, read_ahead};

/// Makes `buffer` the chosen rows, group after group; the rows of a group ascend.
pub(super) fn load(
    rows: &dyn Rows,
    groups: &[Cow<'_, [u32]>],
    buffer: &mut Vec<f32>,
) -> Result<(), ClusterError> {
    let dim = rows.dim();
    let total: usize = groups.iter().map(|g| g.len()).sum();
    buffer.clear();
    if buffer.capacity() < total * dim {
        *buffer = Vec::new();
        buffer.reserve_exact(total * dim);
    }
    buffer.resize(total * dim, 0.0);
    let mut order: Vec<u64> = Vec::with_capacity(total);
    order.extend(
        groups
            .iter()
            .flat_map(|g| g.iter())
            .zip(0u64..)
            .map(|(&row, slot)| u64::from(row) << 32 | slot),
    );
    if let Some(values) = rows.values() {
        buffer.par_chunks_exact_mut(dim).zip(&order).for_each(|(out, entry)| {
            out.copy_from_slice(&values[row_of(*entry) as usize * dim..][..dim]);
        });
        return Ok(());
    }
    order.par_sort_unstable();
    let wave = wave_rows(dim);
    let read = |start: u64, out: &mut [f32]| {
        let entries = &order[start as usize..start as usize + out.len() / dim];
        let chosen: Vec<u32> = entries.iter().map(|&entry| row_of(entry)).collect();
        rows.gather_f32(&chosen, out)
    };
    read_ahead::for_each_block(total as u64, dim, wave, read, |start, values| {
        for (row, &entry) in values.chunks_exact(dim).zip(&order[start as usize..]) {
            buffer[slot_of(entry) * dim..][..dim].copy_from_slice(row);
        }
    })
}

fn row_of(entry: u64) -> u32 {
    (entry >> 32) as u32
}

fn slot_of(entry: u64) -> usize {
    (entry & u64::from(u32::MAX)) as usize
}
