//! AVX-512 as Ice Lake and Zen 4 have it: a float sum's 16 lanes are one register, and VBMI and
//! VNNI look up and add four FastScan groups at once.

mod fwht;
mod distance;
mod excode;
mod fastscan;
mod bounds;

use std::arch::x86_64::*;

use crate::avx2;
use crate::dispatch::{Isa, Kernels};

static KERNELS: Kernels = Kernels {
    isa: Isa::Avx512,
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

/// The table, if this CPU has every instruction it uses. (F implies AVX2, FMA and F16C.)
pub(crate) fn kernels() -> Option<&'static Kernels> {
    let found = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vnni");
    (found && avx2::kernels().is_some()).then_some(&KERNELS)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(from: &[f32; 16]) -> __m512 {
    // SAFETY: the array is 64 readable bytes; the load asks for no alignment.
    unsafe { _mm512_loadu_ps(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(to: &mut [f32; 16], value: __m512) {
    // SAFETY: the array is 64 writable bytes; the store asks for no alignment.
    unsafe { _mm512_storeu_ps(to.as_mut_ptr(), value) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_bytes(from: &[u8; 64]) -> __m512i {
    // SAFETY: the array is 64 readable bytes; the load asks for no alignment.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

/// 16 lanes to one float: 8 apart, then 4, 2, 1.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn add_lanes(lanes: __m512) -> f32 {
    avx2::add_lanes(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps::<1>(lanes))
}

/// The first `len` of 16 lanes.
#[inline]
fn first(len: usize) -> __mmask16 {
    ((1_u32 << len) - 1) as __mmask16
}
