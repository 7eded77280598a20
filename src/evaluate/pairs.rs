//! A vector and a query as a prefix of the sign code sees them, and the three bounds on their
//! inner product.
//!
//! ```text
//! r = R(x - c), N = |r|     y = R(q - c), Y = |y|     A_m = Σ_{j<m} |r_j|    S_m = Σ_{j<m} sign(r_j) y_j
//!
//!             estimate of <r,y>         upper end
//! paper       N²/A · P/m · S_m          estimate + ε N Y / √m                       (Theorem 3.1)
//! per-vector  N²/A_m · S_m              estimate + ε σ,   σ = N²/A_m √((m - A_m²/N²)/(P-1)) Y
//! tight       N²/A_m · S_m              N Y (b + w√(1+w²-b²))/(1+w²),   b = estimate/(N Y), w = ε σ/(N Y)
//! ```
//! Everything in f64 from the definitions, sharing no code with the kernels that search: what is
//! measured here is the mathematics, not its rounding.

use codec::Rotation;
use dataset::{Base, DatasetError};
use serde::Serialize;
use simd::Kernels;

use crate::build::prepare::normalise;
use crate::coarse::Point;
use crate::store::parts::Parts;
use crate::{Index, Metric};

/// Which bound of the inner product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BoundKind {
    /// Equation 2 and Theorem 3.1: one width for all vectors.
    Paper,
    /// The standard deviation of each vector's own estimate.
    PerVector,
    /// The same, given that the error shrinks as the cosine nears 1.
    Tight,
}

impl BoundKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Paper, Self::PerVector, Self::Tight];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::PerVector => "per-vector",
            Self::Tight => "tight",
        }
    }
}

/// What a prefix of m dims holds of a pair.
#[derive(Clone, Copy, Debug)]
struct Prefix {
    dims: f64,
    /// `A_m`.
    magnitude: f64,
    /// `S_m(y)`.
    sum: f64,
}

/// A residual and a query's residual, rotated.
#[derive(Clone, Debug)]
pub struct Pair {
    norm: f64,
    query_norm: f64,
    product: f64,
    /// `A`.
    magnitude: f64,
    padded: f64,
    prefixes: Vec<Prefix>,
}

impl Pair {
    /// The pair of two rotated vectors of the same length, seen through prefixes of these lengths.
    #[must_use]
    pub fn new(residual: &[f32], query: &[f32], prefix_dims: &[usize]) -> Self {
        let (mut magnitude, mut sum, mut product) = (0.0, 0.0, 0.0);
        let (mut norm, mut query_norm) = (0.0, 0.0);
        let mut prefixes = Vec::with_capacity(prefix_dims.len());
        let wanted = |dims: usize, magnitude, sum, prefixes: &mut Vec<(usize, Prefix)>| {
            let places = prefix_dims.iter().enumerate().filter(|&(_, &m)| m == dims);
            prefixes.extend(places.map(|(i, _)| (i, Prefix { dims: dims as f64, magnitude, sum })));
        };
        for (j, (&r, &y)) in residual.iter().zip(query).enumerate() {
            let (r, y) = (f64::from(r), f64::from(y));
            magnitude += r.abs();
            sum += if r < 0.0 { -y } else { y };
            product += r * y;
            norm += r * r;
            query_norm += y * y;
            wanted(j + 1, magnitude, sum, &mut prefixes);
        }
        prefixes.sort_by_key(|&(i, _)| i);
        Self {
            norm: norm.sqrt(),
            query_norm: query_norm.sqrt(),
            product,
            magnitude,
            padded: residual.len() as f64,
            prefixes: prefixes.into_iter().map(|(_, prefix)| prefix).collect(),
        }
    }

    /// Squared distance between the two.
    #[must_use]
    pub fn distance(&self) -> f64 {
        self.norm.powi(2) + self.query_norm.powi(2) - 2.0 * self.product
    }

    /// The least the squared distance is taken to be, from a prefix (by its place in the list).
    #[must_use]
    pub fn lower_bound(&self, prefix: usize, bound: BoundKind, epsilon: f64) -> f64 {
        let (_, upper) = self.cosine(prefix, bound, epsilon);
        let scale = self.norm * self.query_norm;
        self.norm.powi(2) + self.query_norm.powi(2) - 2.0 * scale * upper
    }

