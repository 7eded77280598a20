//! The scalar record: the whole residual, each dim rounded on its own (paper §5.5).
//!
//! ```text
//! | levels u_j of all P dims, 8 or 4 bits each, by `simd::ex_pack` | add, f32 |    little endian
//! ```
//!
//! A level stands for `r^_j = low_j + step_j u_j`, so with the ranges folded into the query once,
//! a product costs one kernel call a record:
//!
//! ```text
//! <Rq, r^> = sum low_j q_j + sum u_j (step_j q_j)
//! ```
//!
//! The build knows `r`, so everything but `<r, y>` is exact: of the rounding `e = r^ - r` only
//! `<e, y>` is left in the distance. (Taking `|r^ - y|²` for the distance adds `|e|²`, and taking it
//! out again leaves `2 <e, r>`, which is not small at 4 bits: clipping makes `e` lean against `r`.)
//!
//! ```text
//! L2    N² + Y² - 2 <r^, y>           = add + Y² - 2 <Rq, r^>        add = N² + 2 <Rc, r^>
//! IP    -<q, c> - <Rc, r> - <r^, y>   = add - <q, c> - <Rq, r^>      add = <Rc, r^ - r>
//! ```

use crate::metric::Metric;
use crate::ranges::{ScalarRange, ScalarRanges, top_level};
use crate::scan::ListTerms;
use crate::sums::{sum_each, sum_pairs};
use simd::{Kernels, ex_bytes, ex_pack};

const FACTOR_BYTES: usize = 4;

/// Shape of the scalar records of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalarRecord {
    /// Padded dim `P`.
    pub padded: usize,
    /// Bits a dimension, 8 or 4.
    pub bits: u32,
    /// The distance its factor is for.
    pub metric: Metric,
}

impl ScalarRecord {
    /// Bytes of a record.
    #[expect(clippy::len_without_is_empty, reason = "a record is never empty")]
    pub fn len(&self) -> usize {
        ex_bytes(self.bits, self.padded) + FACTOR_BYTES
    }

    /// Distance estimate: squared L2, at least 0, or minus the inner product.
    ///
    /// # Panics
    /// If the record or the query has another length than this shape asks for.
    pub fn score(
        &self,
        kernels: &Kernels,
        record: &[u8],
        query: &ScalarQuery,
        list: &ListTerms,
    ) -> f32 {
        assert_eq!(record.len(), self.len(), "one record of this shape");
        let (levels, stored) = record.split_at(ex_bytes(self.bits, self.padded));
        let add = stored.first_chunk().map_or(0.0, |bytes| f32::from_le_bytes(*bytes));
        let product = query.base + kernels.ex_dot(self.bits, &query.scaled, levels);
        match self.metric {
            Metric::L2 => (add + list.term - 2.0 * product).max(0.0),
            Metric::Ip => add + list.term - product,
        }
    }
}

/// A rotated query with the ranges of an index folded in. Reusable: [`ScalarQuery::prepare`]
/// allocates only when it grows.
#[derive(Clone, Debug, Default)]
pub struct ScalarQuery {
    /// `step_j q_j`.
    scaled: Vec<f32>,
    /// `sum low_j q_j`.
    base: f32,
}

impl ScalarQuery {
    /// Takes the rotated query.
    ///
    /// # Panics
    /// If the query has another length than the ranges.
    pub fn prepare(&mut self, ranges: &ScalarRanges, rotated: &[f32]) {
        self.base = sum_pairs(&ranges.low, rotated, |low, q| low * q) as f32;
        self.scaled.clear();
        self.scaled.extend(ranges.step.iter().zip(rotated).map(|(step, q)| step * q));
    }
}

/// Encodes residuals one after the other; keep one per thread, it allocates only once.
#[derive(Clone, Debug)]
pub struct ScalarEncoder {
    shape: ScalarRecord,
    /// Each dim's range and its levels per unit.
    ranges: Vec<(ScalarRange, f32)>,
    levels: Vec<u8>,
    decoded: Vec<f32>,
}

impl ScalarEncoder {
    /// An encoder for records of this shape.
    ///
    /// # Panics
    /// If the ranges are for another padded dim.
    pub fn new(shape: ScalarRecord, ranges: &ScalarRanges) -> Self {
        assert_eq!(ranges.padded(), shape.padded, "a range for each dimension");
        let ranges = (0..shape.padded).map(|dim| ranges.range(dim));
        Self {
            shape,
            ranges: ranges.map(|range| (range, range.inverse())).collect(),
            levels: vec![0; shape.padded],
            decoded: vec![0.0; shape.padded],
        }
    }

    /// Encodes the rotated residual `r` of the list of the rotated centroid `c` into `record`, of
    /// the shape's length.
    ///
    /// # Panics
    /// If a slice has another length than the shape asks for.
    pub fn encode(&mut self, r: &[f32], c: &[f32], record: &mut [u8]) {
        assert_eq!(r.len(), self.shape.padded, "a residual of this shape");
        assert_eq!(record.len(), self.shape.len(), "room for one record");
        let top = top_level(self.shape.bits);
        let coded = self.levels.iter_mut().zip(&mut self.decoded);
        for ((&r, &(range, inverse)), (level, decoded)) in r.iter().zip(&self.ranges).zip(coded) {
            (*level, *decoded) = range.quantise(inverse, top, r);
        }
        let (levels, stored) = record.split_at_mut(ex_bytes(self.shape.bits, self.shape.padded));
        ex_pack(self.shape.bits, &self.levels, levels);
        stored.copy_from_slice(&self.add(r, c).to_le_bytes());
    }

    fn add(&self, r: &[f32], c: &[f32]) -> f32 {
        let with_centre = sum_pairs(&self.decoded, c, |d, c| d * c);
        let add = match self.shape.metric {
            Metric::L2 => sum_each(r, |r| r * r) + 2.0 * with_centre,
            Metric::Ip => with_centre - sum_pairs(c, r, |c, r| c * r),
        };
        add as f32
    }
}
