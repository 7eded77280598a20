//! Distances, 16 lanes in four registers. A stored row of floats is a raw row of type `F32`.

use std::arch::aarch64::*;

use super::{add_lanes, first, load, load_bytes, widen_bytes};
use crate::distance::{LANES, RawType, as_bytes};

#[target_feature(enable = "neon")]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    dot_f32(a, as_bytes(b))
}

#[target_feature(enable = "neon")]
pub(super) fn l2(a: &[f32], b: &[f32]) -> f32 {
    l2_f32(a, as_bytes(b))
}

#[target_feature(enable = "neon")]
pub(super) fn dot_raw(ty: RawType, q: &[f32], x: &[u8]) -> f32 {
    match ty {
        RawType::F32 => dot_f32(q, x),
        RawType::F16 => dot_f16(q, x),
        RawType::U8 => dot_u8(q, x),
        RawType::I8 => dot_i8(q, x),
    }
}

#[target_feature(enable = "neon")]
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
        #[target_feature(enable = "neon")]
        fn $name(q: &[f32], x: &[u8]) -> f32 {
            let (q_rows, q_tail) = q.as_chunks::<LANES>();
            let (x_rows, x_tail) = x.as_chunks::<{ LANES * $bytes }>();
            let mut lanes = [vdupq_n_f32(0.0); 4];
            for (q, x) in q_rows.iter().zip(x_rows) {
                let x = $widen(x);
                for (i, q) in q.as_chunks().0.iter().enumerate() {
                    lanes[i] = $step(lanes[i], load(q), x[i]);
                }
            }
            if !q_tail.is_empty() {
                let (mut q, mut x) = ([0.0; LANES], [0; LANES * $bytes]);
                q[..q_tail.len()].copy_from_slice(q_tail);
                x[..x_tail.len()].copy_from_slice(x_tail);
                let x = $widen(&x);
                let tail = first(q_tail.len());
                for (i, q) in q.as_chunks().0.iter().enumerate() {
                    lanes[i] = vbslq_f32(tail[i], $step(lanes[i], load(q), x[i]), lanes[i]);
                }
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
#[target_feature(enable = "neon")]
fn dot_step(lanes: float32x4_t, a: float32x4_t, b: float32x4_t) -> float32x4_t {
    vfmaq_f32(lanes, a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn l2_step(lanes: float32x4_t, a: float32x4_t, b: float32x4_t) -> float32x4_t {
    let difference = vsubq_f32(a, b);
    vfmaq_f32(lanes, difference, difference)
}

/// Four registers of bytes; byte loads need no alignment.
#[inline]
#[target_feature(enable = "neon")]
fn widen_f32(x: &[u8; 64]) -> [float32x4_t; 4] {
    let (rows, _) = x.as_chunks();
    let four = |i: usize| vreinterpretq_f32_u8(load_bytes(&rows[i]));
    [four(0), four(1), four(2), four(3)]
}

#[inline]
#[target_feature(enable = "neon")]
fn widen_f16(x: &[u8; 32]) -> [float32x4_t; 4] {
    let (rows, _) = x.as_chunks();
    let first = vreinterpretq_u16_u8(load_bytes(&rows[0]));
    let second = vreinterpretq_u16_u8(load_bytes(&rows[1]));
    [
        halves_to_floats(vmovl_u16(vget_low_u16(first))),
        halves_to_floats(vmovl_high_u16(first)),
        halves_to_floats(vmovl_u16(vget_low_u16(second))),
        halves_to_floats(vmovl_high_u16(second)),
    ]
}

/// As the scalar `half_to_f32`: the conversion instruction has no stable intrinsic.
#[inline]
#[target_feature(enable = "neon")]
fn halves_to_floats(bits: uint32x4_t) -> float32x4_t {
    let magnitude = vshlq_n_u32::<13>(vandq_u32(bits, vdupq_n_u32(0x7fff)));
    let rebias = vdupq_n_f32(f32::from_bits((127 + 112) << 23));
    let finite = vreinterpretq_u32_f32(vmulq_f32(vreinterpretq_f32_u32(magnitude), rebias));
    let special = vorrq_u32(magnitude, vdupq_n_u32(0x7f80_0000));
    let exponent = vdupq_n_u32(0x7c00);
    let is_special = vceqq_u32(vandq_u32(bits, exponent), exponent);
    let sign = vshlq_n_u32::<16>(vandq_u32(bits, vdupq_n_u32(0x8000)));
    vreinterpretq_f32_u32(vorrq_u32(vbslq_u32(is_special, special, finite), sign))
}

#[inline]
#[target_feature(enable = "neon")]
fn widen_u8(x: &[u8; 16]) -> [float32x4_t; 4] {
    widen_bytes(load_bytes(x))
}

#[inline]
#[target_feature(enable = "neon")]
fn widen_i8(x: &[u8; 16]) -> [float32x4_t; 4] {
    let bytes = vreinterpretq_s8_u8(load_bytes(x));
    let low = vmovl_s8(vget_low_s8(bytes));
    let high = vmovl_high_s8(bytes);
    [
        vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))),
        vcvtq_f32_s32(vmovl_high_s16(low)),
        vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))),
        vcvtq_f32_s32(vmovl_high_s16(high)),
    ]
}
