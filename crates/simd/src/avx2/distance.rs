//! Distances, 16 lanes in two registers. A stored row of floats is a raw row of type `F32`.

use std::arch::x86_64::*;

use super::{add_lanes, first, load, load_eight};
use crate::distance::{LANES, RawType, as_bytes};

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    dot_f32(a, as_bytes(b))
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn l2(a: &[f32], b: &[f32]) -> f32 {
    l2_f32(a, as_bytes(b))
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn dot_raw(ty: RawType, q: &[f32], x: &[u8]) -> f32 {
    match ty {
        RawType::F32 => dot_f32(q, x),
        RawType::F16 => dot_f16(q, x),
        RawType::U8 => dot_u8(q, x),
        RawType::I8 => dot_i8(q, x),
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
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
        #[target_feature(enable = "avx2,fma,f16c")]
        fn $name(q: &[f32], x: &[u8]) -> f32 {
            let (q_rows, q_tail) = q.as_chunks::<LANES>();
            let (x_rows, x_tail) = x.as_chunks::<{ LANES * $bytes }>();
            let mut lanes = [_mm256_setzero_ps(); 2];
            for (q, x) in q_rows.iter().zip(x_rows) {
                let (q, x) = (q.as_chunks().0, x.as_chunks().0);
                lanes[0] = $step(lanes[0], load(&q[0]), $widen(&x[0]));
                lanes[1] = $step(lanes[1], load(&q[1]), $widen(&x[1]));
            }
            if !q_tail.is_empty() {
                let (mut q, mut x) = ([0.0; LANES], [0; LANES * $bytes]);
                q[..q_tail.len()].copy_from_slice(q_tail);
                x[..x_tail.len()].copy_from_slice(x_tail);
                let (q, x) = (q.as_chunks().0, x.as_chunks().0);
                for (i, tail) in first(q_tail.len()).into_iter().enumerate() {
                    let next = $step(lanes[i], load(&q[i]), $widen(&x[i]));
                    lanes[i] = _mm256_blendv_ps(lanes[i], next, tail);
                }
            }
            add_lanes(lanes[0], lanes[1])
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
#[target_feature(enable = "avx2,fma")]
fn dot_step(lanes: __m256, a: __m256, b: __m256) -> __m256 {
    _mm256_fmadd_ps(a, b, lanes)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn l2_step(lanes: __m256, a: __m256, b: __m256) -> __m256 {
    let difference = _mm256_sub_ps(a, b);
    _mm256_fmadd_ps(difference, difference, lanes)
}

#[inline]
#[target_feature(enable = "avx2")]
fn widen_f32(x: &[u8; 32]) -> __m256 {
    // SAFETY: the array is 32 readable bytes; the load asks for no alignment.
    unsafe { _mm256_loadu_ps(x.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn widen_f16(x: &[u8; 16]) -> __m256 {
    // SAFETY: the array is 16 readable bytes; the load asks for no alignment.
    let halves = unsafe { _mm_loadu_si128(x.as_ptr().cast()) };
    _mm256_cvtph_ps(halves)
}

#[inline]
#[target_feature(enable = "avx2")]
fn widen_u8(x: &[u8; 8]) -> __m256 {
    _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(load_eight(x)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn widen_i8(x: &[u8; 8]) -> __m256 {
    _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_eight(x)))
}
