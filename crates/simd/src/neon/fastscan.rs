//! FastScan, one group a step: one table lookup for 16 codes.
//!
//! Bytes are widened as in `avx2/fastscan.rs`: whole words are added, and the odd bytes once more
//! by themselves, which here is one shift-and-accumulate. Sums of up to 257 bytes fit 16 bits, so
//! every [`FLUSH`] groups they move on to 32-bit sums.

use std::arch::aarch64::*;

use super::{load_bytes, load_words};
use crate::fastscan::{BATCH, GROUP};

/// Groups between flushes: at most 257, and whole quads for 16-bit tables.
const FLUSH: usize = 256;

#[target_feature(enable = "neon")]
pub(super) fn scan8(codes: &[u8], lut: &[u8], sums: &mut [u32; BATCH]) {
    *sums = [0; BATCH];
    for (codes, lut) in codes.chunks(FLUSH * GROUP).zip(lut.chunks(FLUSH * GROUP)) {
        let mut partial = [Words::zero(); 2];
        for (codes, table) in codes.as_chunks().0.iter().zip(lut.as_chunks().0) {
            add(&mut partial, load_bytes(table), indices(codes));
        }
        flush::<0>(partial, sums);
    }
}

#[target_feature(enable = "neon")]
pub(super) fn scan16(codes: &[u8], lut: &[u8], sums: &mut [u32; BATCH]) {
    *sums = [0; BATCH];
    for (codes, lut) in codes.chunks(FLUSH * GROUP).zip(lut.chunks(2 * FLUSH * GROUP)) {
        let mut low_plane = [Words::zero(); 2];
        let mut high_plane = [Words::zero(); 2];
        let (quads, _) = codes.as_chunks::<{ 4 * GROUP }>();
        let (tables, _) = lut.as_chunks::<{ 8 * GROUP }>();
        for (quad, tables) in quads.iter().zip(tables) {
            let tables = tables.as_chunks().0;
            for (g, codes) in quad.as_chunks().0.iter().enumerate() {
                let nibbles = indices(codes);
                add(&mut low_plane, load_bytes(&tables[g]), nibbles);
                add(&mut high_plane, load_bytes(&tables[4 + g]), nibbles);
            }
        }
        flush::<0>(low_plane, sums);
        flush::<8>(high_plane, sums);
    }
}

/// Table indices of the low nibbles (codes 0 to 15) and of the high ones (16 to 31).
#[inline]
#[target_feature(enable = "neon")]
fn indices(codes: &[u8; GROUP]) -> [uint8x16_t; 2] {
    let codes = load_bytes(codes);
    [vandq_u8(codes, vdupq_n_u8(15)), vshrq_n_u8::<4>(codes)]
}

/// 16-bit sums of 16 codes.
#[derive(Clone, Copy)]
struct Words {
    words: uint16x8_t,
    odds: uint16x8_t,
}

impl Words {
    #[inline]
    #[target_feature(enable = "neon")]
    fn zero() -> Words {
        Words { words: vdupq_n_u16(0), odds: vdupq_n_u16(0) }
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn add(sums: &mut [Words; 2], table: uint8x16_t, indices: [uint8x16_t; 2]) {
    for (sum, index) in sums.iter_mut().zip(indices) {
        let entries = vreinterpretq_u16_u8(vqtbl1q_u8(table, index));
        sum.words = vaddq_u16(sum.words, entries);
        sum.odds = vsraq_n_u16::<8>(sum.odds, entries);
    }
}

/// Adds the 16-bit sums, shifted left, to the 32-bit ones.
#[inline]
#[target_feature(enable = "neon")]
fn flush<const SHIFT: i32>(partial: [Words; 2], sums: &mut [u32; BATCH]) {
    let (fours, _) = sums.as_chunks_mut::<4>();
    for (Words { words, odds }, fours) in partial.into_iter().zip(fours.chunks_exact_mut(4)) {
        let evens = vsubq_u16(words, vshlq_n_u16::<8>(odds));
        let (first, second) = (vzip1q_u16(evens, odds), vzip2q_u16(evens, odds));
        let in_order = [
            vmovl_u16(vget_low_u16(first)),
            vmovl_high_u16(first),
            vmovl_u16(vget_low_u16(second)),
            vmovl_high_u16(second),
        ];
        for (sums, more) in fours.iter_mut().zip(in_order) {
            let total = vaddq_u32(load_words(sums), vshlq_n_u32::<SHIFT>(more));
            // SAFETY: the array is 16 writable bytes; the store asks for no more than its
            // alignment.
            unsafe { vst1q_u32(sums.as_mut_ptr(), total) }
        }
    }
}
