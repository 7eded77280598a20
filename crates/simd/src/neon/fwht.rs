//! Walsh-Hadamard transform: six stages in registers on 64 floats, then two stages a pass.
//!
//! Inside a register a stage is a shuffle that brings every lane its partner and one exact
//! `x * (+1 or -1) + partner`.

use std::arch::aarch64::*;

use super::{load, store};
use crate::scalar;

const BLOCK: usize = 64;

#[target_feature(enable = "neon")]
pub(super) fn fwht(x: &mut [f32]) {
    if x.len() < BLOCK {
        return scalar::fwht(x);
    }
    for block in x.as_chunks_mut::<BLOCK>().0 {
        in_registers(block);
    }
    let mut h = BLOCK;
    while 4 * h <= x.len() {
        two_stages(x, h);
        h *= 4;
    }
    if h < x.len() {
        last_stage(x, h);
    }
}

/// Stages 1 to 32 on 64 floats.
#[inline]
#[target_feature(enable = "neon")]
fn in_registers(block: &mut [f32; BLOCK]) {
    let (rows, _) = block.as_chunks_mut::<4>();
    let mut v = [vdupq_n_f32(0.0); 16];
    for (v, row) in v.iter_mut().zip(&*rows) {
        *v = within_register(load(row));
    }
    for h in [1, 2, 4, 8] {
        for i in (0..16).filter(|i| i & h == 0) {
            (v[i], v[i + h]) = butterfly(v[i], v[i + h]);
        }
    }
    for (v, row) in v.into_iter().zip(rows) {
        store(row, v);
    }
}

/// Stages 1 and 2.
#[inline]
#[target_feature(enable = "neon")]
fn within_register(x: float32x4_t) -> float32x4_t {
    let x = vfmaq_f32(vrev64q_f32(x), x, load(&[1.0, -1.0, 1.0, -1.0]));
    vfmaq_f32(vextq_f32::<2>(x, x), x, load(&[1.0, 1.0, -1.0, -1.0]))
}

#[inline]
#[target_feature(enable = "neon")]
fn butterfly(a: float32x4_t, b: float32x4_t) -> (float32x4_t, float32x4_t) {
    (vaddq_f32(a, b), vsubq_f32(a, b))
}

/// Stages `h` and `2h` in one pass over memory.
#[inline]
#[target_feature(enable = "neon")]
fn two_stages(x: &mut [f32], h: usize) {
    for block in x.chunks_exact_mut(4 * h) {
        let (ab, cd) = block.split_at_mut(2 * h);
        let (a, b) = ab.split_at_mut(h);
        let (c, d) = cd.split_at_mut(h);
        let (a, b) = (a.as_chunks_mut().0.iter_mut(), b.as_chunks_mut().0);
        let (c, d) = (c.as_chunks_mut().0, d.as_chunks_mut().0);
        for (((a, b), c), d) in a.zip(b).zip(c).zip(d) {
            let (ab, a_b) = butterfly(load(a), load(b));
            let (cd, c_d) = butterfly(load(c), load(d));
            let (ra, rc) = butterfly(ab, cd);
            let (rb, rd) = butterfly(a_b, c_d);
            store(a, ra);
            store(b, rb);
            store(c, rc);
            store(d, rd);
        }
    }
}

/// The one stage left when their number is odd.
#[inline]
#[target_feature(enable = "neon")]
fn last_stage(x: &mut [f32], h: usize) {
    let (low, high) = x.split_at_mut(h);
    for (low, high) in low.as_chunks_mut().0.iter_mut().zip(high.as_chunks_mut().0) {
        let (sum, difference) = butterfly(load(low), load(high));
        store(low, sum);
        store(high, difference);
    }
}
