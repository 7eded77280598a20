//! Extra code and sign code: four registers of 16 levels a block, widened only for the product.

use std::arch::aarch64::*;

use super::{add_lanes, first, load, load_bytes, load_words, widen_bytes};
use crate::distance::LANES;
use crate::excode::{BLOCK, ex_bytes};

#[target_feature(enable = "neon")]
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
#[target_feature(enable = "neon")]
fn product<const WIDTH: u32>(q: &[f32], code: &[u8]) -> f32 {
    let mut lanes = [vdupq_n_f32(0.0); 4];
    let (blocks, _) = q.as_chunks::<BLOCK>();
    for (q, code) in blocks.iter().zip(code.chunks_exact(ex_bytes(WIDTH, BLOCK))) {
        let levels = unpack::<WIDTH>(code);
        for (q, levels) in q.as_chunks::<LANES>().0.iter().zip(levels) {
            let levels = widen_bytes(levels);
            for (i, q) in q.as_chunks().0.iter().enumerate() {
                lanes[i] = vfmaq_f32(lanes[i], levels[i], load(q));
            }
        }
    }
    add_lanes(lanes)
}

/// The 64 levels of a block, plane by plane as `excode` pictures them.
#[inline]
#[target_feature(enable = "neon")]
fn unpack<const WIDTH: u32>(code: &[u8]) -> [uint8x16_t; 4] {
    let mut levels = [vdupq_n_u8(0); 4];
    let mut rest = code;
    let mut low = 0;
    if WIDTH & 8 != 0 {
        for (level, bytes) in levels.iter_mut().zip(rest.as_chunks().0) {
            *level = load_bytes(bytes);
        }
    }
    if WIDTH & 4 != 0 {
        for (i, bytes) in rest.as_chunks().0.iter().take(2).enumerate() {
            let bytes = load_bytes(bytes);
            levels[i] = vandq_u8(bytes, vdupq_n_u8(15));
            levels[i + 2] = vshrq_n_u8::<4>(bytes);
        }
        (rest, low) = (&rest[32..], 4);
    }
    if WIDTH & 2 != 0 {
        let bytes = load_bytes(&rest.as_chunks().0[0]);
        for (i, level) in levels.iter_mut().enumerate() {
            let pair = vshlq_u8(bytes, vdupq_n_s8(-2 * i as i8));
            let pair = vandq_u8(pair, vdupq_n_u8(3));
            *level = vorrq_u8(*level, vshlq_u8(pair, vdupq_n_s8(low)));
        }
        (rest, low) = (&rest[16..], low + 2);
    }
    if WIDTH & 1 != 0 {
        const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
        let one = vdupq_n_u8(1 << low);
        for (level, &[first, second]) in levels.iter_mut().zip(rest.as_chunks().0) {
            let bytes = vcombine_u8(vdup_n_u8(first), vdup_n_u8(second));
            let set = vtstq_u8(bytes, load_bytes(&BITS));
            *level = vorrq_u8(*level, vandq_u8(set, one));
        }
    }
    levels
}

#[target_feature(enable = "neon")]
pub(super) fn sign_dot(q: &[f32], bits: &[u8]) -> f32 {
    let minus = vdupq_n_u32(1 << 31);
    let lane_bits = [load_words(&[1, 2, 4, 8]), load_words(&[16, 32, 64, 128])];
    let mut lanes = [vdupq_n_f32(0.0); 4];
    for (q, bits) in q.as_chunks::<LANES>().0.iter().zip(bits.as_chunks::<2>().0) {
        for (i, q) in q.as_chunks().0.iter().enumerate() {
            let byte = vdupq_n_u32(u32::from(bits[i / 2]));
            let sign = vbicq_u32(minus, vtstq_u32(byte, lane_bits[i % 2]));
            let q = vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(load(q)), sign));
            lanes[i] = vaddq_f32(lanes[i], q);
        }
    }
    add_lanes(lanes)
}

#[target_feature(enable = "neon")]
pub(super) fn code_score(a: &[f32], t: f32, half: f32) -> (f32, f32) {
    let (t, top) = (vdupq_n_f32(t), vdupq_n_f32(half - 1.0));
    let (mut product, mut square) = ([vdupq_n_f32(0.0); 4], [vdupq_n_f32(0.0); 4]);
    let (rows, tail) = a.as_chunks::<LANES>();
    for a in rows {
        for (i, a) in a.as_chunks().0.iter().enumerate() {
            let a = load(a);
            let v = decode(a, t, top);
            product[i] = vfmaq_f32(product[i], v, a);
            square[i] = vfmaq_f32(square[i], v, v);
        }
    }
    if !tail.is_empty() {
        let mut a = [0.0; LANES];
        a[..tail.len()].copy_from_slice(tail);
        for (i, (a, mask)) in a.as_chunks().0.iter().zip(first(tail.len())).enumerate() {
            let a = load(a);
            let v = decode(a, t, top);
            product[i] = vbslq_f32(mask, vfmaq_f32(product[i], v, a), product[i]);
            square[i] = vbslq_f32(mask, vfmaq_f32(square[i], v, v), square[i]);
        }
    }
    (add_lanes(product), add_lanes(square))
}

/// The value a magnitude is coded as. A select, since `vminq_f32` would keep a NaN.
#[inline]
#[target_feature(enable = "neon")]
fn decode(a: float32x4_t, t: float32x4_t, top: float32x4_t) -> float32x4_t {
    let level = vrndmq_f32(vmulq_f32(t, a));
    let level = vbslq_f32(vcltq_f32(level, top), level, top);
    vaddq_f32(level, vdupq_n_f32(0.5))
}
