//! Contract: inner product and squared L2 distance, to floats and to rows as files store them.
//!
//! Every sum of floats in this crate has one order, so that it has one value:
//!
//! ```text
//! lane[j % 16] = fma(a_j, b_j, lane[j % 16])      for j = 0, 1, 2, ...
//!
//!  0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15    lane[l] += lane[l + 8]
//!  0  1  2  3  4  5  6  7                            lane[l] += lane[l + 4]
//!  0  1  2  3                                        lane[l] += lane[l + 2]
//!  0  1                                              lane[l] += lane[l + 1]
//!  0
//! ```

use crate::dispatch::Kernels;

/// Number of lanes of every float sum.
pub(crate) const LANES: usize = 16;

pub(crate) type Distance = unsafe fn(&[f32], &[f32]) -> f32;
pub(crate) type RawDistance = unsafe fn(RawType, &[f32], &[u8]) -> f32;

/// The element type of a vector as stored: little endian, any alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RawType {
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 half precision.
    F16,
    /// Unsigned byte.
    U8,
    /// Signed byte.
    I8,
}

impl RawType {
    /// Bytes of one value.
    pub const fn size(self) -> usize {
        match self {
            RawType::F32 => 4,
            RawType::F16 => 2,
            RawType::U8 | RawType::I8 => 1,
        }
    }
}

impl Kernels {
    /// Inner product of two vectors of one length.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn dot(&self, a: &[f32], b: &[f32]) -> f32 {
        assert_eq!(a.len(), b.len(), "dot: lengths differ");
        // SAFETY: `dispatch` hands out a table only on a CPU that has its instructions.
        unsafe { (self.dot)(a, b) }
    }

    /// Squared L2 distance of two vectors of one length.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn l2(&self, a: &[f32], b: &[f32]) -> f32 {
        assert_eq!(a.len(), b.len(), "l2: lengths differ");
        // SAFETY: `dispatch` hands out a table only on a CPU that has its instructions.
        unsafe { (self.l2)(a, b) }
    }

    /// Inner product of `q` and the `q.len()` values of type `ty` stored in `x`.
    ///
    /// # Panics
    /// Unless `x.len() == q.len() * ty.size()`.
    pub fn dot_raw(&self, ty: RawType, q: &[f32], x: &[u8]) -> f32 {
        assert_eq!(x.len(), q.len() * ty.size(), "dot_raw: {ty:?} row of the wrong length");
        // SAFETY: `dispatch` hands out a table only on a CPU that has its instructions.
        unsafe { (self.dot_raw)(ty, q, x) }
    }

    /// Squared L2 distance of `q` and the `q.len()` values of type `ty` stored in `x`.
    ///
    /// # Panics
    /// Unless `x.len() == q.len() * ty.size()`.
    pub fn l2_raw(&self, ty: RawType, q: &[f32], x: &[u8]) -> f32 {
        assert_eq!(x.len(), q.len() * ty.size(), "l2_raw: {ty:?} row of the wrong length");
        // SAFETY: `dispatch` hands out a table only on a CPU that has its instructions.
        unsafe { (self.l2_raw)(ty, q, x) }
    }
}

/// A row of floats as the raw row of type `F32` it is on a little-endian machine.
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
#[inline]
pub(crate) fn as_bytes(row: &[f32]) -> &[u8] {
    // SAFETY: the bytes are those of the slice, floats have no padding, and any address is an
    // aligned one for bytes.
    unsafe { std::slice::from_raw_parts(row.as_ptr().cast(), size_of_val(row)) }
}
