//! From a record to the distance it stands for.
//!
//! Distances are those of the code's domain, so that they compare with lower bounds: squared L2
//! (under cosine between unit vectors, `2 - 2 cos`), or minus the inner product with the centred
//! row. The reported score is in the metric's own terms and never goes through the centring.

use codec::{ListTerms, Query, ScalarQuery, ScalarRecord, SplitRecord};
use simd::Kernels;

use crate::config::{Metric, RecordKind};
use crate::store::shape::Shape;

/// What a record says about its vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ranked {
    /// Distance in the code's domain.
    pub(crate) distance: f32,
    /// Score in the metric's terms.
    pub(crate) score: f32,
}

/// Re-ranks the records of one query.
pub(crate) struct Rerank<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) split: SplitRecord,
    pub(crate) scalar: ScalarRecord,
    pub(crate) kernels: &'static Kernels,
    /// The rotated query.
    pub(crate) rotated: &'a Query,
    /// The same as scalar records are compared with it; empty for other records.
    pub(crate) scaled: &'a ScalarQuery,
    /// The query as raw records are compared with it: of unit length under cosine.
    pub(crate) query: &'a [f32],
    /// `<q, mean>` for inner product, else 0.
    pub(crate) mean_product: f32,
    /// What the rotated query was multiplied by, and with it every distance of inner products.
    pub(crate) stretch: f32,
}

impl Rerank<'_> {
    /// `payload` is the record without its id; `prefix_sum` and `list` are the scan's.
    pub(crate) fn rank(&self, payload: &[u8], prefix_sum: f32, list: &ListTerms) -> Ranked {
        match self.shape.record {
            RecordKind::Split => {
                let d = self.split.score(self.kernels, payload, self.rotated, prefix_sum, list);
                self.rank_code(d)
            }
            RecordKind::Sq8 | RecordKind::Sq4 => {
                self.rank_code(self.scalar.score(self.kernels, payload, self.scaled, list))
            }
            RecordKind::F32 | RecordKind::U8 => self.rank_raw(payload),
        }
    }

    fn rank_code(&self, distance: f32) -> Ranked {
        let score = match self.shape.metric {
            Metric::L2 => distance,
            Metric::Ip => self.mean_product - distance / self.stretch,
            Metric::Cosine => (1.0 - distance / 2.0).max(-1.0),
        };
        Ranked { distance, score }
    }

    fn rank_raw(&self, payload: &[u8]) -> Ranked {
        let (values, norm) = payload.split_at(self.shape.raw_bytes());
        let raw = self.shape.raw;
        match self.shape.metric {
            Metric::L2 => {
                let d = self.kernels.l2_raw(raw, self.query, values);
                Ranked { distance: d, score: d }
            }
            Metric::Ip => {
                let score = self.kernels.dot_raw(raw, self.query, values);
                Ranked { distance: (self.mean_product - score) * self.stretch, score }
            }
            Metric::Cosine => {
                let norm = norm.first_chunk().map_or(1.0, |b| f32::from_le_bytes(*b));
                let cos = self.kernels.dot_raw(raw, self.query, values) / norm;
                let score = cos.clamp(-1.0, 1.0);
                Ranked { distance: 2.0 - 2.0 * score, score }
            }
        }
    }
}
