//! Rows that arithmetic could not survive: NaN, infinities, norms whose squares overflow.
//!
//! ```text
//! s = Σ x²   in f32, 16 lanes: one pass, decides all ordinary rows
//!     1.2e-38 ≤ s ≤ 1e30   valid
//!     otherwise            look again in f64: non-finite, overflow, or zero
//! ```

use crate::rowset::RowSet;

/// Largest squared norm of a valid row. f32 holds 3.4e38: what is left is a factor of 3e8 for
/// sums over dimensions, distances between two such rows (4 times this) and their scalings.
pub const MAX_SQUARED_NORM: f32 = 1e30;

/// Sums of squares below this have lost bits of f32, and are taken in f64.
pub const MIN_SQUARED_NORM: f32 = f32::MIN_POSITIVE;

/// The least norm of a row that does not count as zero: values of shorter ones have lost bits
/// themselves.
pub const MIN_NORM: f32 = f32::MIN_POSITIVE;

/// One row that cannot be indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invalid {
    /// Row number in the base.
    pub row: u64,
    /// What is wrong with it.
    pub reason: InvalidReason,
}

/// Why a row cannot be indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidReason {
    /// A component is NaN or infinite.
    NonFinite,
    /// The squared norm exceeds [`MAX_SQUARED_NORM`].
    NormOverflow,
}

impl std::fmt::Display for InvalidReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NonFinite => f.write_str("a component is NaN or infinite"),
            Self::NormOverflow => {
                write!(f, "the squared norm exceeds {MAX_SQUARED_NORM:e}, beyond f32 arithmetic")
            }
        }
    }
}

/// What [`check_rows`] found so far. One per thread, [merged](Self::merge) at the end: the
/// result does not depend on the order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowCheck {
    first: Option<Invalid>,
    invalid: RowSet,
    zero_rows: u64,
    max_norm: f32,
}

impl RowCheck {
    /// The invalid row with the smallest number.
    pub fn first(&self) -> Option<Invalid> {
        self.first
    }

    /// All invalid rows.
    pub fn invalid(&self) -> &RowSet {
        &self.invalid
    }

    /// Number of valid rows whose norm is below [`MIN_NORM`].
    pub fn zero_rows(&self) -> u64 {
        self.zero_rows
    }

    /// Largest Euclidean norm among the valid rows; 0 without any.
    pub fn max_norm(&self) -> f32 {
        self.max_norm
    }

    /// Add what another check found in other rows.
    pub fn merge(&mut self, other: &Self) {
        self.keep_first(other.first);
        self.invalid.extend(other.invalid.iter());
        self.zero_rows += other.zero_rows;
        self.max_norm = self.max_norm.max(other.max_norm);
    }

    fn reject(&mut self, invalid: Invalid) {
        self.keep_first(Some(invalid));
        self.invalid.insert(invalid.row);
    }

    fn keep_first(&mut self, candidate: Option<Invalid>) {
        self.first = match (self.first, candidate) {
            (Some(a), Some(b)) => Some(if b.row < a.row { b } else { a }),
            (a, b) => a.or(b),
        };
    }
}

/// Check consecutive rows, the first of which has number `start`, and add the findings to `out`.
///
/// # Panics
/// If `rows` does not hold whole rows of `dim` values.
pub fn check_rows(rows: &[f32], dim: usize, start: u64, out: &mut RowCheck) {
    assert!(rows.len().is_multiple_of(dim), "{} values are no rows of {dim}", rows.len());
    for (number, row) in (start..).zip(rows.chunks_exact(dim)) {
        let mut squared = f64::from(squared_norm(row));
        if !(f64::from(MIN_SQUARED_NORM)..=f64::from(MAX_SQUARED_NORM)).contains(&squared) {
            if !row.iter().all(|v| v.is_finite()) {
                out.reject(Invalid { row: number, reason: InvalidReason::NonFinite });
                continue;
            }
            squared = precise_squared_norm(row);
        }
        if squared > f64::from(MAX_SQUARED_NORM) {
            out.reject(Invalid { row: number, reason: InvalidReason::NormOverflow });
            continue;
        }
        out.zero_rows += u64::from(squared < f64::from(MIN_NORM).powi(2));
        out.max_norm = out.max_norm.max(squared.sqrt() as f32);
    }
}

/// The sum of squares, which no f32 under- or overflows.
#[must_use]
pub fn precise_squared_norm(row: &[f32]) -> f64 {
    row.iter().map(|&v| f64::from(v) * f64::from(v)).sum()
}

/// Sum of squares in 16 lanes, so that it vectorises; NaN and infinities come through.
fn squared_norm(row: &[f32]) -> f32 {
    let (chunks, rest) = row.as_chunks::<16>();
    let mut lanes = [0.0f32; 16];
    for chunk in chunks {
        for (lane, v) in lanes.iter_mut().zip(chunk) {
            *lane += v * v;
        }
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|v| v * v).sum::<f32>()
}
