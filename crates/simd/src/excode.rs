//! Contract: the extra code, `width` = B-1 bits a dimension below the sign, and the sign itself.
//!
//! Dimensions come in blocks of 64, a block takes `8 * width` bytes, and inside it the bits of a
//! level lie in planes of 8, 4, 2 or 1 bits, lowest bits first, so that unpacking needs only
//! shifts and masks, 16 dimensions at a time:
//!
//! ```text
//! width   planes, in this order (bits of the level)
//!   1     1 (0)
//!   2     2 (0-1)
//!   3     2 (0-1), 1 (2)             8-bit plane, 64 bytes   byte i = dim i
//!   4     4 (0-3)                    4-bit plane, 32 bytes   byte i = dim i | dim i+32 << 4
//!   5     4 (0-3), 1 (4)             2-bit plane, 16 bytes   byte i = dim i | dim i+16 << 2
//!   6     4 (0-3), 2 (4-5)                                     | dim i+32 << 4 | dim i+48 << 6
//!   7     4 (0-3), 2 (4-5), 1 (6)    1-bit plane,  8 bytes   bit i of byte b = dim 8b+i
//!   8     8 (0-7)
//! ```
//!
//! A sign code is a 1-bit plane per block, that is bit `j` of byte `j / 8`, least significant
//! first. Sums run in the 16-lane order of `distance`.

use crate::dispatch::Kernels;

/// Dimensions of one block.
pub(crate) const BLOCK: usize = 64;

pub(crate) type ExDot = unsafe fn(u32, &[f32], &[u8]) -> f32;
pub(crate) type SignDot = unsafe fn(&[f32], &[u8]) -> f32;
pub(crate) type CodeScore = unsafe fn(&[f32], f32, f32) -> (f32, f32);

impl Kernels {
    /// `sum level_j * q_j` over a code of `width` bits a dimension, levels `0..2^width`.
    ///
    /// # Panics
    /// Unless `width` is in `1..=8`, `q.len()` a multiple of 64 and
    /// `code.len() == ex_bytes(width, q.len())`.
    pub fn ex_dot(&self, width: u32, q: &[f32], code: &[u8]) -> f32 {
        check(width, q.len(), code.len());
        // SAFETY: `dispatch` hands out a table only on a CPU that has its instructions.
        unsafe { (self.ex_dot)(width, q, code) }
    }

    /// `sum of (bit_j ? +q_j : -q_j)`, the inner product with a sign code.
    ///
    /// # Panics
    /// Unless `q.len()` is a multiple of 64 and `bits.len() == q.len() / 8`.
    pub fn sign_dot(&self, q: &[f32], bits: &[u8]) -> f32 {
        check(1, q.len(), bits.len());
        // SAFETY: `dispatch` hands out a table only on a CPU that has its instructions.
        unsafe { (self.sign_dot)(q, bits) }
    }

    /// How well the scale `t` codes the magnitudes `a` with `half` levels each:
    /// `(sum v_j a_j, sum v_j^2)` where `v_j = min(floor(t a_j), half - 1) + 0.5`.
    ///
    /// The cosine the scale reaches is the first over the root of the second times `|a|`.
    /// `a` may have any length.
    ///
    /// # Panics
    /// Unless `half` is in `1..=2^16`. It must be whole, and `t` and all of `a` at least 0, or else
    /// the sums are unspecified: looking at every value would cost as much as the sums.
    pub fn code_score(&self, a: &[f32], t: f32, half: f32) -> (f32, f32) {
        assert!((1.0..=65536.0).contains(&half), "code_score: {half} levels");
        // SAFETY: `dispatch` hands out a table only on a CPU that has its instructions.
        unsafe { (self.code_score)(a, t, half) }
    }
}

/// Bytes of a code of `width` bits for each of `dims` dimensions, a multiple of 64.
pub const fn ex_bytes(width: u32, dims: usize) -> usize {
    dims / 8 * width as usize
}

