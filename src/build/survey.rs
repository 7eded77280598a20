//! First look at the base: which rows are invalid, which are zero.
//!
//! One streaming pass before anything expensive, so that a bad row is named before hours of
//! training. 8-bit rows cannot be invalid and are only read when zero rows matter (cosine).

use dataset::{Base, Dtype, MIN_NORM, RowCheck, RowSet, check_rows, precise_squared_norm};
use rayon::prelude::*;

use crate::config::{Metric, OnInvalid};
use crate::error::BuildError;

use super::Watch;
use super::waves::Waves;

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
        waves: Waves,
        pool: &rayon::ThreadPool,
        watch: &Watch<'_>,
    ) -> Result<Self, BuildError> {
        let integer = matches!(base.dtype(), Dtype::U8 | Dtype::I8);
        if integer && metric != Metric::Cosine {
            return Ok(Self { n: base.n(), ..Self::default() });
        }
        let mut check = RowCheck::default();
        let mut zeros = RowSet::default();
        let (dim, block) = (base.dim(), waves.block_rows);
        waves.each(base, 0..base.n(), |start, values| {
            watch.update("check", start, base.n())?;
            let found: Vec<(RowCheck, RowSet)> = pool.install(|| {
                let blocks = values.par_chunks(block * dim).enumerate();
                blocks
                    .map(|(i, values)| check_block(values, dim, metric, start + (i * block) as u64))
                    .collect()
            });
            for (c, z) in &found {
                check.merge(c);
                zeros.extend(z.iter());
            }
            Ok(())
        })?;
        watch.update("check", base.n(), base.n())?;
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

    /// For the checkpoint: the length of the first set, then both.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let (invalid, zeros) = (self.invalid.to_bytes(), self.zeros.to_bytes());
        let mut bytes = (invalid.len() as u64).to_le_bytes().to_vec();
        bytes.extend(invalid);
        bytes.extend(zeros);
        bytes
    }

    /// What [`to_bytes`](Self::to_bytes) gave, of a base of `n` rows; `None` when it is damaged.
    pub(crate) fn from_bytes(n: u64, bytes: &[u8]) -> Option<Self> {
        let (length, sets) = bytes.split_first_chunk::<8>()?;
        let (invalid, zeros) = sets.split_at_checked(u64::from_le_bytes(*length) as usize)?;
        let (invalid, zeros) = (RowSet::from_bytes(invalid).ok()?, RowSet::from_bytes(zeros).ok()?);
        let apart = zeros.iter().all(|row| row < n && !invalid.contains(row));
        (apart && invalid.iter().all(|row| row < n)).then_some(Self { n, invalid, zeros })
    }
}

fn check_block(values: &[f32], dim: usize, metric: Metric, start: u64) -> (RowCheck, RowSet) {
    let mut check = RowCheck::default();
    check_rows(values, dim, start, &mut check);
    let mut zeros = RowSet::default();
    if metric == Metric::Cosine && check.zero_rows() > 0 {
        for (row, v) in (start..).zip(values.chunks_exact(dim)) {
            if precise_squared_norm(v) < f64::from(MIN_NORM).powi(2) {
                zeros.insert(row);
            }
        }
    }
    (check, zeros)
}