    /// Estimated minus true cosine.
    #[must_use]
    pub fn error(&self, prefix: usize, bound: BoundKind) -> f64 {
        self.cosine(prefix, bound, 0.0).0 - self.true_cosine()
    }

    /// Whether the true cosine is above the bound: the vector can be lost.
    #[must_use]
    pub fn missed(&self, prefix: usize, bound: BoundKind, epsilon: f64) -> bool {
        self.true_cosine() > self.cosine(prefix, bound, epsilon).1
    }

    fn true_cosine(&self) -> f64 {
        let scale = self.norm * self.query_norm;
        if scale == 0.0 { 0.0 } else { self.product / scale }
    }

    /// Estimate and upper end of the cosine; nothing to estimate for a vector on its centroid.
    fn cosine(&self, prefix: usize, bound: BoundKind, epsilon: f64) -> (f64, f64) {
        let Prefix { dims, magnitude, sum } = self.prefixes[prefix];
        let scale = self.norm * self.query_norm;
        if scale == 0.0 || magnitude == 0.0 {
            return (0.0, if scale == 0.0 { 0.0 } else { 1.0 });
        }
        let squared = self.norm.powi(2);
        if bound == BoundKind::Paper {
            let estimate = squared / self.magnitude * self.padded / dims * sum / scale;
            return (estimate, estimate + epsilon / dims.sqrt());
        }
        let b = squared / magnitude * sum / scale;
        let spread = (dims - magnitude.powi(2) / squared).max(0.0) / (self.padded - 1.0).max(1.0);
        let w = epsilon * self.norm / magnitude * spread.sqrt();
        if bound == BoundKind::PerVector {
            return (b, b + w);
        }
        // Beyond b = 1 the root belongs to the other end.
        let upper = if b >= 1.0 {
            1.0
        } else {
            (b + w * (1.0 + w * w - b * b).max(0.0).sqrt()) / (1.0 + w * w)
        };
        (b, upper.clamp(-1.0, 1.0))
    }
}

/// Unit vectors of `dim` values with the inner product `beta`, under `trials` independent random
/// rotations: what Appendix A.4 looks at.
#[must_use]
pub fn synthetic_pairs(
    dim: usize,
    beta: f64,
    trials: u64,
    prefix_dims: &[usize],
    seed: u64,
) -> Vec<Pair> {
    let padded = dim.next_multiple_of(64);
    // Two orthogonal directions with no structure of their own: rotated unit vectors.
    let base = Rotation::new(padded, seed ^ 0x5eed);
    let direction = |axis: usize| {
        let (mut unit, mut out) = (vec![0.0; padded], vec![0.0; padded]);
        unit[axis] = 1.0;
        base.apply(&unit, &mut out);
        out
    };
    let (object, other) = (direction(0), direction(1));
    let across = (1.0 - beta * beta).sqrt();
    let mix = |(o, t): (&f32, &f32)| (beta * f64::from(*o) + across * f64::from(*t)) as f32;
    let query: Vec<f32> = object.iter().zip(&other).map(mix).collect();
    let (mut r, mut y) = (vec![0.0; padded], vec![0.0; padded]);
    (0..trials)
        .map(|trial| {
            let rotation = Rotation::new(padded, seed.wrapping_add(1).wrapping_add(trial));
            rotation.apply(&object, &mut r);
            rotation.apply(&query, &mut y);
            Pair::new(&r, &y, prefix_dims)
        })
        .collect()
}

