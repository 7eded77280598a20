//! First look at the base: which rows are invalid, which are zero.
//!
//! One streaming pass before anything expensive, so that a bad row is named before hours of
//! training. 8-bit rows cannot be invalid and are only read when zero rows matter (cosine).

use dataset::{Base, Dtype, MIN_SQUARED_NORM, RowCheck, RowSet, check_rows};
use rayon::prelude::*;
use simd::Kernels;

use crate::config::{Metric, OnInvalid};
use crate::error::BuildError;
use crate::progress::Progress;

use super::BLOCK_VALUES;

/// What the pass found.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Rows of the base.
    n: u64,
    /// Rows that are left out.
    invalid: RowSet,
    /// Rows kept outside the lists: zero rows under cosine.
    zeros: RowSet,
}

impl Survey {
    /// Reads the base and checks every row.
    pub(crate) fn of(
        base: &Base,
        metric: Metric,
        on_invalid: OnInvalid,
        progress: &dyn Progress,
    ) -> Result<Self, BuildError> {
        let integer = matches!(base.dtype(), Dtype::U8 | Dtype::I8);
        if integer && metric != Metric::Cosine {
            return Ok(Self { n: base.n(), ..Self::default() });
        }
        let mut check = RowCheck::default();
        let mut zeros = RowSet::default();
        let block = super::block_rows(base.dim());
        let starts: Vec<u64> = (0..base.n()).step_by(block as usize).collect();
        for wave in starts.chunks(rayon::current_num_threads() * 4) {
            progress.update("check", wave[0], base.n());
            let found: Vec<(RowCheck, RowSet)> = wave
                .par_iter()
                .map(|&start| check_block(base, metric, start, block))
                .collect::<Result<_, BuildError>>()?;
            for (c, z) in &found {
                check.merge(c);
                zeros.extend(z.iter());
            }
        }
        progress.update("check", base.n(), base.n());
        if let (OnInvalid::Error, Some(first)) = (on_invalid, check.first()) {
            let (file, row) = base.locate(first.row);
            return Err(BuildError::InvalidRows {
                file: file.into(),
                row,
                reason: first.reason.to_string(),
                count: check.invalid().len(),
                n: base.n(),
            });
        }
        Ok(Self { n: base.n(), invalid: check.invalid().clone(), zeros })
    }

    /// Whether a row belongs in a list.
    pub(crate) fn listed(&self, row: u64) -> bool {
        !self.invalid.contains(row) && !self.zeros.contains(row)
    }

    /// Whether every row belongs in a list.
    pub(crate) fn all_listed(&self) -> bool {
        self.invalid.is_empty() && self.zeros.is_empty()
    }

    /// Rows that belong in lists.
    pub(crate) fn stored(&self) -> u64 {
        self.n - self.invalid.len() - self.zeros.len()
    }

    pub(crate) fn skipped(&self) -> u64 {
        self.invalid.len()
    }

    pub(crate) fn zeros(&self) -> &RowSet {
        &self.zeros
    }
}

fn check_block(
    base: &Base,
    metric: Metric,
    start: u64,
    block: u64,
) -> Result<(RowCheck, RowSet), BuildError> {
    let dim = base.dim();
    let rows = block.min(base.n() - start) as usize;
    let mut values = vec![0f32; rows * dim];
    debug_assert!(values.len() <= BLOCK_VALUES.max(dim));
    base.read_f32(start, &mut values)?;
    let mut check = RowCheck::default();
    check_rows(&values, dim, start, &mut check);
    let mut zeros = RowSet::default();
    if metric == Metric::Cosine && check.zero_rows() > 0 {
        let kernels = Kernels::best();
        for (row, v) in (start..).zip(values.chunks_exact(dim)) {
            if kernels.dot(v, v) < MIN_SQUARED_NORM {
                zeros.insert(row);
            }
        }
    }
    Ok((check, zeros))
}
