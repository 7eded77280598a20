//! Sums over a vector in f64, eight lanes at a time.
//!
//! Factors are computed once per vector and used for the life of the index, so they are summed in
//! double precision. Eight independent lanes let the compiler vectorise, and fix the order of the
//! additions: the same vector gives the same factors everywhere.

const LANES: usize = 8;

/// Sum of `term(a_j, b_j)` over two slices of one length.
pub(crate) fn sum_pairs(a: &[f32], b: &[f32], term: impl Fn(f64, f64) -> f64) -> f64 {
    assert_eq!(a.len(), b.len(), "both slices hold one value per dimension");
    let mut lanes = [0.0; LANES];
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            lanes[lane] += term(f64::from(a[lane]), f64::from(b[lane]));
        }
    }
    for (lane, (&a, &b)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *lane += term(f64::from(a), f64::from(b));
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + b) + (c + d)) + ((e + f) + (g + h))
}

/// Sum of `term(a_j)`.
pub(crate) fn sum_each(a: &[f32], term: impl Fn(f64) -> f64) -> f64 {
    sum_pairs(a, a, |a, _| term(a))
}

/// `S(v)`: the sum of `+v_j` where `r_j >= 0` and `-v_j` elsewhere.
pub(crate) fn signed_sum(r: &[f32], v: &[f32]) -> f64 {
    sum_pairs(r, v, |r, v| if r >= 0.0 { v } else { -v })
}