/// The pairs of each query with its `k` rows of `ids` (row numbers of `base`, `k` a query), as the
/// index sees them: rotated, relative to the centroid nearest to the row.
///
/// # Errors
/// When the base cannot be read.
pub fn neighbour_pairs(
    index: &Index,
    base: &Base,
    queries: &[f32],
    ids: &[u64],
    k: usize,
    prefix_dims: &[usize],
) -> Result<Vec<Pair>, DatasetError> {
    let parts = index.parts();
    let (dim, padded) = (parts.shape.dim, parts.shape.padded_dim);
    let (mut rows, mut order) = (vec![0.0; k * dim], Vec::with_capacity(k));
    let (mut y, mut x) = (vec![0.0; padded], vec![0.0; padded]);
    let mut pairs = Vec::with_capacity(ids.len());
    for (query, ids) in queries.chunks_exact(dim).zip(ids.chunks_exact(k)) {
        order.clear();
        order.extend(0..k);
        order.sort_unstable_by_key(|&i| ids[i]);
        let sorted: Vec<u64> = order.iter().map(|&i| ids[i]).collect();
        base.gather_f32(&sorted, &mut rows)?;
        let mut place = vec![0; k];
        order.iter().enumerate().for_each(|(at, &i)| place[i] = at);
        rotate(parts, query, &mut y);
        for &at in &place {
            rotate(parts, &rows[at * dim..(at + 1) * dim], &mut x);
            let centroid = nearest_centroid(parts, &x);
            let less =
                |v: &[f32]| -> Vec<f32> { v.iter().zip(&centroid).map(|(v, c)| v - c).collect() };
            pairs.push(Pair::new(&less(&x), &less(&y), prefix_dims));
        }
    }
    Ok(pairs)
}

/// A row or a query as it is before its centroid is subtracted.
fn rotate(parts: &Parts, row: &[f32], out: &mut [f32]) {
    let mut row = row.to_vec();
    if parts.shape.metric == Metric::Cosine {
        normalise(&mut row);
    }
    row.iter_mut().zip(&parts.mean).for_each(|(v, m)| *v -= m);
    parts.rotation.apply(&row, out);
}

fn nearest_centroid(parts: &Parts, x: &[f32]) -> Vec<f32> {
    let (kernels, point) = (Kernels::best(), Point::of(x));
    let distance = |&list: &u32| parts.centroids.distance(kernels, point, list);
    let lists = 0..parts.shape.nlist as u32;
    let nearest = lists.min_by(|a, b| distance(a).total_cmp(&distance(b)));
    let mut centroid = vec![0f32; x.len()];
    if let Some(list) = nearest {
        parts.centroids.read(list, &mut centroid);
    }
    centroid
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Miss rates at epsilon 1.9 of β = 0.5 and 0.9 (from 2·10⁵ Haar rotations).
    #[test]
    fn the_rates_of_appendix_a4_come_out_within_sampling_error() {
        let trials = 20_000;
        for (beta, expected) in [
            (0.5, [[0.0018, 0.0142, 0.0287], [0.0217, 0.0143, 0.0289]]),
            (0.9, [[0.0, 0.0, 0.0286], [0.0021, 0.0, 0.0287]]),
        ] {
            let pairs = synthetic_pairs(768, beta, trials, &[768, 384], 7);
            for (prefix, rates) in expected.iter().enumerate() {
                for (kind, &rate) in BoundKind::ALL.into_iter().zip(rates) {
                    let misses = pairs.iter().filter(|p| p.missed(prefix, kind, 1.9)).count();
                    let mean = rate * trials as f64;
                    let slack = 4.0 * mean.sqrt() + 4.0;
                    assert!(
                        (misses as f64 - mean).abs() < slack,
                        "{beta} {prefix} {kind:?} {misses}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_estimates_are_unbiased_and_the_whole_is_the_distance() {
        let pairs = synthetic_pairs(128, 0.5, 4000, &[128, 64], 3);
        for (prefix, most) in [(0, 0.01), (1, 0.02)] {
            let mean = |kind| {
                pairs.iter().map(|p| p.error(prefix, kind)).sum::<f64>() / pairs.len() as f64
            };
            assert!(BoundKind::ALL.into_iter().all(|kind| mean(kind).abs() < most));
        }
        assert!(pairs.iter().all(|p| (p.distance() - 1.0).abs() < 1e-4));
    }

    #[test]
    fn a_vector_on_its_centroid_is_never_missed() {
        let pair = Pair::new(&[0.0; 64], &[0.5; 64], &[64, 32]);
        for kind in BoundKind::ALL {
            assert!(!pair.missed(1, kind, 1.9));
            assert_eq!(pair.lower_bound(1, kind, 1.9), pair.distance());
        }
    }
}
