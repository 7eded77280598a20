//! The prefix codes of an index and their factors, in memory, 32 vectors to a batch.
//!
//! ```text
//! batch b at byte b * stride, stride = 4 m + 384
//! | codes of 32 vectors, group by group: 4 m bytes | add x 32 | rescale x 32 | error x 32 |
//! ```
//!
//! The code of a group of four dims is a nibble, laid out for FastScan as `simd` draws it. Codes
//! and factors of a batch lie side by side because a scan reads both, once, front to back. A stride
//! is a multiple of 64 bytes and so is the address: no batch shares a cache line with another. The
//! bytes are the file format too (little endian), so a reader fills them in place.

use crate::sign::Factors;
use bytemuck::{Pod, Zeroable};
use simd::BatchFactors;

/// Vectors of a batch.
pub const BATCH: usize = simd::BATCH;

const FACTOR_BYTES: usize = 4 * BatchFactors::FLOATS;
const LINE: usize = 64;

#[cfg(target_endian = "big")]
compile_error!("prefix codes are used in their file format, which is little endian");

/// A cache line: makes the allocation aligned.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

/// Prefix codes and factors of `n` vectors, by position. Unused slots of the last batch are zero.
#[derive(Clone)]
pub struct PrefixCodes {
    prefix_dims: usize,
    len: u64,
    lines: Vec<Line>,
}

/// A number of bytes that does not hold the codes it should.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
#[error(
    "prefix codes of {len} vectors in {prefix_dims} dims take {expected} bytes, found {found}; \
     the file is damaged or belongs to another index"
)]
pub struct PrefixSizeError {
    /// Vectors.
    pub len: u64,
    /// Prefix dims.
    pub prefix_dims: usize,
    /// Bytes they take.
    pub expected: u64,
    /// Bytes given.
    pub found: u64,
}

impl PrefixCodes {
    /// Zeroed codes of `n` vectors in `m` dims, to be set one by one or filled by a reader through
    /// [`PrefixCodes::as_bytes_mut`]. A reader first compares [`PrefixCodes::bytes_for`] with the
    /// size of its file, so that a damaged count allocates nothing.
    ///
    /// # Panics
    /// If `m` is not a positive multiple of 64.
    pub fn new(m: usize, n: u64) -> Self {
        let lines = Self::bytes_for(m, n) as usize / LINE;
        Self { prefix_dims: m, len: n, lines: vec![Line::zeroed(); lines] }
    }

    /// A copy of what [`PrefixCodes::as_bytes`] gave.
    pub fn from_bytes(m: usize, n: u64, bytes: &[u8]) -> Result<Self, PrefixSizeError> {
        let (expected, found) = (Self::bytes_for(m, n), bytes.len() as u64);
        if expected != found {
            return Err(PrefixSizeError { len: n, prefix_dims: m, expected, found });
        }
        let mut codes = Self::new(m, n);
        codes.as_bytes_mut().copy_from_slice(bytes);
        Ok(codes)
    }

    /// Bytes that `n` vectors in `m` dims take; `u64::MAX` when that overflows.
    ///
    /// # Panics
    /// If `m` is not a positive multiple of 64.
    pub fn bytes_for(m: usize, n: u64) -> u64 {
        assert!(
            m > 0 && m.is_multiple_of(64),
            "prefix dims are a positive multiple of 64, not {m}"
        );
        n.div_ceil(BATCH as u64).saturating_mul(stride(m) as u64)
    }

    /// Vectors held.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Dims of a code, `m`.
    pub fn prefix_dims(&self) -> usize {
        self.prefix_dims
    }

    /// Batches, the last one possibly not full.
    pub fn batches(&self) -> u64 {
        self.len.div_ceil(BATCH as u64)
    }

    /// Sets the code (`m / 8` bytes) and factors of a position that was not set before.
    ///
    /// # Panics
    /// If the position or the length of the code is out of range.
    pub fn set(&mut self, position: u64, code: &[u8], factors: Factors) {
        let (batch, slot) = place(position);
        let m = self.prefix_dims;
        let stride = stride(m);
        let bytes = &mut self.as_bytes_mut()[batch * stride..][..stride];
        let (codes, floats) = bytes.split_at_mut(4 * m);
        simd::set_code(codes, m, slot, code);
        let stored = &mut BatchFactors::view_mut(bytemuck::cast_slice_mut(floats))[0];
        stored.add[slot] = factors.add;
        stored.rescale[slot] = factors.rescale;
        stored.error[slot] = factors.error;
    }

    /// Codes (`4 m` bytes) and factors of a batch.
    ///
    /// # Panics
    /// If there is no such batch.
    pub fn batch(&self, batch: u64) -> (&[u8], &BatchFactors) {
        let stride = stride(self.prefix_dims);
        let bytes = &self.as_bytes()[batch as usize * stride..][..stride];
        let (codes, floats) = bytes.split_at(4 * self.prefix_dims);
        (codes, &BatchFactors::view(bytemuck::cast_slice(floats))[0])
    }

    /// Asks for the bytes of a batch ahead of its scan; nothing happens if there is no such batch.
    #[inline]
    pub fn prefetch(&self, batch: u64) {
        let stride = stride(self.prefix_dims);
        let start = (batch as usize).saturating_mul(stride);
        if let Some(bytes) = self.as_bytes().get(start..start.saturating_add(stride)) {
            simd::prefetch(bytes);
        }
    }

    /// Copies out the code of a position (`m / 8` bytes).
    ///
    /// # Panics
    /// If the position or the length of `out` is out of range.
    pub fn code(&self, position: u64, out: &mut [u8]) {
        let (batch, slot) = place(position);
        simd::get_code(self.batch(batch as u64).0, self.prefix_dims, slot, out);
    }

    /// The factors of a position.
    ///
    /// # Panics
    /// If the position is out of range.
    pub fn factors(&self, position: u64) -> Factors {
        let (batch, slot) = place(position);
        let stored = self.batch(batch as u64).1;
        Factors { add: stored.add[slot], rescale: stored.rescale[slot], error: stored.error[slot] }
    }

    /// All bytes, as they go to a file.
    pub fn as_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.lines)
    }

    /// All bytes, for a reader to fill.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.lines)
    }

    /// Bytes held in memory.
    pub fn resident_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(self.lines.as_slice())
    }
}

impl std::fmt::Debug for PrefixCodes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrefixCodes")
            .field("prefix_dims", &self.prefix_dims)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

fn stride(m: usize) -> usize {
    4 * m + FACTOR_BYTES
}

/// Batch and slot of a position.
fn place(position: u64) -> (usize, usize) {
    ((position / BATCH as u64) as usize, (position % BATCH as u64) as usize)
}
