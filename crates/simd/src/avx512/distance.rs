//! Distances, 16 lanes in one register. A stored row of floats is a raw row of type `F32`.

use std::arch::x86_64::*;

use super::{add_lanes, first, load};
use crate::distance::{LANES, RawType, as_bytes};

#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    dot_f32(a, as_bytes(b))
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub(super) fn l2(a: &[f32], b: &[f32]) -> f32 {
    l2_f32(a, as_bytes(b))
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub(super) fn dot_raw(ty: RawType, q: &[f32], x: &[u8]) -> f32 {
    match ty {
        RawType::F32 => dot_f32(q, x),
        RawType::F16 => dot_f16(q, x),
        RawType::U8 => dot_u8(q, x),
        RawType::I8 => dot_i8(q, x),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub(super) fn l2_raw(ty: RawType, q: &[f32], x: &[u8]) -> f32 {
    match ty {
        RawType::F32 => l2_f32(q, x),
        RawType::F16 => l2_f16(q, x),
        RawType::U8 => l2_u8(q, x),
        RawType::I8 => l2_i8(q, x),
    }
}

/// One function per step and element type. The tail is padded, and lanes past it keep what they
/// have: adding zero to them would turn -0 into +0.
macro_rules! sums {
    ($($name:ident: $step:ident over $bytes:literal bytes by $widen:ident;)*) => {$(
        #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
        fn $name(q: &[f32], x: &[u8]) -> f32 {
            let (q_rows, q_tail) = q.as_chunks::<LANES>();
            let (x_rows, x_tail) = x.as_chunks::<{ LANES * $bytes }>();
            let mut lanes = _mm512_setzero_ps();
            for (q, x) in q_rows.iter().zip(x_rows) {
                lanes = $step(lanes, load(q), $widen(x));
            }
            if !q_tail.is_empty() {
                let (mut q, mut x) = ([0.0; LANES], [0; LANES * $bytes]);
                q[..q_tail.len()].copy_from_slice(q_tail);
                x[..x_tail.len()].copy_from_slice(x_tail);
                let next = $step(lanes, load(&q), $widen(&x));
                lanes = _mm512_mask_mov_ps(lanes, first(q_tail.len()), next);
            }
            add_lanes(lanes)
        }
    )*};
}

sums! {
    dot_f32: dot_step over 4 bytes by widen_f32;
    dot_f16: dot_step over 2 bytes by widen_f16;
    dot_u8: dot_step over 1 bytes by widen_u8;
    dot_i8: dot_step over 1 bytes by widen_i8;
    l2_f32: l2_step over 4 bytes by widen_f32;
    l2_f16: l2_step over 2 bytes by widen_f16;
    l2_u8: l2_step over 1 bytes by widen_u8;
    l2_i8: l2_step over 1 bytes by widen_i8;
}

#[inline]
#[target_feature(enable = "avx512f")]
fn dot_step(lanes: __m512, a: __m512, b: __m512) -> __m512 {
    _mm512_fmadd_ps(a, b, lanes)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn l2_step(lanes: __m512, a: __m512, b: __m512) -> __m512 {
    let difference = _mm512_sub_ps(a, b);
    _mm512_fmadd_ps(difference, difference, lanes)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn widen_f32(x: &[u8; 64]) -> __m512 {
    // SAFETY: the array is 64 readable bytes; the load asks for no alignment.
    unsafe { _mm512_loadu_ps(x.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn widen_f16(x: &[u8; 32]) -> __m512 {
    // SAFETY: the array is 32 readable bytes; the load asks for no alignment.
    let halves = unsafe { _mm256_loadu_si256(x.as_ptr().cast()) };
    _mm512_cvtph_ps(halves)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn widen_u8(x: &[u8; 16]) -> __m512 {
    // SAFETY: the array is 16 readable bytes; the load asks for no alignment.
    let bytes = unsafe { _mm_loadu_si128(x.as_ptr().cast()) };
    _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn widen_i8(x: &[u8; 16]) -> __m512 {
    // SAFETY: the array is 16 readable bytes; the load asks for no alignment.
    let bytes = unsafe { _mm_loadu_si128(x.as_ptr().cast()) };
    _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))
}
