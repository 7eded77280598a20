//! A random orthogonal rotation for any dim, in `O(P log P)`.
//!
//! The bounds of a sign code hold for a random rotation. This one is made of random signs and
//! Hadamard transforms. A Hadamard transform needs a power of two, so the padded dim is cut into
//! `t` blocks of `2^s`, `t` odd, and a fold between two rounds deals every block out evenly to all
//! the others, which a transform inside the blocks cannot do:
//!
//! ```text
//! repeat ROUNDS times:
//!     fold (not before the first round, and only if t > 1)
//!     flip the sign of every coordinate at random
//!     Hadamard transform of every block
//!
//! fold:  cut each block into segments 0, 1, 2 ..; for segment k, put the segments of blocks 0..=k
//!        in reverse order, and those of the blocks after k too
//!
//!   block 0  | a0 | a1 | a2 |                  block 0  | a0 | b1 | c2 |
//!   block 1  | b0 | b1 | b2 |    becomes       block 1  | c0 | a1 | b2 |
//!   block 2  | c0 | c1 | c2 |                  block 2  | b0 | c1 | a2 |
//! ```
//!
//! After the fold every block holds a `1/t` share of every old block, so one more transform spreads
//! any vector over all coordinates. The fold moves whole segments, in place.

use std::ops::Range;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use simd::Kernels;

/// Largest dim accepted from a file, so that a damaged header cannot ask for all memory.
const MAX_DIM: usize = simd::MAX_DIMS;
const HEADER_BYTES: usize = 16;

/// An orthogonal map from `dim` to `padded_dim` coordinates: norms and inner products are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Rotation {
    dim: usize,
    padded: usize,
    /// Size of a Hadamard block, the largest power of two that divides the padded dim.
    block: usize,
    /// For each round one factor per coordinate: a random sign over the root of the block size.
    signs: Vec<f32>,
}

/// Bytes that are no rotation.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum RotationError {
    /// Too short to hold the header.
    #[error("rotation: {found} bytes, expected at least {HEADER_BYTES}; the file is cut short")]
    Short {
        /// Bytes given.
        found: usize,
    },
    /// The header holds impossible values.
    #[error("rotation: dim {dim} in {rounds} rounds is out of range; the file is damaged")]
    Header {
        /// Dim in the header.
        dim: u64,
        /// Rounds in the header.
        rounds: u64,
    },
    /// The sign bits do not fill the rest exactly.
    #[error("rotation of dim {dim}: {found} bytes, expected {expected}; the file is damaged")]
    Length {
        /// Dim in the header.
        dim: usize,
        /// Bytes this dim and these rounds take.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
}

