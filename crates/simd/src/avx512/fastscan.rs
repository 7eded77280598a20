//! FastScan, four groups a step, with no 16-bit detour.
//!
//! `vpermb` looks bytes up in a table of 64, which is four groups' tables side by side, and
//! `vpdpbusd` adds the four bytes of each 32-bit lane to it. So if the four bytes of a lane are
//! one code in four groups, two instructions look up and add 64 nibbles without ever
//! overflowing. A batch holds its codes group after group; one more `vpermb` turns them:
//!
//! ```text
//! load    | g0: c0 c1 ... c15 | g1: c0 ... c15 | g2: c0 ... c15 | g3: c0 ... c15 |
//! turn    | c0: g0 g1 g2 g3 | c1: g0 g1 g2 g3 | ...          | c15: g0 g1 g2 g3 |
//! index     nibble | g << 4                      (low nibbles, then high ones)
//! look up   vpermb in the 64 bytes of the four tables
//! add       vpdpbusd with ones: lane i of the sum is code i (or i + 16)
//! ```
//!
//! Per four groups that is 8 instructions, against 11 for shuffle and 16-bit adds; 12 against 19
//! for 16-bit tables.

use std::arch::x86_64::*;

use super::load_bytes;
use crate::fastscan::BATCH;

/// Bytes of four groups, and of their 8-bit tables.
const QUAD: usize = 64;

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vnni")]
pub(super) fn scan8(codes: &[u8], lut: &[u8], sums: &mut [u32; BATCH]) {
    // Two sums a half: an addition takes five cycles, a step four.
    let mut even = [_mm512_setzero_si512(); 2];
    let mut odd = [_mm512_setzero_si512(); 2];
    let turn = Turn::new();
    let (codes, _) = codes.as_chunks::<{ 2 * QUAD }>();
    let (tables, _) = lut.as_chunks::<{ 2 * QUAD }>();
    for (codes, tables) in codes.iter().zip(tables) {
        let (codes, tables) = (codes.as_chunks().0, tables.as_chunks().0);
        add(&mut even, load_bytes(&tables[0]), turn.indices(&codes[0]));
        add(&mut odd, load_bytes(&tables[1]), turn.indices(&codes[1]));
    }
    let (low, high) = sums.split_at_mut(BATCH / 2);
    store_sums(low, _mm512_add_epi32(even[0], odd[0]));
    store_sums(high, _mm512_add_epi32(even[1], odd[1]));
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vnni")]
pub(super) fn scan16(codes: &[u8], lut: &[u8], sums: &mut [u32; BATCH]) {
    let mut low_plane = [_mm512_setzero_si512(); 2];
    let mut high_plane = [_mm512_setzero_si512(); 2];
    let turn = Turn::new();
    let (codes, _) = codes.as_chunks::<QUAD>();
    let (tables, _) = lut.as_chunks::<{ 2 * QUAD }>();
    for (codes, tables) in codes.iter().zip(tables) {
        let (tables, indices) = (tables.as_chunks().0, turn.indices(codes));
        add(&mut low_plane, load_bytes(&tables[0]), indices);
        add(&mut high_plane, load_bytes(&tables[1]), indices);
    }
    let join = |i: usize| _mm512_add_epi32(low_plane[i], _mm512_slli_epi32::<8>(high_plane[i]));
    let (low, high) = sums.split_at_mut(BATCH / 2);
    store_sums(low, join(0));
    store_sums(high, join(1));
}

/// Constants that turn a quad of groups into table indices.
#[derive(Clone, Copy)]
struct Turn {
    order: __m512i,
    group: __m512i,
    nibble: __m512i,
}

impl Turn {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn new() -> Turn {
        const ORDER: [u8; QUAD] = {
            let mut order = [0; QUAD];
            let mut at = 0;
            while at < QUAD {
                order[at] = (16 * (at % 4) + at / 4) as u8;
                at += 1;
            }
            order
        };
        Turn {
            order: load_bytes(&ORDER),
            group: _mm512_set1_epi32(0x3020_1000),
            nibble: _mm512_set1_epi8(15),
        }
    }

    /// Table indices of the low nibbles (codes 0 to 15) and of the high ones (16 to 31).
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn indices(self, codes: &[u8; QUAD]) -> [__m512i; 2] {
        const AND_OR: i32 = 0b1110_1010; // (a & b) | c
        let low = _mm512_permutexvar_epi8(self.order, load_bytes(codes));
        let high = _mm512_srli_epi16::<4>(low);
        [
            _mm512_ternarylogic_epi32::<AND_OR>(low, self.nibble, self.group),
            _mm512_ternarylogic_epi32::<AND_OR>(high, self.nibble, self.group),
        ]
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vnni")]
fn add(sums: &mut [__m512i; 2], tables: __m512i, indices: [__m512i; 2]) {
    for (sum, index) in sums.iter_mut().zip(indices) {
        let entries = _mm512_permutexvar_epi8(index, tables);
        *sum = _mm512_dpbusd_epi32(*sum, entries, _mm512_set1_epi8(1));
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_sums(to: &mut [u32], value: __m512i) {
    let to = &mut to[..BATCH / 2];
    // SAFETY: the slice above is 64 writable bytes; the store asks for no alignment.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), value) }
}
