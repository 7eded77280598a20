//! The tight bound of a survivor: the error of an estimate shrinks as the vectors align.
//!
//! The scan's half-width takes the error of `beta = <r, y> / (N Y)` to have the standard deviation
//! `kappa` whatever `beta` is; in truth it is `kappa sqrt(1 - beta²)`. With the estimate `b` of
//! `beta` and `w = epsilon kappa`, the values of `beta` that agree with `b` are those with
//!
//! ```text
//! |b - beta| <= w sqrt(1 - beta²)
//! u = (b + w sqrt(1 + w² - b²)) / (1 + w²)       the largest of them; 1 if b >= 1
//! lower bound = N² + Y² - 2 N Y u = estimate - 2 N Y (u - b)
//! ```
//!
//! It takes a root and two divisions, so it is for survivors of the scan. `N` is not stored. The
//! factors give it back, since `A_m = N² / g` turns `error² = 4 g² (m - A_m²/N²) / (P - 1)` into
//!
//! ```text
//! N² = g² m - e² (P - 1),      g = |rescale| / 2,  e = error / 2
//! ```
//!
//! That is a difference of two numbers about `1.5 P / m` times as large, so the rounding of the
//! factors matters only for vectors with almost nothing in the prefix; these keep the plain bound.
//! So do inner products (the factors hold `<c, r>` and `S_m(Rc)` only as a sum, and `b` needs them
//! apart) and the paper's estimator, whose error is another one.

use crate::metric::{Estimator, Metric};
use crate::scan::ListTerms;
use crate::sign::Factors;

/// Below this fraction of `g² m` a recovered `N²` is rounding error more than norm.
const RELIABLE: f64 = 1e-5;

/// Computes tight bounds for one index and one epsilon.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TightBound {
    applies: bool,
    prefix_dims: f64,
    other_dims: f64,
    epsilon: f64,
}

/// A vector as its factors and prefix sum show it.
struct View {
    /// Estimate of the distance.
    base: f64,
    /// Half-width of the plain bound.
    half: f64,
    /// `2 N Y`, estimated cosine, `w`, and what table rounding may move the cosine by; None where
    /// the tight bound does not apply.
    cosine: Option<(f64, f64, f64, f64)>,
    slack: f64,
}

impl TightBound {
    /// Bounds for codes of `m` of `padded` dims.
    pub fn new(
        padded: usize,
        m: usize,
        metric: Metric,
        estimator: Estimator,
        epsilon: f32,
    ) -> Self {
        Self {
            applies: metric == Metric::L2 && estimator == Estimator::PerVector,
            prefix_dims: m as f64,
            other_dims: padded as f64 - 1.0,
            epsilon: f64::from(epsilon),
        }
    }

    /// Lower bound of the distance, never below the scan's (but for rounding): `sum` is `S_m(Rq)`
    /// from the scan, `table_error` the query's.
    pub fn lower(&self, factors: Factors, sum: f32, list: &ListTerms, table_error: f32) -> f32 {
        let view = self.view(factors, sum, list, table_error);
        let Some((scale, b, w, rounding)) = view.cosine else {
            return (view.base - view.half) as f32;
        };
        (view.base - scale * (largest_cosine(b + rounding, w) - b) - view.slack) as f32
    }

    /// Upper bound of the distance, the twin of [`TightBound::lower`].
    pub fn upper(&self, factors: Factors, sum: f32, list: &ListTerms, table_error: f32) -> f32 {
        let view = self.view(factors, sum, list, table_error);
        let Some((scale, b, w, rounding)) = view.cosine else {
            return (view.base + view.half) as f32;
        };
        (view.base + scale * (largest_cosine(rounding - b, w) + b) + view.slack) as f32
    }

    fn view(&self, factors: Factors, sum: f32, list: &ListTerms, table_error: f32) -> View {
        let (add, rescale, error) =
            (f64::from(factors.add), f64::from(factors.rescale), f64::from(factors.error));
        let (y, slack) = (f64::from(list.y), f64::from(list.slack()));
        let table_error = f64::from(table_error);
        let base = rescale * f64::from(sum) + add + f64::from(list.term);
        let half = self.epsilon * error * y + rescale.abs() * table_error + slack;

        let (g, e) = (rescale.abs() / 2.0, error / 2.0);
        let largest = g * g * self.prefix_dims;
        let norm2 = largest - e * e * self.other_dims;
        let scale = 2.0 * norm2.max(0.0).sqrt() * y;
        let reliable = self.applies && norm2 > RELIABLE * largest && scale > 0.0;
        let cosine = reliable.then(|| {
            let b = (norm2 + y * y - base) / scale;
            let w = 2.0 * self.epsilon * e * y / scale;
            (scale, b, w, 2.0 * g * table_error / scale)
        });
        View { base, half, cosine, slack }
    }
}

/// The largest `beta` in [-1, 1] with `|b - beta| <= w sqrt(1 - beta²)`; where rounding leaves
/// none, the nearest.
fn largest_cosine(b: f64, w: f64) -> f64 {
    if b >= 1.0 {
        return 1.0;
    }
    let square = 1.0 + w * w;
    ((b + w * (square - b * b).max(0.0).sqrt()) / square).max(-1.0)
}
