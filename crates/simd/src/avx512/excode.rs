//! Extra code and sign code: four registers of 16 levels a block, one sum register.

use std::arch::x86_64::*;

use super::{add_lanes, first, load};
use crate::distance::LANES;
use crate::excode::{BLOCK, ex_bytes};

#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub(super) fn ex_dot(width: u32, q: &[f32], code: &[u8]) -> f32 {
    match width {
        1 => product::<1>(q, code),
        2 => product::<2>(q, code),
        3 => product::<3>(q, code),
        4 => product::<4>(q, code),
        5 => product::<5>(q, code),
        6 => product::<6>(q, code),
        7 => product::<7>(q, code),
        _ => product::<8>(q, code),
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
fn product<const WIDTH: u32>(q: &[f32], code: &[u8]) -> f32 {
    let mut lanes = _mm512_setzero_ps();
    let (blocks, _) = q.as_chunks::<BLOCK>();
    for (q, code) in blocks.iter().zip(code.chunks_exact(ex_bytes(WIDTH, BLOCK))) {
        for (q, levels) in q.as_chunks::<LANES>().0.iter().zip(unpack::<WIDTH>(code)) {
            lanes = _mm512_fmadd_ps(_mm512_cvtepi32_ps(levels), load(q), lanes);
        }
    }
    add_lanes(lanes)
}

/// The 64 levels of a block, plane by plane as `excode` pictures them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn unpack<const WIDTH: u32>(code: &[u8]) -> [__m512i; 4] {
    let mut levels = [_mm512_setzero_si512(); 4];
    let mut rest = code;
    let mut low = 0;
    if WIDTH & 8 != 0 {
        for (i, level) in levels.iter_mut().enumerate() {
            *level = widen(rest, 16 * i);
        }
    }
    if WIDTH & 4 != 0 {
        let nibble = _mm512_set1_epi32(15);
        for (i, bytes) in [widen(rest, 0), widen(rest, 16)].into_iter().enumerate() {
            levels[i] = _mm512_and_si512(bytes, nibble);
            levels[i + 2] = _mm512_srli_epi32::<4>(bytes);
        }
        (rest, low) = (&rest[32..], 4);
    }
    if WIDTH & 2 != 0 {
        let bytes = widen(rest, 0);
        for (i, level) in levels.iter_mut().enumerate() {
            let pair = _mm512_srlv_epi32(bytes, _mm512_set1_epi32(2 * i as i32));
            let pair = _mm512_and_si512(pair, _mm512_set1_epi32(3));
            let placed = _mm512_sllv_epi32(pair, _mm512_set1_epi32(low));
            *level = _mm512_or_si512(*level, placed);
        }
        (rest, low) = (&rest[16..], low + 2);
    }
    if WIDTH & 1 != 0 {
        let bits = _mm512_set1_epi32(1 << low);
        for (level, two) in levels.iter_mut().zip(rest.as_chunks().0) {
            *level = _mm512_mask_or_epi32(*level, u16::from_le_bytes(*two), *level, bits);
        }
    }
    levels
}

/// Sixteen bytes to sixteen integers.
#[inline]
#[target_feature(enable = "avx512f")]
fn widen(code: &[u8], at: usize) -> __m512i {
    let bytes = &code[at..at + 16];
    // SAFETY: the slice above is 16 readable bytes; the load asks for no alignment.
    let bytes = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
    _mm512_cvtepu8_epi32(bytes)
}

#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn sign_dot(q: &[f32], bits: &[u8]) -> f32 {
    let minus = _mm512_set1_ps(-0.0);
    let mut lanes = _mm512_setzero_ps();
    for (q, bits) in q.as_chunks::<LANES>().0.iter().zip(bits.as_chunks().0) {
        let (q, negative) = (load(q), !u16::from_le_bytes(*bits));
        lanes = _mm512_add_ps(lanes, _mm512_mask_xor_ps(q, negative, q, minus));
    }
    add_lanes(lanes)
}

/// A number so large that floats from here on are whole.
const WHOLE: f32 = 8_388_608.0; // 2^23

#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn code_score(a: &[f32], t: f32, half: f32) -> (f32, f32) {
    let (t, top) = (_mm512_set1_ps(t), _mm512_set1_ps(WHOLE + (half - 1.0)));
    let (mut product, mut square) = (_mm512_setzero_ps(), _mm512_setzero_ps());
    let (rows, tail) = a.as_chunks::<LANES>();
    for a in rows {
        let a = load(a);
        let v = decode(a, t, top);
        product = _mm512_fmadd_ps(v, a, product);
        square = _mm512_fmadd_ps(v, v, square);
    }
    if !tail.is_empty() {
        let mut a = [0.0; LANES];
        a[..tail.len()].copy_from_slice(tail);
        let a = load(&a);
        let v = decode(a, t, top);
        product = _mm512_mask3_fmadd_ps(v, a, product, first(tail.len()));
        square = _mm512_mask3_fmadd_ps(v, v, square, first(tail.len()));
    }
    (add_lanes(product), add_lanes(square))
}

/// The value a magnitude is coded as: `min(floor(t a), half - 1) + 0.5`.
///
/// Adding 2^23 with rounding down leaves 2^23 + floor, in one instruction where `roundscale` takes
/// two; taking 2^23 - 0.5 away again is exact. `top` is 2^23 + half - 1.
#[inline]
#[target_feature(enable = "avx512f")]
fn decode(a: __m512, t: __m512, top: __m512) -> __m512 {
    const DOWN: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
    let level = _mm512_add_round_ps::<DOWN>(_mm512_mul_ps(t, a), _mm512_set1_ps(WHOLE));
    _mm512_sub_ps(_mm512_min_ps(level, top), _mm512_set1_ps(WHOLE - 0.5))
}
