//! NEON, which every AArch64 CPU has: a float sum's 16 lanes are four registers of four.

mod fwht;
mod distance;
mod excode;
mod fastscan;
mod bounds;

use std::arch::aarch64::*;

use crate::dispatch::{Isa, Kernels};

static KERNELS: Kernels = Kernels {
    isa: Isa::Neon,
    fwht: fwht::fwht,
    dot: distance::dot,
    l2: distance::l2,
    dot_raw: distance::dot_raw,
    l2_raw: distance::l2_raw,
    ex_dot: excode::ex_dot,
    sign_dot: excode::sign_dot,
    code_score: excode::code_score,
    scan8: fastscan::scan8,
    scan16: fastscan::scan16,
    bounds: bounds::bounds,
};

/// The table, if this CPU has every instruction it uses.
pub(crate) fn kernels() -> Option<&'static Kernels> {
    std::arch::is_aarch64_feature_detected!("neon").then_some(&KERNELS)
}

#[inline]
#[target_feature(enable = "neon")]
fn load(from: &[f32; 4]) -> float32x4_t {
    // SAFETY: the array is 16 readable bytes; the load asks for no more than its alignment.
    unsafe { vld1q_f32(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store(to: &mut [f32; 4], value: float32x4_t) {
    // SAFETY: the array is 16 writable bytes; the store asks for no more than its alignment.
    unsafe { vst1q_f32(to.as_mut_ptr(), value) }
}

#[inline]
#[target_feature(enable = "neon")]
fn load_words(from: &[u32; 4]) -> uint32x4_t {
    // SAFETY: the array is 16 readable bytes; the load asks for no more than its alignment.
    unsafe { vld1q_u32(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn load_bytes(from: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the array is 16 readable bytes, which need no alignment.
    unsafe { vld1q_u8(from.as_ptr()) }
}

/// Sixteen bytes to sixteen floats.
#[inline]
#[target_feature(enable = "neon")]
fn widen_bytes(bytes: uint8x16_t) -> [float32x4_t; 4] {
    let low = vmovl_u8(vget_low_u8(bytes));
    let high = vmovl_high_u8(bytes);
    [
        vcvtq_f32_u32(vmovl_u16(vget_low_u16(low))),
        vcvtq_f32_u32(vmovl_high_u16(low)),
        vcvtq_f32_u32(vmovl_u16(vget_low_u16(high))),
        vcvtq_f32_u32(vmovl_high_u16(high)),
    ]
}

/// 16 lanes to one float: 8 apart, then 4, 2, 1.
#[inline]
#[target_feature(enable = "neon")]
fn add_lanes([a, b, c, d]: [float32x4_t; 4]) -> f32 {
    let four = vaddq_f32(vaddq_f32(a, c), vaddq_f32(b, d));
    let two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
}

/// The first `len` of 16 lanes, as select masks of the four registers.
#[inline]
#[target_feature(enable = "neon")]
fn first(len: usize) -> [uint32x4_t; 4] {
    let lane = load_words(&[0, 1, 2, 3]);
    [0, 4, 8, 12].map(|at| vcltq_u32(vaddq_u32(lane, vdupq_n_u32(at)), vdupq_n_u32(len as u32)))
}
