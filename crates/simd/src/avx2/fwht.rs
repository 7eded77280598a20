//! Walsh-Hadamard transform: six stages in registers on 64 floats, then two stages a pass.
//!
//! As in `avx512/fwht.rs`, a stage inside a register is a shuffle and one exact
//! `x * (+1 or -1) + partner`.

use std::arch::x86_64::*;

use super::{load, store};
use crate::scalar;

const BLOCK: usize = 64;

#[target_feature(enable = "avx2,fma")]
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
#[target_feature(enable = "avx2,fma")]
fn in_registers(block: &mut [f32; BLOCK]) {
    let (rows, _) = block.as_chunks_mut::<8>();
    let mut v = [_mm256_setzero_ps(); 8];
    for (v, row) in v.iter_mut().zip(&*rows) {
        *v = within_register(load(row));
    }
    for h in [1, 2, 4] {
        for i in (0..8).filter(|i| i & h == 0) {
            (v[i], v[i + h]) = butterfly(v[i], v[i + h]);
        }
    }
    for (v, row) in v.into_iter().zip(rows) {
        store(row, v);
    }
}

/// Stages 1, 2 and 4.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn within_register(x: __m256) -> __m256 {
    let one = _mm256_set1_ps(1.0);
    let minus = _mm256_set1_ps(-1.0);
    let signs = _mm256_blend_ps::<0b1010_1010>(one, minus);
    let x = _mm256_fmadd_ps(x, signs, _mm256_permute_ps::<0b10_11_00_01>(x));
    let signs = _mm256_blend_ps::<0b1100_1100>(one, minus);
    let x = _mm256_fmadd_ps(x, signs, _mm256_permute_ps::<0b01_00_11_10>(x));
    let signs = _mm256_blend_ps::<0b1111_0000>(one, minus);
    _mm256_fmadd_ps(x, signs, _mm256_permute2f128_ps::<0x01>(x, x))
}

#[inline]
#[target_feature(enable = "avx2")]
fn butterfly(a: __m256, b: __m256) -> (__m256, __m256) {
    (_mm256_add_ps(a, b), _mm256_sub_ps(a, b))
}

/// Stages `h` and `2h` in one pass over memory.
#[inline]
#[target_feature(enable = "avx2")]
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
#[target_feature(enable = "avx2")]
fn last_stage(x: &mut [f32], h: usize) {
    let (low, high) = x.split_at_mut(h);
    for (low, high) in low.as_chunks_mut().0.iter_mut().zip(high.as_chunks_mut().0) {
        let (sum, difference) = butterfly(load(low), load(high));
        store(low, sum);
        store(high, difference);
    }
}
