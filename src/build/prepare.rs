//! From a row as it was given to the vector the codes see: unit length under cosine, then moved by
//! the mean. Queries take the same way, so distances between the two are unchanged.

use simd::Kernels;

use crate::config::Metric;

/// Scales `row` to unit length; a zero row stays zero. Returns its length.
pub(crate) fn normalise(row: &mut [f32]) -> f32 {
    let norm = f64::from(Kernels::best().dot(row, row)).sqrt();
    if norm > 0.0 {
        let scale = (1.0 / norm) as f32;
        row.iter_mut().for_each(|v| *v *= scale);
    }
    norm as f32
}

/// Prepares a row of the base in place.
pub(crate) fn prepare(row: &mut [f32], metric: Metric, mean: &[f32]) {
    if metric == Metric::Cosine {
        normalise(row);
    }
    row.iter_mut().zip(mean).for_each(|(v, m)| *v -= m);
}
