//! Some of the rows, as rows of their own.

use std::error::Error;

use crate::{RowSource, Rows};

/// The rows `chosen` (ascending) of `rows`, read when needed.
pub(super) struct Picked<'a> {
    pub(super) rows: &'a dyn Rows,
    pub(super) chosen: &'a [u32],
}

impl RowSource for Picked<'_> {
    fn n(&self) -> u64 {
        self.chosen.len() as u64
    }

    fn dim(&self) -> usize {
        self.rows.dim()
    }

    fn read_f32(&self, start: u64, out: &mut [f32]) -> Result<(), Box<dyn Error + Send + Sync>> {
        let (start, count) = (start as usize, out.len() / self.dim());
        self.rows.gather_f32(&self.chosen[start..start + count], out)
    }
}

impl Rows for Picked<'_> {
    fn gather_f32(
        &self,
        rows: &[u32],
        out: &mut [f32],
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let chosen: Vec<u32> = rows.iter().map(|&row| self.chosen[row as usize]).collect();
        self.rows.gather_f32(&chosen, out)
    }
}

/// `wanted` of `n` numbers at even steps, ascending; `wanted` is at most `n`.
pub(super) fn even_steps(n: usize, wanted: usize) -> impl Iterator<Item = usize> {
    (0..wanted).map(move |i| (i as u128 * n as u128 / wanted as u128) as usize)
}
