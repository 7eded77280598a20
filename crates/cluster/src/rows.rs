//! Rows that are read when they are needed, because they may not fit in memory.
//!
//! ```text
//! RowSource   consecutive rows                        exact search
//!   Rows      + chosen rows, + a slice if there is one    k-means
//! ```

use std::error::Error;

use crate::ClusterError;
use crate::assign::rows_of;

/// Rows that may be larger than memory.
pub trait RowSource: Sync {
    /// Number of rows.
    fn n(&self) -> u64;
    /// Values per row.
    fn dim(&self) -> usize;
    /// Fills `out` (a whole number of rows) with the rows from `start` on.
    ///
    /// # Errors
    /// Whatever keeps the rows from being read.
    fn read_f32(&self, start: u64, out: &mut [f32]) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// Rows that k-means can train on: it passes over all of them several times, and picks some. Every
/// read of a row must give the same values.
pub trait Rows: RowSource {
    /// Fills `out` with chosen rows; `rows` ascends.
    ///
    /// # Errors
    /// Whatever keeps the rows from being read.
    fn gather_f32(&self, rows: &[u32], out: &mut [f32])
    -> Result<(), Box<dyn Error + Send + Sync>>;

    /// All rows, when they lie in memory anyway: then nothing is copied to pass over them.
    fn values(&self) -> Option<&[f32]> {
        None
    }
}

/// Rows in memory.
#[derive(Clone, Copy, Debug)]
pub struct RowSlice<'a> {
    values: &'a [f32],
    dim: usize,
}

impl<'a> RowSlice<'a> {
    /// `values` holds rows of `dim` values.
    ///
    /// # Errors
    /// When `dim` is 0, `values` is not a whole number of rows, or the rows are too many.
    pub fn new(values: &'a [f32], dim: usize) -> Result<Self, ClusterError> {
        rows_of("the slice of rows", values, dim)?;
        Ok(Self { values, dim })
    }
}

impl RowSource for RowSlice<'_> {
    fn n(&self) -> u64 {
        (self.values.len() / self.dim) as u64
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn read_f32(&self, start: u64, out: &mut [f32]) -> Result<(), Box<dyn Error + Send + Sync>> {
        let start = start as usize * self.dim;
        out.copy_from_slice(&self.values[start..start + out.len()]);
        Ok(())
    }
}

impl Rows for RowSlice<'_> {
    fn gather_f32(
        &self,
        rows: &[u32],
        out: &mut [f32],
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        for (&row, out) in rows.iter().zip(out.chunks_exact_mut(self.dim)) {
            let start = row as usize * self.dim;
            out.copy_from_slice(&self.values[start..start + self.dim]);
        }
        Ok(())
    }

    fn values(&self) -> Option<&[f32]> {
        Some(self.values)
    }
}
