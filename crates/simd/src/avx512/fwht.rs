//! Walsh-Hadamard transform: six stages in registers on 64 floats, then two stages a pass.
//!
//! Inside a register a stage is one shuffle that brings every lane its partner, and one fused
//! `x * (+1 or -1) + partner`, which rounds exactly as the add or subtract it stands for:
//!
//! ```text
//! h = 1    x        a   b   c   d  ...
//!          partner  b   a   d   c  ...
//!          sign     +   -   +   -  ...
//!                  a+b a-b c+d c-d ...
//! ```

use std::arch::x86_64::*;

use super::{load, store};
use crate::scalar;

const BLOCK: usize = 64;

#[target_feature(enable = "avx512f")]
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
#[target_feature(enable = "avx512f")]
fn in_registers(block: &mut [f32; BLOCK]) {
    let (rows, _) = block.as_chunks_mut::<16>();
    let mut v = [_mm512_setzero_ps(); 4];
    for (v, row) in v.iter_mut().zip(&*rows) {
        *v = within_register(load(row));
    }
    v = butterfly4(v);
    for (v, row) in v.into_iter().zip(rows) {
        store(row, v);
    }
}

/// Stages 1, 2, 4 and 8.
#[inline]
#[target_feature(enable = "avx512f")]
fn within_register(x: __m512) -> __m512 {
    let signs =
        |flip: __mmask16| _mm512_mask_blend_ps(flip, _mm512_set1_ps(1.0), _mm512_set1_ps(-1.0));
    let x = _mm512_fmadd_ps(x, signs(0xaaaa), _mm512_permute_ps::<0b10_11_00_01>(x));
    let x = _mm512_fmadd_ps(x, signs(0xcccc), _mm512_permute_ps::<0b01_00_11_10>(x));
    let x = _mm512_fmadd_ps(x, signs(0xf0f0), _mm512_shuffle_f32x4::<0b10_11_00_01>(x, x));
    _mm512_fmadd_ps(x, signs(0xff00), _mm512_shuffle_f32x4::<0b01_00_11_10>(x, x))
}

/// Two stages on four registers: neighbours first, then two apart.
#[inline]
#[target_feature(enable = "avx512f")]
fn butterfly4([a, b, c, d]: [__m512; 4]) -> [__m512; 4] {
    let (a, b) = (_mm512_add_ps(a, b), _mm512_sub_ps(a, b));
    let (c, d) = (_mm512_add_ps(c, d), _mm512_sub_ps(c, d));
    [_mm512_add_ps(a, c), _mm512_add_ps(b, d), _mm512_sub_ps(a, c), _mm512_sub_ps(b, d)]
}

/// Stages `h` and `2h` in one pass over memory.
#[inline]
#[target_feature(enable = "avx512f")]
fn two_stages(x: &mut [f32], h: usize) {
    for block in x.chunks_exact_mut(4 * h) {
        let (ab, cd) = block.split_at_mut(2 * h);
        let (a, b) = ab.split_at_mut(h);
        let (c, d) = cd.split_at_mut(h);
        let (a, b) = (a.as_chunks_mut().0.iter_mut(), b.as_chunks_mut().0);
        let (c, d) = (c.as_chunks_mut().0, d.as_chunks_mut().0);
        for (((a, b), c), d) in a.zip(b).zip(c).zip(d) {
            let [ra, rb, rc, rd] = butterfly4([load(a), load(b), load(c), load(d)]);
            store(a, ra);
            store(b, rb);
            store(c, rc);
            store(d, rd);
        }
    }
}

/// The one stage left when their number is odd.
#[inline]
#[target_feature(enable = "avx512f")]
fn last_stage(x: &mut [f32], h: usize) {
    let (low, high) = x.split_at_mut(h);
    for (low, high) in low.as_chunks_mut().0.iter_mut().zip(high.as_chunks_mut().0) {
        let (a, b) = (load(low), load(high));
        store(low, _mm512_add_ps(a, b));
        store(high, _mm512_sub_ps(a, b));
    }
}
