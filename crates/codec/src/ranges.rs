//! The ranges of scalar quantisation: for each dim of the rotated residuals, where levels start and
//! how far apart they are.
//!
//! ```text
//! r^_j = low_j + step_j u_j,    u_j = nearest of 0 ..= 2^bits - 1       (values beyond are clamped)
//! file:  | low, f32 × P | step, f32 × P |                                       little endian
//! ```
//!
//! A range from the least to the largest value wastes levels on the tails, much at 4 bits: for a
//! Gaussian the best 4-bit range is about ±2.5 standard deviations and errs 2.4 times less (in
//! squares) than one of ±4.3. So the range of a dim is its extremes drawn in towards its mean, by
//! the factor that errs least on the sample. Drawing in nothing is among the factors tried.

use crate::sums::sum_each;

/// Each factor tried is this part of the one before.
const SHRINK: f32 = 0.93;
/// The most factors tried; the last is about 0.1.
const FACTORS: u32 = 32;
/// The error over the factors has one valley: trying ends where it exceeds the least by this much.
const HOPELESS: f64 = 1.5;

/// Adding it leaves the integer nearest to a small float in the low bits of the sum.
const ROUND: f32 = 8_388_608.0;

/// The levels of one dim.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScalarRange {
    /// What level 0 stands for.
    pub low: f32,
    /// Distance between levels; 0 where all values are equal.
    pub step: f32,
}

impl ScalarRange {
    /// The range that errs least over a sample of a dim's values, at `bits` bits.
    pub fn fit(bits: u32, values: &[f32]) -> Self {
        let least = values.iter().copied().fold(f32::INFINITY, f32::min);
        let largest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if values.is_empty() || least >= largest {
            return Self { low: if values.is_empty() { 0.0 } else { least }, step: 0.0 };
        }
        let top = top_level(bits);
        let mean = ((sum_each(values, |v| v) / values.len() as f64) as f32).clamp(least, largest);
        let mut best = (f64::INFINITY, Self::default());
        let mut factor = 1.0;
        for _ in 0..FACTORS {
            let (below, above) = (factor * (mean - least), factor * (largest - mean));
            let range = Self { low: mean - below, step: (below + above) / top };
            let error = range.error(top, values);
            if error < best.0 {
                best = (error, range);
            } else if error > HOPELESS * best.0 {
                break;
            }
            factor *= SHRINK;
        }
        best.1
    }

    /// The sum of squared errors over `values`.
    fn error(self, top: f32, values: &[f32]) -> f64 {
        let (low, step) = (f64::from(self.low), f64::from(self.step));
        let inverse = f64::from(self.inverse());
        sum_each(values, |v| {
            let level = nearest(((v - low) * inverse) as f32, top);
            (v - (low + step * f64::from(level - ROUND))).powi(2)
        })
    }

    /// Levels per unit; 0 for a step too small to divide by, so that every value is level 0.
    pub(crate) fn inverse(self) -> f32 {
        if self.step >= f32::MIN_POSITIVE { 1.0 / self.step } else { 0.0 }
    }

    /// The level nearest to `value` and what it stands for.
    pub(crate) fn quantise(self, inverse: f32, top: f32, value: f32) -> (u8, f32) {
        let shifted = nearest((value - self.low) * inverse, top);
        (shifted.to_bits() as u8, self.low + self.step * (shifted - ROUND))
    }
}

/// The largest level of `bits` bits.
pub(crate) fn top_level(bits: u32) -> f32 {
    ((1_u32 << bits) - 1) as f32
}

/// The whole number in `0..=top` nearest to `x`, raised by [`ROUND`].
fn nearest(x: f32, top: f32) -> f32 {
    let above = if x > 0.0 { x } else { 0.0 };
    (if above < top { above } else { top }) + ROUND
}

/// The ranges of all dims, as an open index holds them.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalarRanges {
    pub(crate) low: Vec<f32>,
    pub(crate) step: Vec<f32>,
}

/// Why bytes are no ranges.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScalarRangesError {
    /// The bytes are not 8 for each dim.
    #[error("ranges of {dims} dims take {expected} bytes, found {found}")]
    Size {
        /// Padded dim.
        dims: usize,
        /// Bytes that many dims take.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// A range that no build writes.
    #[error(
        "dim {dim} has levels from {low} in steps of {step}: both must be finite, no step below 0"
    )]
    Range {
        /// The dim.
        dim: usize,
        /// What level 0 stands for.
        low: f32,
        /// Distance between levels.
        step: f32,
    },
}

impl ScalarRanges {
    /// Bytes of the ranges of `padded` dims, in a file and in memory.
    pub const fn bytes_for(padded: usize) -> usize {
        8 * padded
    }

    /// The ranges of all dims, in their order.
    pub fn new(ranges: &[ScalarRange]) -> Self {
        Self {
            low: ranges.iter().map(|range| range.low).collect(),
            step: ranges.iter().map(|range| range.step).collect(),
        }
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// When there are not 8 bytes for each of `padded` dims, or values are not finite, or a step is
    /// negative or so large that the last of 256 levels overflows.
    pub fn from_bytes(padded: usize, bytes: &[u8]) -> Result<Self, ScalarRangesError> {
        let expected = Self::bytes_for(padded);
        if bytes.len() != expected {
            return Err(ScalarRangesError::Size { dims: padded, expected, found: bytes.len() });
        }
        let (low, step) = bytes.split_at(4 * padded);
        let floats = |bytes: &[u8]| -> Vec<f32> {
            bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
        };
        let ranges = Self { low: floats(low), step: floats(step) };
        for (dim, (&low, &step)) in ranges.low.iter().zip(&ranges.step).enumerate() {
            if !(step >= 0.0 && low.is_finite() && (low + step * top_level(8)).is_finite()) {
                return Err(ScalarRangesError::Range { dim, low, step });
            }
        }
        Ok(ranges)
    }

    /// The ranges as bytes: first where levels start, then the steps.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.low.iter().chain(&self.step).flat_map(|value| value.to_le_bytes()).collect()
    }

    /// The number of dims.
    pub fn padded(&self) -> usize {
        self.low.len()
    }

    /// The range of a dim.
    pub(crate) fn range(&self, dim: usize) -> ScalarRange {
        ScalarRange { low: self.low[dim], step: self.step[dim] }
    }
}
