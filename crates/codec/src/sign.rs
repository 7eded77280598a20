//! The sign code of a rotated residual, and the three factors that turn its prefix into a bound.
//!
//! With `A_m` the sum of `|r_j|` over the prefix and `g = N² / A_m`:
//!
//! ```text
//! <r, y>  is about  g S_m(y),   S_m(y) = S_m(Rq) - S_m(Rc)
//!            add                      rescale    error
//! L2     N² + 2 g S_m(Rc)             -2 g       2 g sqrt((m - A_m²/N²) / (P - 1))
//! IP     -<Rc, r> + g S_m(Rc)         -g           g sqrt((m - A_m²/N²) / (P - 1))
//!
//! estimate    = add + rescale S_m(Rq) + (Y² or -<q, c>)
//! lower bound = estimate - epsilon error Y
//! ```
//!
//! All that depends on the centroid sits in `add`, so one table of `Rq` serves every list.

use crate::metric::{Estimator, Metric};
use crate::sums::{signed_sum, sum_each, sum_pairs};

/// Stands for "the prefix says nothing": wider than any distance, yet finite, so that a product
/// with zero stays zero and no NaN can arise.
const NO_INFORMATION: f32 = 1e30;

/// A prefix whose `A_m` is below this share of the norm says nothing either; it also keeps the
/// factors far from overflow.
const LEAST_SHARE: f64 = 1e-9;

/// What is kept in memory beside the prefix of a sign code.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Factors {
    /// The part of the estimate that no query changes, rounded down.
    pub add: f32,
    /// Multiplies `S_m(Rq)`; never positive.
    pub rescale: f32,
    /// Multiplies `epsilon Y`; never negative, rounded up.
    pub error: f32,
}

/// Writes the signs of `r`, one bit per dimension, least significant bit first; zero counts as
/// positive, a positive sign is a set bit.
///
/// # Panics
/// If `code` does not hold exactly one bit per dimension.
pub fn sign_code(r: &[f32], code: &mut [u8]) {
    assert_eq!(r.len(), code.len() * 8, "one bit of code per dimension");
    let (chunks, _) = r.as_chunks::<8>();
    for (byte, chunk) in code.iter_mut().zip(chunks) {
        *byte = (0..8).fold(0, |bits, i| bits | (u8::from(chunk[i] >= 0.0) << i));
    }
}

/// The prefix factors of the rotated residual `r` (all `P` dims) in the list of the rotated
/// centroid `c`, for a prefix of `m` dims. A zero residual has zero factors.
///
/// # Panics
/// If `r` and `c` differ in length or `m` exceeds it.
pub fn prefix_factors(
    r: &[f32],
    c: &[f32],
    m: usize,
    metric: Metric,
    estimator: Estimator,
) -> Factors {
    let norm2 = sum_each(r, |r| r * r);
    if norm2 == 0.0 {
        return Factors::default();
    }
    let fixed = match metric {
        Metric::L2 => norm2,
        Metric::Ip => -sum_pairs(c, r, |c, r| c * r),
    };
    let Some((g, error)) = gain_and_error(r, m, norm2, estimator) else {
        return Factors { add: round_down(fixed), rescale: 0.0, error: NO_INFORMATION };
    };
    let prefix_sum = signed_sum(&r[..m], &c[..m]);
    let weight = match metric {
        Metric::L2 => 2.0,
        Metric::Ip => 1.0,
    };
    Factors {
        add: round_down(fixed + weight * g * prefix_sum),
        rescale: (-weight * g) as f32,
        error: round_up(weight * error).min(NO_INFORMATION),
    }
}

/// The multiplier `g` of `S_m(y)`, and the half-width of the bound on `<r, y>` per `epsilon Y`.
/// None if the estimator cannot be formed because nothing of the vector lies in its sum.
fn gain_and_error(r: &[f32], m: usize, norm2: f64, estimator: Estimator) -> Option<(f64, f64)> {
    let (dims, prefix_dims) = (r.len() as f64, m as f64);
    let seen = match estimator {
        Estimator::PerVector => &r[..m],
        Estimator::Paper => r,
    };
    let abs_sum = sum_each(seen, f64::abs);
    if abs_sum <= LEAST_SHARE * norm2.sqrt() {
        return None;
    }
    Some(match estimator {
        Estimator::PerVector => {
            let g = norm2 / abs_sum;
            let spread = (prefix_dims - abs_sum * abs_sum / norm2).max(0.0);
            (g, g * (spread / (dims - 1.0)).sqrt())
        }
        Estimator::Paper => {
            (norm2 / abs_sum * dims / prefix_dims, norm2.sqrt() / prefix_dims.sqrt())
        }
    })
}

fn round_down(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) > value { nearest.next_down() } else { nearest }
}

fn round_up(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) < value { nearest.next_up() } else { nearest }
}
