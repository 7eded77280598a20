//! One residual in, everything an index keeps of it out: prefix code, factors and record.

use crate::extra::ExtraCode;
use crate::metric::Estimator;
use crate::record::SplitRecord;
use crate::sign::{Factors, prefix_factors, sign_code};
use simd::Kernels;

/// Encodes residuals one after the other; keep one per thread, it allocates only once.
#[derive(Clone, Debug)]
pub struct Encoder {
    kernels: &'static Kernels,
    shape: SplitRecord,
    estimator: Estimator,
    extra: ExtraCode,
    signs: Vec<u8>,
}

impl Encoder {
    /// An encoder for records of this shape.
    ///
    /// # Panics
    /// If the shape has other than 2 to 9 bits.
    pub fn new(shape: SplitRecord, estimator: Estimator) -> Self {
        let signs = vec![0; shape.padded / 8];
        let extra = ExtraCode::new(shape.bits);
        Self { kernels: Kernels::best(), shape, estimator, extra, signs }
    }

    /// The shape of the records.
    pub fn shape(&self) -> SplitRecord {
        self.shape
    }

    /// Encodes the rotated residual `r` of the list of the rotated centroid `c`. Fills `prefix`
    /// (`m / 8` bytes) and `record` (the shape's length), returns the prefix factors.
    ///
    /// # Panics
    /// If a slice has another length than the shape asks for.
    pub fn encode(
        &mut self,
        r: &[f32],
        c: &[f32],
        prefix: &mut [u8],
        record: &mut [u8],
    ) -> Factors {
        let SplitRecord { prefix_dims, metric, .. } = self.shape;
        sign_code(r, &mut self.signs);
        prefix.copy_from_slice(&self.signs[..prefix_dims / 8]);
        let factors = self.extra.encode(self.kernels, r, c, metric);
        self.shape.write(&self.signs, self.extra.levels(), factors, record);
        prefix_factors(r, c, prefix_dims, metric, self.estimator)
    }
}
