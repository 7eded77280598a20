//! The split record: what of a code is not in memory, as one fixed-size record on disk.
//!
//! ```text
//! | signs of dims m..P, (P - m) / 8 bytes | B - 1 low bits of all P dims, by `simd::ex_pack` |
//! | add, f32 | rescale, f32 |                                             little endian
//! ```
//!
//! Together with the prefix sum `S_m` of the scan it gives the estimate of all `B` bits. The code
//! `U_j = 2^(B-1) [s_j > 0] + low_j` decodes to `v_j = U_j - (2^B - 1) / 2`, hence
//!
//! ```text
//! <v, q> = 2^(B-2) S_P + sum low_j q_j + (1/2 - 2^(B-2)) sum q_j,     S_P = S_m + suffix part
//! ```

use crate::extra::ExtraFactors;
use crate::metric::Metric;
use crate::query::Query;
use crate::scan::ListTerms;
use simd::{Kernels, ex_bytes, ex_pack};

const FACTOR_BYTES: usize = 8;

/// Shape of the split records of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitRecord {
    /// Padded dim `P`.
    pub padded: usize,
    /// Prefix dims `m`, whose signs are not in the record.
    pub prefix_dims: usize,
    /// Bits a dimension `B`, the sign included, 2 to 9.
    pub bits: u32,
    /// The distance its factors are for.
    pub metric: Metric,
}

impl SplitRecord {
    /// Bytes of a record.
    #[expect(clippy::len_without_is_empty, reason = "a record is never empty")]
    pub fn len(&self) -> usize {
        self.suffix_bytes() + ex_bytes(self.bits - 1, self.padded) + FACTOR_BYTES
    }

    fn suffix_bytes(&self) -> usize {
        (self.padded - self.prefix_dims) / 8
    }

    /// Writes the record of a vector: its sign code (`P / 8` bytes), the low bits of each dimension
    /// and the factors, as [`crate::sign_code`] and [`crate::ExtraCode`] give them.
    ///
    /// # Panics
    /// If a slice has another length than this shape asks for.
    pub fn write(&self, signs: &[u8], levels: &[u8], factors: ExtraFactors, out: &mut [u8]) {
        assert_eq!(out.len(), self.len(), "room for one record");
        assert_eq!(levels.len(), self.padded, "a level for each dimension");
        let (suffix, rest) = out.split_at_mut(self.suffix_bytes());
        suffix.copy_from_slice(&signs[self.prefix_dims / 8..]);
        let (extra, stored) = rest.split_at_mut(ex_bytes(self.bits - 1, self.padded));
        ex_pack(self.bits - 1, levels, extra);
        stored[..4].copy_from_slice(&factors.add.to_le_bytes());
        stored[4..].copy_from_slice(&factors.rescale.to_le_bytes());
    }

    /// Distance estimate from all `B` bits: squared L2, at least 0, or minus the inner product.
    ///
    /// `prefix_sum` is `S_m(Rq)`, from a scan with 16-bit tables or [`Query::prefix_sum`]; its
    /// error counts `2^(B-2)` times.
    ///
    /// # Panics
    /// If the record or the query has another length than this shape asks for.
    pub fn score(
        &self,
        kernels: &Kernels,
        record: &[u8],
        query: &Query,
        prefix_sum: f32,
        list: &ListTerms,
    ) -> f32 {
        assert_eq!(record.len(), self.len(), "one record of this shape");
        let (suffix, rest) = record.split_at(self.suffix_bytes());
        let (extra, stored) = rest.split_at(ex_bytes(self.bits - 1, self.padded));
        let q = query.rotated();

        let mut sign_sum = prefix_sum;
        if !suffix.is_empty() {
            sign_sum += kernels.sign_dot(&q[self.prefix_dims..], suffix);
        }
        let quarter = (1_u32 << self.bits) as f32 / 4.0;
        let product = quarter * sign_sum
            + kernels.ex_dot(self.bits - 1, q, extra)
            + (0.5 - quarter) * query.sum();

        let factors = read_factors(stored);
        let distance = factors.add + list.term + factors.rescale * product;
        match self.metric {
            Metric::L2 => distance.max(0.0),
            Metric::Ip => distance,
        }
    }
}

fn read_factors(stored: &[u8]) -> ExtraFactors {
    let (floats, _) = stored.as_chunks::<4>();
    ExtraFactors { add: f32::from_le_bytes(floats[0]), rescale: f32::from_le_bytes(floats[1]) }
}
