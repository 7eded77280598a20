//! Screening by matrix products with a proven rounding bound.
//!
//! To find the rows `x` nearest to `q` among many, move the origin and drop what is the same for
//! every `x`:
//!
//! ```text
//! q' = q - o,  x' = x - o                       o: any point, the nearer to the data the better
//! |q - x|² = |q'|² - 2 (<q', x'> - |x'|²/2)     so the nearest x has the largest
//! closeness(q, x) = <q', x'> - |x'|²/2          one entry of a product minus one bias per x
//! ```
//!
//! In f32 the closeness is off by at most [`slack`]: a product of `dim` terms is off by at most
//! `dim · u · |q'||x'|` in any order of summation (u = 2⁻²⁴), and the other roundings add a few u.
//! Hence: an x whose f32 closeness is more than two slacks below the largest one cannot be the
//! nearest. What remains is a handful of rows, which the caller compares exactly. The origin matters
//! for data far from zero: with all values near 1000 the bound around the zero origin is wider than
//! the distances themselves, and every row would remain.

use std::cmp::Ordering;

use simd::Kernels;

/// Unit roundoff of f32.
pub(crate) const UNIT: f64 = 1.0 / (1u64 << 24) as f64;

/// Values compared before the scan looks at the outcome.
const CHUNK: usize = 32;

/// Largest possible difference between a closeness computed in f32 and the true one, for
/// `|q'| = query_norm` and `|x'| ≤ row_norm`.
///
/// `dim + 16` instead of `dim` covers the rounding of q', x', the bias and the final subtraction
/// and the terms of second order; the last term covers underflow. Infinite where f32 may overflow.
pub(crate) fn slack(dim: usize, query_norm: f64, row_norm: f64) -> f64 {
    let scale = query_norm * row_norm + row_norm * row_norm;
    if scale > f64::from(f32::MAX) / 4.0 {
        return f64::INFINITY;
    }
    let gamma = (dim as f64 + 16.0) * UNIT * 1.01;
    gamma * scale + dim as f64 * f64::from(f32::MIN_POSITIVE)
}

/// `out = row - origin`; returns `|out|²` in f64.
pub(crate) fn shift(row: &[f32], origin: &[f32], out: &mut [f32]) -> f64 {
    for ((o, x), c) in out.iter_mut().zip(row).zip(origin) {
        *o = x - c;
    }
    norm2(out)
}

/// `out = row - origin`; returns a number not below `|out|`. Faster than [`shift`].
pub(crate) fn shift_fast(row: &[f32], origin: &[f32], out: &mut [f32], kernels: &Kernels) -> f64 {
    for ((o, x), c) in out.iter_mut().zip(row).zip(origin) {
        *o = x - c;
    }
    // The f32 sum of squares is off by at most gamma of itself, and by what underflows.
    let gamma = (out.len() as f64 + 2.0) * UNIT * 1.01;
    let tiny = out.len() as f64 * f64::from(f32::MIN_POSITIVE);
    (f64::from(kernels.dot(out, out)) * (1.0 + 2.0 * gamma) + tiny).sqrt()
}

/// Squared norm in f64, in a fixed order of eight lanes.
pub(crate) fn norm2(row: &[f32]) -> f64 {
    sum_of(row, row, |a, b| f64::from(a) * f64::from(b))
}

/// Sum of `term(a_i, b_i)` in f64, in a fixed order of eight lanes.
pub(crate) fn sum_of(a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f64) -> f64 {
    let mut lanes = [0f64; 8];
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    for (x, y) in a8.iter().zip(b8) {
        for l in 0..8 {
            lanes[l] += term(x[l], y[l]);
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(&x, &y)| term(x, y)).sum();
    lanes.iter().sum::<f64>() + rest
}

/// Mean of the rows, in f64 rounded to f32. Zero without rows; where a mean is not finite, 0.
pub(crate) fn mean(rows: &[f32], dim: usize) -> Vec<f32> {
    let mut sums = vec![0f64; dim];
    for row in rows.chunks_exact(dim) {
        for (s, x) in sums.iter_mut().zip(row) {
            *s += f64::from(*x);
        }
    }
    let n = (rows.len() / dim).max(1) as f64;
    sums.iter().map(|s| (s / n) as f32).map(|m| if m.is_finite() { m } else { 0.0 }).collect()
}

/// The largest `products[j] - bias[j]`; NaN entries are passed over.
pub(crate) fn largest(products: &[f32], bias: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; 16];
    let (p16, p_rest) = products.as_chunks::<16>();
    let (b16, b_rest) = bias.as_chunks::<16>();
    for (p, b) in p16.iter().zip(b16) {
        for l in 0..16 {
            let v = p[l] - b[l];
            lanes[l] = if v > lanes[l] { v } else { lanes[l] };
        }
    }
    let rest = p_rest.iter().zip(b_rest).map(|(p, b)| p - b);
    lanes.into_iter().chain(rest).fold(f32::NEG_INFINITY, |m, v| if v > m { v } else { m })
}

/// Calls `visit(j)` in ascending order for every `j` whose closeness is not below `threshold`.
/// NaN counts as not below: what cannot be judged here is left to the exact comparison.
#[inline(always)]
pub(crate) fn not_below(
    products: &[f32],
    bias: &[f32],
    threshold: f32,
    mut visit: impl FnMut(usize),
) {
    let passes = |p: f32, b: f32| !matches!((p - b).partial_cmp(&threshold), Some(Ordering::Less));
    let (chunks, p_rest) = products.as_chunks::<CHUNK>();
    let (bias_chunks, b_rest) = bias.as_chunks::<CHUNK>();
    for (c, (p, b)) in chunks.iter().zip(bias_chunks).enumerate() {
        // Nearly all chunks end here: one mask over fixed lanes, without a branch inside.
        let any = (0..CHUNK).fold(0u32, |any, l| any | u32::from(passes(p[l], b[l])));
        if any != 0 {
            (0..CHUNK).filter(|&l| passes(p[l], b[l])).for_each(|l| visit(c * CHUNK + l));
        }
    }
    let first = chunks.len() * CHUNK;
    for (l, (p, b)) in p_rest.iter().zip(b_rest).enumerate() {
        if passes(*p, *b) {
            visit(first + l);
        }
    }
}

/// The largest f32 that is not above `x`.
pub(crate) fn round_down(x: f64) -> f32 {
    let y = x as f32;
    if f64::from(y) > x { y.next_down() } else { y }
}
