//! FastScan, two groups a step: one shuffle looks up 16 codes in each half of the register.
//!
//! The looked-up bytes must be widened to be added. Instead of unpacking them, whole 16-bit words
//! are added, two bytes of two codes in one, and the upper bytes once more by themselves:
//!
//! ```text
//! words += |  odd | even |        odd byte * 256 + even byte, modulo 2^16
//! odds  += |   0  |  odd |        the same shifted right by 8
//! at the end:  even sum = words - odds << 8  (modulo 2^16),  odd sum = odds
//! ```
//!
//! Sums of up to 257 bytes fit 16 bits, so every [`FLUSH`] steps they move on to 32-bit sums.

use std::arch::x86_64::*;

use super::load_bytes;
use crate::fastscan::BATCH;

/// Bytes of two groups, and of their 8-bit tables.
const PAIR: usize = 32;

/// Steps between flushes: at most 257, and an even number of pairs for the quads of 16-bit tables.
const FLUSH: usize = 256;

#[target_feature(enable = "avx2")]
pub(super) fn scan8(codes: &[u8], lut: &[u8], sums: &mut [u32; BATCH]) {
    *sums = [0; BATCH];
    for (codes, lut) in codes.chunks(FLUSH * PAIR).zip(lut.chunks(FLUSH * PAIR)) {
        let mut partial = [Words::zero(); 2];
        let (codes, _) = codes.as_chunks::<PAIR>();
        let (tables, _) = lut.as_chunks::<PAIR>();
        for (codes, table) in codes.iter().zip(tables) {
            add(&mut partial, load_bytes(table), indices(codes));
        }
        flush::<0>(partial, sums);
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn scan16(codes: &[u8], lut: &[u8], sums: &mut [u32; BATCH]) {
    *sums = [0; BATCH];
    for (codes, lut) in codes.chunks(FLUSH * PAIR).zip(lut.chunks(2 * FLUSH * PAIR)) {
        let mut low_plane = [Words::zero(); 2];
        let mut high_plane = [Words::zero(); 2];
        let (quads, _) = codes.as_chunks::<{ 2 * PAIR }>();
        let (tables, _) = lut.as_chunks::<{ 4 * PAIR }>();
        for (quad, tables) in quads.iter().zip(tables) {
            let tables = tables.as_chunks().0;
            for (half, codes) in quad.as_chunks().0.iter().enumerate() {
                let nibbles = indices(codes);
                add(&mut low_plane, load_bytes(&tables[half]), nibbles);
                add(&mut high_plane, load_bytes(&tables[2 + half]), nibbles);
            }
        }
        flush::<0>(low_plane, sums);
        flush::<8>(high_plane, sums);
    }
}

/// Table indices of the low nibbles (codes 0 to 15) and of the high ones (16 to 31).
#[inline]
#[target_feature(enable = "avx2")]
fn indices(codes: &[u8; PAIR]) -> [__m256i; 2] {
    let nibble = _mm256_set1_epi8(15);
    let codes = load_bytes(codes);
    [_mm256_and_si256(codes, nibble), _mm256_and_si256(_mm256_srli_epi16::<4>(codes), nibble)]
}

/// 16-bit sums of 16 codes, once for each half of the register.
#[derive(Clone, Copy)]
struct Words {
    words: __m256i,
    odds: __m256i,
}

impl Words {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn zero() -> Words {
        Words { words: _mm256_setzero_si256(), odds: _mm256_setzero_si256() }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn add(sums: &mut [Words; 2], tables: __m256i, indices: [__m256i; 2]) {
    for (sum, index) in sums.iter_mut().zip(indices) {
        let entries = _mm256_shuffle_epi8(tables, index);
        sum.words = _mm256_add_epi16(sum.words, entries);
        sum.odds = _mm256_add_epi16(sum.odds, _mm256_srli_epi16::<8>(entries));
    }
}

/// Adds the 16-bit sums, shifted left, to the 32-bit ones.
#[inline]
#[target_feature(enable = "avx2")]
fn flush<const SHIFT: i32>(partial: [Words; 2], sums: &mut [u32; BATCH]) {
    let (eights, _) = sums.as_chunks_mut::<8>();
    for (Words { words, odds }, eights) in partial.into_iter().zip(eights.chunks_exact_mut(2)) {
        let evens = _mm256_sub_epi16(words, _mm256_slli_epi16::<8>(odds));
        let in_order = [_mm256_unpacklo_epi16(evens, odds), _mm256_unpackhi_epi16(evens, odds)];
        for (codes, sums) in in_order.into_iter().zip(eights) {
            let first = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(codes));
            let second = _mm256_cvtepu16_epi32(_mm256_extracti128_si256::<1>(codes));
            let both = _mm256_slli_epi32::<SHIFT>(_mm256_add_epi32(first, second));
            add_sums(sums, both);
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_sums(sums: &mut [u32; 8], more: __m256i) {
    let at: *mut __m256i = sums.as_mut_ptr().cast();
    // SAFETY: `at` is 32 bytes that are ours alone; load and store ask for no alignment.
    unsafe { _mm256_storeu_si256(at, _mm256_add_epi32(_mm256_loadu_si256(at), more)) }
}