/// Packs one level a byte into a code; bits of a level above `width` are dropped.
///
/// # Panics
/// Unless `width` is in `1..=8`, `levels.len()` a multiple of 64 and
/// `out.len() == ex_bytes(width, levels.len())`.
pub fn ex_pack(width: u32, levels: &[u8], out: &mut [u8]) {
    check(width, levels.len(), out.len());
    let (blocks, _) = levels.as_chunks::<BLOCK>();
    for (block, out) in blocks.iter().zip(out.chunks_exact_mut(ex_bytes(width, BLOCK))) {
        let mut at = 0;
        for (low, bits) in planes(width) {
            let plane = &mut out[at..at + 8 * bits as usize];
            pack_plane(bits, block, low, plane);
            at += plane.len();
        }
    }
}

/// Unpacks a code into one level a byte: the inverse of [`ex_pack`].
///
/// # Panics
/// As [`ex_pack`].
pub fn ex_unpack(width: u32, code: &[u8], levels: &mut [u8]) {
    check(width, levels.len(), code.len());
    let (blocks, _) = levels.as_chunks_mut::<BLOCK>();
    for (code, block) in code.chunks_exact(ex_bytes(width, BLOCK)).zip(blocks) {
        unpack_block(width, code, block);
    }
}

/// Unpacks one block of 64 levels from its `8 * width` bytes.
pub(crate) fn unpack_block(width: u32, code: &[u8], block: &mut [u8; BLOCK]) {
    *block = [0; BLOCK];
    let mut at = 0;
    for (low, bits) in planes(width) {
        let plane = &code[at..at + 8 * bits as usize];
        for (dim, level) in block.iter_mut().enumerate() {
            let (byte, shift) = place(bits, dim);
            *level |= (plane[byte] >> shift & mask(bits)) << low;
        }
        at += plane.len();
    }
}

/// Writes the plane of the `bits` bits from `low` on. Written out for each plane, in loops that
/// compilers vectorise: dimension by dimension it took a tenth of the time to encode a vector.
fn pack_plane(bits: u32, block: &[u8; BLOCK], low: u32, plane: &mut [u8]) {
    let part = |dim: usize| block[dim] >> low & mask(bits);
    match bits {
        8 => plane.copy_from_slice(block),
        4 => plane.iter_mut().enumerate().for_each(|(i, byte)| {
            *byte = part(i) | part(i + 32) << 4;
        }),
        2 => plane.iter_mut().enumerate().for_each(|(i, byte)| {
            *byte = part(i) | part(i + 16) << 2 | part(i + 32) << 4 | part(i + 48) << 6;
        }),
        _ => plane.iter_mut().enumerate().for_each(|(i, byte)| {
            *byte = (0..8).fold(0, |byte, bit| byte | part(8 * i + bit) << bit);
        }),
    }
}

/// The planes of a width, as (lowest bit of the level, bits).
fn planes(width: u32) -> impl Iterator<Item = (u32, u32)> {
    let mut low = 0;
    [8, 4, 2, 1].into_iter().filter(move |bits| width & bits != 0).map(move |bits| {
        low += bits;
        (low - bits, bits)
    })
}

/// Where a plane of `bits` bits holds a dimension: (byte, shift).
fn place(bits: u32, dim: usize) -> (usize, u32) {
    if bits == 1 {
        return (dim / 8, (dim % 8) as u32);
    }
    let bytes = 8 * bits as usize;
    (dim % bytes, (dim / bytes) as u32 * bits)
}

fn mask(bits: u32) -> u8 {
    (0xff_u16 >> (8 - bits)) as u8
}

fn check(width: u32, dims: usize, bytes: usize) {
    assert!((1..=8).contains(&width), "extra code of {width} bits, not 1 to 8");
    assert_eq!(dims % BLOCK, 0, "{dims} dimensions, not a multiple of 64");
    assert_eq!(bytes, ex_bytes(width, dims), "code of {width} bits has the wrong length");
}
