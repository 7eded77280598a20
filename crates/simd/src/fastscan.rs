//! Contract: FastScan, 32 sign codes at once against a lookup table held in registers.
//!
//! A code of `m` bits is cut into `m/4` groups of four dimensions. For each group the query has a
//! table of 16 entries, one for every value of the four bits, and a code's sum is
//!
//! ```text
//! sums[i] = sum over groups g of lut[g][nibble of code i in group g]
//! ```
//!
//! A table fits one 16-byte register, so a byte shuffle looks up 16 codes with one instruction.
//! For that the codes of a batch are stored group by group, 16 bytes each, two codes a byte:
//!
//! ```text
//!            byte 16g      16g+1           16g+15
//! group g  | c16  c0  |  c17  c1  | ... |  c31  c15  |      bit t of a nibble = sign bit of
//!            7..4 3..0   7..4 3..0         7..4 3..0        dimension 4g+t (1 = positive)
//! ```
//!
//! One byte of `lut` per entry for 8-bit tables (`lut[16g + v]`). Entries of 16 bits are split in
//! a low and a high byte, each looked up by its own shuffle; [`pack_lut16`] lays them out by four
//! groups (`m` is a multiple of 64, so there are no half quads):
//!
//! ```text
//! byte 128u + | 0 .. 63: low bytes of groups 4u .. 4u+3 | 64 .. 127: their high bytes |
//! ```
//!
//! The sums are exact: kernels that add in 16 bits carry over to 32 before they overflow.

use crate::dispatch::Kernels;

/// Codes of one batch.
pub const BATCH: usize = 32;

/// Most dimensions of a code: keeps every 16-bit-table sum below `2^31`.
pub const MAX_DIMS: usize = 65536;

/// Bytes a group takes in a batch, and entries of its table.
pub(crate) const GROUP: usize = 16;

pub(crate) type Scan = unsafe fn(&[u8], &[u8], &mut [u32; BATCH]);

impl Kernels {
    /// Sums of a batch of codes of `m` bits over 8-bit tables.
    ///
    /// `codes` is `4m` bytes, `lut` also: `m/4` tables of 16 bytes.
    ///
    /// # Panics
    /// Unless the two have one length, a multiple of 256 that is at most `4 * MAX_DIMS`.
    pub fn scan8(&self, codes: &[u8], lut: &[u8], sums: &mut [u32; BATCH]) {
        check(codes, lut, 1);
        // SAFETY: `dispatch` hands out a table only on a CPU that has its instructions.
        unsafe { (self.scan8)(codes, lut, sums) }
    }

    /// Sums of a batch of codes of `m` bits over 16-bit tables.
    ///
    /// `codes` is `4m` bytes, `lut` `8m` bytes as [`pack_lut16`] lays them out.
    ///
    /// # Panics
    /// Unless `codes.len()` is a multiple of 256, at most `4 * MAX_DIMS`, and `lut` twice as long.
    pub fn scan16(&self, codes: &[u8], lut: &[u8], sums: &mut [u32; BATCH]) {
        check(codes, lut, 2);
        // SAFETY: `dispatch` hands out a table only on a CPU that has its instructions.
        unsafe { (self.scan16)(codes, lut, sums) }
    }
}

fn check(codes: &[u8], lut: &[u8], entry_bytes: usize) {
    assert!(codes.len() <= 4 * MAX_DIMS, "batch of more than {MAX_DIMS} dimensions");
    assert_eq!(codes.len() % 256, 0, "batch of {} bytes is not whole 64-bit codes", codes.len());
    assert_eq!(lut.len(), codes.len() * entry_bytes, "lookup table of the wrong length");
}

/// Packs up to 32 codes of `m` bits into the `4m` bytes of a batch.
///
/// A code is `m/8` bytes, dimension `j` in bit `j % 8` of byte `j / 8`. Slots for which `code`
/// returns `None` are zero.
///
/// # Panics
/// Unless `m` is a multiple of 64, `out` `4m` bytes long and each code `m/8`.
pub fn pack_codes<'a>(m: usize, code: impl Fn(usize) -> Option<&'a [u8]>, out: &mut [u8]) {
    out.fill(0);
    for slot in 0..BATCH {
        if let Some(code) = code(slot) {
            set_code(out, m, slot, code);
        }
    }
}

/// Places one code in a slot of a batch that holds zeros there.
///
/// # Panics
/// As [`pack_codes`], or when `slot` is not below 32.
pub fn set_code(codes: &mut [u8], m: usize, slot: usize, code: &[u8]) {
    check_code(codes.len(), m, slot, code.len());
    let (byte, shift) = (slot % GROUP, slot / GROUP * 4);
    for (pair, &bits) in codes.as_chunks_mut::<{ 2 * GROUP }>().0.iter_mut().zip(code) {
        pair[byte] |= (bits & 15) << shift;
        pair[GROUP + byte] |= (bits >> 4) << shift;
    }
}

/// Extracts the code of one slot: the inverse of [`set_code`].
///
/// # Panics
/// As [`set_code`].
pub fn get_code(codes: &[u8], m: usize, slot: usize, out: &mut [u8]) {
    check_code(codes.len(), m, slot, out.len());
    let (byte, shift) = (slot % GROUP, slot / GROUP * 4);
    for (pair, bits) in codes.as_chunks::<{ 2 * GROUP }>().0.iter().zip(out) {
        *bits = pair[byte] >> shift & 15 | (pair[GROUP + byte] >> shift & 15) << 4;
    }
}

fn check_code(codes: usize, m: usize, slot: usize, code: usize) {
    assert!(slot < BATCH, "slot {slot} of a batch of {BATCH}");
    assert_eq!(m % 64, 0, "{m} dimensions, not a multiple of 64");
    assert_eq!(codes, m * 4, "batch of {m} dimensions has the wrong length");
    assert_eq!(code, m / 8, "code of {m} bits has the wrong length");
}

/// Splits tables of 16-bit entries into the byte planes that [`Kernels::scan16`] reads.
///
/// `lut` holds `m/4` tables of 16 entries, `out` is twice as many bytes.
///
/// # Panics
/// Unless `lut.len()` is a multiple of 64 (four tables) and `out.len() == 2 * lut.len()`.
pub fn pack_lut16(lut: &[u16], out: &mut [u8]) {
    assert_eq!(lut.len() % 64, 0, "{} table entries are not whole quads", lut.len());
    assert_eq!(out.len(), 2 * lut.len(), "packed table of the wrong length");
    for (quad, out) in lut.as_chunks::<64>().0.iter().zip(out.as_chunks_mut::<128>().0) {
        let (low, high) = out.split_at_mut(64);
        for ((low, high), entry) in low.iter_mut().zip(high).zip(quad) {
            [*low, *high] = entry.to_le_bytes();
        }
    }
}
