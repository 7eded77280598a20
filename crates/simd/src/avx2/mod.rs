//! AVX2 with FMA and F16C: a float sum's 16 lanes are two registers of eight.

mod fwht;
mod distance;
mod excode;
mod fastscan;
mod bounds;

use std::arch::x86_64::*;

use crate::dispatch::{Isa, Kernels};

static KERNELS: Kernels = Kernels {
    isa: Isa::Avx2,
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
    let found = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c");
    found.then_some(&KERNELS)
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(from: &[f32; 8]) -> __m256 {
    // SAFETY: the array is 32 readable bytes; the load asks for no alignment.
    unsafe { _mm256_loadu_ps(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(to: &mut [f32; 8], value: __m256) {
    // SAFETY: the array is 32 writable bytes; the store asks for no alignment.
    unsafe { _mm256_storeu_ps(to.as_mut_ptr(), value) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_bytes(from: &[u8; 32]) -> __m256i {
    // SAFETY: the array is 32 readable bytes; the load asks for no alignment.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

/// Eight bytes in the low half of a register.
#[inline]
#[target_feature(enable = "avx2")]
fn load_eight(from: &[u8; 8]) -> __m128i {
    _mm_cvtsi64_si128(i64::from_le_bytes(*from))
}

/// Lanes 0 to 7 and 8 to 15 to one float: 8 apart, then 4, 2, 1.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn add_lanes(low: __m256, high: __m256) -> f32 {
    let eight = _mm256_add_ps(low, high);
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    let one = _mm_add_ss(two, _mm_movehdup_ps(two));
    _mm_cvtss_f32(one)
}

/// The first `len` of 16 lanes, as blend masks of the two registers.
#[inline]
#[target_feature(enable = "avx2")]
fn first(len: usize) -> [__m256; 2] {
    let len = _mm256_set1_epi32(len as i32);
    let low = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let high = _mm256_add_epi32(low, _mm256_set1_epi32(8));
    [low, high].map(|lane| _mm256_castsi256_ps(_mm256_cmpgt_epi32(len, lane)))
}
