//! The sizes that follow from an index's parameters: what the plan prints before a build, what the
//! build writes, and what a file must measure when it is opened.

use codec::{PrefixCodes, ScalarRanges, ScalarRecord, SplitRecord};
use dataset::Dtype;
use simd::RawType;

use super::geometry::Geometry;
use super::manifest::Manifest;
use crate::coarse::Centroids;
use crate::config::{CentroidKind, Metric, RecordKind};

/// Parameters that fix every size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) dim: usize,
    pub(crate) padded_dim: usize,
    pub(crate) prefix_dims: usize,
    pub(crate) bits: u32,
    pub(crate) metric: Metric,
    pub(crate) record: RecordKind,
    /// The type of raw records; unused by the others.
    pub(crate) raw: RawType,
    pub(crate) nlist: usize,
    pub(crate) centroids: CentroidKind,
    /// Rows in the lists.
    pub(crate) stored: u64,
    pub(crate) zero_rows: u64,
}

impl Shape {
    pub(crate) fn of(m: &Manifest) -> Option<Self> {
        Some(Self {
            dim: m.dim,
            padded_dim: m.padded_dim(),
            prefix_dims: m.prefix_dims,
            bits: m.bits,
            metric: m.metric,
            record: m.record,
            raw: raw_type(m.record, &m.dtype)?,
            nlist: m.nlist,
            centroids: m.centroids,
            stored: m.stored(),
            zero_rows: m.zero_rows,
        })
    }

    pub(crate) fn code_metric(&self) -> codec::Metric {
        self.metric.of_codes()
    }

    /// The layout of `split` records.
    pub(crate) fn split(&self) -> SplitRecord {
        SplitRecord {
            padded: self.padded_dim,
            prefix_dims: self.prefix_dims,
            bits: self.bits,
            metric: self.code_metric(),
        }
    }

    /// The layout of `sq8` and `sq4` records.
    pub(crate) fn scalar(&self) -> ScalarRecord {
        ScalarRecord {
            padded: self.padded_dim,
            bits: if self.record == RecordKind::Sq4 { 4 } else { 8 },
            metric: self.code_metric(),
        }
    }

    /// The type of raw records as data sets call it.
    pub(crate) fn raw_dtype(&self) -> Dtype {
        match self.raw {
            RawType::F32 => Dtype::F32,
            RawType::F16 => Dtype::F16,
            RawType::U8 => Dtype::U8,
            RawType::I8 => Dtype::I8,
        }
    }

    /// Bytes of raw values in a raw record; under cosine the row's norm follows them.
    pub(crate) fn raw_bytes(&self) -> usize {
        self.dim * self.raw.size()
    }

    /// Bytes of a record without its id.
    pub(crate) fn payload(&self) -> usize {
        match self.record {
            RecordKind::Split => self.split().len(),
            RecordKind::Sq8 | RecordKind::Sq4 => self.scalar().len(),
            RecordKind::F32 | RecordKind::U8 => {
                self.raw_bytes() + if self.metric == Metric::Cosine { 4 } else { 0 }
            }
        }
    }

    pub(crate) fn geometry(&self) -> Geometry {
        Geometry::with_id(self.payload())
    }

    pub(crate) fn lists_bytes(&self) -> u64 {
        (self.nlist as u64 + 1) * 8
    }

    pub(crate) fn centroids_bytes(&self) -> u64 {
        Centroids::bytes_for(self.centroids, self.padded_dim, self.nlist)
    }

    pub(crate) fn codes_bytes(&self) -> u64 {
        PrefixCodes::bytes_for(self.prefix_dims, self.stored)
    }

    /// Bytes of scales.bin, 0 unless records are scalar.
    pub(crate) fn scales_bytes(&self) -> u64 {
        if self.record.is_scalar() { ScalarRanges::bytes_for(self.padded_dim) as u64 } else { 0 }
    }

    pub(crate) fn checks_bytes(&self) -> u64 {
        self.geometry().check_table_bytes(self.stored)
    }

    pub(crate) fn records_bytes(&self) -> Option<u64> {
        self.geometry().file_bytes(self.stored)
    }

    /// Bytes of ids.bin, 0 when records hold their ids.
    pub(crate) fn ids_bytes(&self) -> u64 {
        if self.geometry().id_in_record {
            0
        } else {
            Geometry::ids().file_bytes(self.stored).unwrap_or(u64::MAX)
        }
    }

    /// Bytes of zeros.bin, 0 without zero rows.
    pub(crate) fn zeros_bytes(&self) -> u64 {
        if self.zero_rows == 0 {
            0
        } else {
            Geometry::ids().file_bytes(self.zero_rows).unwrap_or(u64::MAX)
        }
    }

    /// Bytes on SSD that only reads bring in.
    pub(crate) fn ssd_bytes(&self) -> u64 {
        self.records_bytes().unwrap_or(u64::MAX) + self.ids_bytes() + self.zeros_bytes()
    }
}

/// The type raw records keep: the input's own where the record kind allows it, integers widened
/// by `f32`. `None` for combinations no build writes.
pub(crate) fn raw_type(record: RecordKind, dtype: &str) -> Option<RawType> {
    match (record, dtype) {
        (RecordKind::F32, "f16") => Some(RawType::F16),
        (
            RecordKind::F32 | RecordKind::Split | RecordKind::Sq8 | RecordKind::Sq4,
            "f32" | "f16" | "f64" | "u8" | "i8",
        ) => Some(RawType::F32),
        (RecordKind::U8, "u8") => Some(RawType::U8),
        (RecordKind::U8, "i8") => Some(RawType::I8),
        (
            RecordKind::F32
            | RecordKind::Split
            | RecordKind::U8
            | RecordKind::Sq8
            | RecordKind::Sq4,
            _,
        ) => None,
    }
}
