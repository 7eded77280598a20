//! Extra code and sign code: eight registers of eight levels a block, two sum registers.

use std::arch::x86_64::*;

use super::{add_lanes, first, load, load_eight};
use crate::distance::LANES;
use crate::excode::{BLOCK, ex_bytes};

#[target_feature(enable = "avx2,fma")]
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
#[target_feature(enable = "avx2,fma")]
fn product<const WIDTH: u32>(q: &[f32], code: &[u8]) -> f32 {
    let mut lanes = [_mm256_setzero_ps(); 2];
    let (blocks, _) = q.as_chunks::<BLOCK>();
    for (q, code) in blocks.iter().zip(code.chunks_exact(ex_bytes(WIDTH, BLOCK))) {
        let levels = unpack::<WIDTH>(code.as_chunks().0);
        for (i, (q, levels)) in q.as_chunks().0.iter().zip(levels).enumerate() {
            lanes[i % 2] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(levels), load(q), lanes[i % 2]);
        }
    }
    add_lanes(lanes[0], lanes[1])
}

/// The 64 levels of a block, plane by plane as `excode` pictures them.
#[inline]
#[target_feature(enable = "avx2")]
fn unpack<const WIDTH: u32>(code: &[[u8; 8]]) -> [__m256i; 8] {
    let mut levels = [_mm256_setzero_si256(); 8];
    let mut rest = code;
    let mut low = 0;
    if WIDTH & 8 != 0 {
        for (level, bytes) in levels.iter_mut().zip(rest) {
            *level = widen(bytes);
        }
    }
    if WIDTH & 4 != 0 {
        for i in 0..4 {
            let bytes = widen(&rest[i]);
            levels[i] = _mm256_and_si256(bytes, _mm256_set1_epi32(15));
            levels[i + 4] = _mm256_srli_epi32::<4>(bytes);
        }
        (rest, low) = (&rest[4..], 4);
    }
    if WIDTH & 2 != 0 {
        let bytes = [widen(&rest[0]), widen(&rest[1])];
        for (i, level) in levels.iter_mut().enumerate() {
            let shift = _mm256_set1_epi32((i / 2 * 2) as i32);
            let pair = _mm256_srlv_epi32(bytes[i % 2], shift);
            let pair = _mm256_and_si256(pair, _mm256_set1_epi32(3));
            let placed = _mm256_sllv_epi32(pair, _mm256_set1_epi32(low));
            *level = _mm256_or_si256(*level, placed);
        }
        (rest, low) = (&rest[2..], low + 2);
    }
    if WIDTH & 1 != 0 {
        let bit = _mm256_set1_epi32(1 << low);
        for (i, level) in levels.iter_mut().enumerate() {
            let word = half_word(&rest[0], i);
            // The bit of lane l is bit 8 (i % 4) + l of the word and goes to bit `low`.
            let shifted = if i % 4 == 0 {
                _mm256_srlv_epi32(_mm256_sllv_epi32(word, _mm256_set1_epi32(low)), lanes_from(0))
            } else {
                _mm256_srlv_epi32(word, lanes_from((i % 4 * 8) as i32 - low))
            };
            *level = _mm256_or_si256(*level, _mm256_and_si256(shifted, bit));
        }
    }
    levels
}

/// Eight bytes to eight integers.
#[inline]
#[target_feature(enable = "avx2")]
fn widen(bytes: &[u8; 8]) -> __m256i {
    _mm256_cvtepu8_epi32(load_eight(bytes))
}

/// The 32 bits that hold register `i` of eight, in every lane.
#[inline]
#[target_feature(enable = "avx2")]
fn half_word(bits: &[u8; 8], i: usize) -> __m256i {
    let words = bits.as_chunks::<4>().0;
    _mm256_set1_epi32(i32::from_le_bytes(words[i / 4]))
}

/// `from`, `from + 1`, ... `from + 7`.
#[inline]
#[target_feature(enable = "avx2")]
fn lanes_from(from: i32) -> __m256i {
    _mm256_add_epi32(_mm256_set1_epi32(from), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
}

#[target_feature(enable = "avx2")]
pub(super) fn sign_dot(q: &[f32], bits: &[u8]) -> f32 {
    let sign = _mm256_set1_epi32(i32::MIN);
    let mut lanes = [_mm256_setzero_ps(); 2];
    for (q, bits) in q.as_chunks::<BLOCK>().0.iter().zip(bits.as_chunks().0) {
        for (i, q) in q.as_chunks().0.iter().enumerate() {
            let left = _mm256_sub_epi32(_mm256_set1_epi32(31), lanes_from((i % 4 * 8) as i32));
            let positive = _mm256_sllv_epi32(half_word(bits, i), left);
            let minus = _mm256_castsi256_ps(_mm256_andnot_si256(positive, sign));
            lanes[i % 2] = _mm256_add_ps(lanes[i % 2], _mm256_xor_ps(load(q), minus));
        }
    }
    add_lanes(lanes[0], lanes[1])
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn code_score(a: &[f32], t: f32, half: f32) -> (f32, f32) {
    let (t, top) = (_mm256_set1_ps(t), _mm256_set1_ps(half - 1.0));
    let (mut product, mut square) = ([_mm256_setzero_ps(); 2], [_mm256_setzero_ps(); 2]);
    let (rows, tail) = a.as_chunks::<LANES>();
    for a in rows {
        for (i, a) in a.as_chunks().0.iter().enumerate() {
            let a = load(a);
            let v = decode(a, t, top);
            product[i] = _mm256_fmadd_ps(v, a, product[i]);
            square[i] = _mm256_fmadd_ps(v, v, square[i]);
        }
    }
    if !tail.is_empty() {
        let mut a = [0.0; LANES];
        a[..tail.len()].copy_from_slice(tail);
        for (i, (a, mask)) in a.as_chunks().0.iter().zip(first(tail.len())).enumerate() {
            let a = load(a);
            let v = decode(a, t, top);
            product[i] = _mm256_blendv_ps(product[i], _mm256_fmadd_ps(v, a, product[i]), mask);
            square[i] = _mm256_blendv_ps(square[i], _mm256_fmadd_ps(v, v, square[i]), mask);
        }
    }
    (add_lanes(product[0], product[1]), add_lanes(square[0], square[1]))
}

/// The value a magnitude is coded as.
#[inline]
#[target_feature(enable = "avx2")]
fn decode(a: __m256, t: __m256, top: __m256) -> __m256 {
    let level = _mm256_floor_ps(_mm256_mul_ps(t, a));
    _mm256_add_ps(_mm256_min_ps(level, top), _mm256_set1_ps(0.5))
}
