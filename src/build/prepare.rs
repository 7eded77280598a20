//! From a row as it was given to the vector the codes see: unit length under cosine, then moved by
//! the mean. Queries take the same way, so distances between the two are unchanged.

use dataset::{MIN_SQUARED_NORM, precise_squared_norm};
use simd::Kernels;

use crate::config::Metric;

/// The length of a row, however short.
pub(crate) fn length(row: &[f32]) -> f64 {
    let squared = Kernels::best().dot(row, row);
    if squared < MIN_SQUARED_NORM {
        return precise_squared_norm(row).sqrt();
    }
    f64::from(squared).sqrt()
}

/// Scales `row` to unit length; a zero row stays zero.
pub(crate) fn normalise(row: &mut [f32]) {
    let norm = length(row);
    let scale = (1.0 / norm) as f32;
    if scale.is_normal() {
        row.iter_mut().for_each(|v| *v *= scale);
    } else if norm > 0.0 {
        row.iter_mut().for_each(|v| *v = (f64::from(*v) / norm) as f32);
    }
}

/// Prepares a row of the base in place.
pub(crate) fn prepare(row: &mut [f32], metric: Metric, mean: &[f32]) {
    if metric == Metric::Cosine {
        normalise(row);
    }
    row.iter_mut().zip(mean).for_each(|(v, m)| *v -= m);
}