impl Rotation {
    /// The rotation of `dim` coordinates drawn from `seed`. A file can hold it if `dim` is in
    /// `1..=simd::MAX_DIMS`.
    pub fn new(dim: usize, seed: u64) -> Self {
        let padded = padded_dim(dim);
        let bytes = rounds_for(padded) * padded / 8;
        let mut bits = vec![0; bytes];
        Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut bits);
        Self::from_sign_bits(dim, &bits)
    }

    /// Coordinates of a vector before the rotation.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Coordinates after it: `dim` rounded up to a multiple of 64.
    pub fn padded_dim(&self) -> usize {
        self.padded
    }

    /// Bytes held in memory.
    pub fn resident_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(self.signs.as_slice())
    }

    /// Rotates `x` (dim values) into `out` (padded dim values).
    ///
    /// # Panics
    /// If a slice has another length.
    pub fn apply(&self, x: &[f32], out: &mut [f32]) {
        assert_eq!(x.len(), self.dim, "a vector of this dim");
        assert_eq!(out.len(), self.padded, "room for the padded dim");
        let kernels = Kernels::best();
        let (head, padding) = out.split_at_mut(self.dim);
        head.copy_from_slice(x);
        padding.fill(0.0);
        for (round, signs) in self.signs.chunks_exact(self.padded).enumerate() {
            if round > 0 {
                self.fold(round, out);
            }
            let blocks = out.chunks_exact_mut(self.block);
            for (block, signs) in blocks.zip(signs.chunks_exact(self.block)) {
                for (value, sign) in block.iter_mut().zip(signs) {
                    *value *= sign;
                }
                kernels.fwht(block);
            }
        }
    }

    /// Deals every block out to all the others. With more blocks than segments, segment `k` reverses
    /// as if it were `k segments^(round - 1)`, so that successive folds reach all blocks.
    fn fold(&self, round: usize, out: &mut [f32]) {
        let size = self.block;
        let blocks = self.padded / size;
        let segments = blocks.min(size);
        let stride = (1..round).fold(1, |stride, _| stride * segments % blocks);
        for segment in 0..segments {
            let columns = segment * size / segments..(segment + 1) * size / segments;
            let (first, second) = out.split_at_mut((segment * stride % blocks + 1) * size);
            reverse_blocks(first, size, columns.clone());
            reverse_blocks(second, size, columns);
        }
    }

    /// The rotation itself, not its seed: a reader needs no generator to reproduce it.
    ///
    /// `dim` and the number of rounds as u64, then the signs of each round, one bit per coordinate,
    /// least significant first, set for a negative sign; all little endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let rounds = self.signs.len() / self.padded;
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.signs.len() / 8);
        bytes.extend_from_slice(&(self.dim as u64).to_le_bytes());
        bytes.extend_from_slice(&(rounds as u64).to_le_bytes());
        let (chunks, _) = self.signs.as_chunks::<8>();
        bytes.extend(chunks.iter().map(|chunk| {
            (0..8).fold(0, |bits, i| bits | (u8::from(chunk[i].is_sign_negative()) << i))
        }));
        bytes
    }

    /// Reads what [`Rotation::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RotationError> {
        let short = RotationError::Short { found: bytes.len() };
        let Some((dim, rest)) = bytes.split_first_chunk::<8>() else { return Err(short) };
        let Some((rounds, bits)) = rest.split_first_chunk::<8>() else { return Err(short) };
        let (dim, rounds) = (u64::from_le_bytes(*dim), u64::from_le_bytes(*rounds));
        if dim == 0 || dim > MAX_DIM as u64 || rounds != rounds_for(padded_dim(dim as usize)) as u64
        {
            return Err(RotationError::Header { dim, rounds });
        }
        let dim = dim as usize;
        let expected = HEADER_BYTES + rounds as usize * padded_dim(dim) / 8;
        if bytes.len() != expected {
            return Err(RotationError::Length { dim, expected, found: bytes.len() });
        }
        Ok(Self::from_sign_bits(dim, bits))
    }

    fn from_sign_bits(dim: usize, bits: &[u8]) -> Self {
        let padded = padded_dim(dim);
        let block = 1 << padded.trailing_zeros();
        let scale = (1.0 / (block as f64).sqrt()) as f32;
        let signs = bits
            .iter()
            .flat_map(|byte| (0..8).map(move |i| if byte >> i & 1 == 1 { -scale } else { scale }))
            .collect();
        Self { dim, padded, block, signs }
    }
}

/// Reverses the order of the blocks of `size` values, in some columns only.
fn reverse_blocks(values: &mut [f32], size: usize, columns: Range<usize>) {
    let mut blocks = values.chunks_exact_mut(size);
    while let (Some(low), Some(high)) = (blocks.next(), blocks.next_back()) {
        low[columns.clone()].swap_with_slice(&mut high[columns.clone()]);
    }
}

fn padded_dim(dim: usize) -> usize {
    dim.max(1).next_multiple_of(64)
}

/// Three rounds make any vector look random when one fold reaches every block, four otherwise.
fn rounds_for(padded: usize) -> usize {
    let block = 1 << padded.trailing_zeros();
    if padded / block <= block { 3 } else { 4 }
}
