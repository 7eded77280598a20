//! What an index is: parameters, sizes, and how it is read.

use std::collections::BTreeMap;
use std::path::Path;

use pageio::PageFile;
use serde::Serialize;

use crate::config::OpenOptions;
use crate::config::{Bound, CentroidKind, CoarseKind, ListOrder, Metric, RecordKind};
use crate::error::OpenError;
use crate::store::manifest::Manifest;
use crate::store::parts::{Outline, Parts};
use crate::store::shape::Shape;

/// A description of an open index.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct IndexInfo {
    /// Format version of its files.
    pub format: u64,
    /// Identity of parameters and data.
    pub uuid: String,
    /// Rows.
    pub n: u64,
    /// Values in a row.
    pub dim: usize,
    /// dim rounded up to a multiple of 64.
    pub padded_dim: usize,
    /// How vectors are compared.
    pub metric: Metric,
    /// Type of the values it was built from.
    pub dtype: String,
    /// What records hold.
    pub record: RecordKind,
    /// Bits per dimension of `split` records.
    pub bits: u32,
    /// Dims of each sign code in RAM.
    pub prefix_dims: usize,
    /// Which bound the prefix factors hold.
    pub bound: Bound,
    /// In which order the records of a list are packed.
    pub list_order: ListOrder,
    /// What centroids are in RAM.
    pub centroids: CentroidKind,
    /// Inverted lists.
    pub nlist: usize,
    /// The coarse quantizer.
    pub coarse: CoarseKind,
    /// Seed of the build.
    pub seed: u64,
    /// Zero rows under cosine, kept outside the lists.
    pub zero_rows: u64,
    /// Invalid rows left out.
    pub skipped_rows: u64,
    /// Whether ids are the caller's own; row numbers otherwise.
    pub external_ids: bool,
    /// Whether records hold their ids; else the winners' ids are read from a file.
    pub ids_in_records: bool,
    /// Bytes in RAM, scratch and read buffers of the threads apart.
    pub resident_bytes: u64,
    /// The same by part.
    pub resident: BTreeMap<String, u64>,
    /// Bytes on SSD that searches read from.
    pub ssd_bytes: u64,
    /// Bytes of a record, its id included when it has room.
    pub record_bytes: usize,
    /// Records in a page (1 when a record takes several).
    pub records_per_page: usize,
    /// Pages of a record (1 when several share one).
    pub pages_per_record: usize,
    /// Rows of the lists.
    pub list_sizes: ListSizes,
    /// What carries the reads.
    pub io_backend: String,
    /// Whether reads go around the page cache.
    pub direct: bool,
    /// What was tried before and why it did not work.
    pub io_notes: Vec<String>,
    /// Instruction set of the kernels.
    pub kernels: String,
}

/// How rows are spread over the lists.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ListSizes {
    /// Rows of the smallest list.
    pub min: u64,
    /// Mean rows.
    pub mean: f64,
    /// 99 % of the lists have at most this many rows.
    pub p99: u64,
    /// Rows of the largest list.
    pub max: u64,
}

impl ListSizes {
    fn of(offsets: &[u64]) -> Self {
        let mut sizes: Vec<u64> = offsets.windows(2).map(|w| w[1] - w[0]).collect();
        sizes.sort_unstable();
        let (Some(&min), Some(&max)) = (sizes.first(), sizes.last()) else {
            return Self::default();
        };
        let rank = (sizes.len() * 99).div_ceil(100).max(1) - 1;
        let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
        Self { min, mean, p99: sizes[rank], max }
    }
}

impl IndexInfo {
    /// Of an index that is not opened: what searches hold in RAM is not read, however large.
    ///
    /// # Errors
    /// See [`OpenError`]; of the files, manifest, list table and sizes are checked.
    pub fn read(dir: &Path, o: &OpenOptions) -> Result<Self, OpenError> {
        let outline = Outline::open(dir, o)?;
        let resident = outline.resident();
        let Outline { manifest, shape, offsets, records } = &outline;
        Ok(Self::new(manifest, shape, offsets, records, resident))
    }

    pub(crate) fn of(parts: &Parts) -> Self {
        let Parts { manifest, shape, offsets, records, .. } = parts;
        Self::new(manifest, shape, offsets, &records.file, parts.resident())
    }

    fn new(
        m: &Manifest,
        shape: &Shape,
        offsets: &[u64],
        file: &PageFile,
        resident: Vec<(&'static str, u64)>,
    ) -> Self {
        let geometry = shape.geometry();
        Self {
            format: m.format,
            uuid: m.uuid.clone(),
            n: m.n,
            dim: m.dim,
            padded_dim: m.padded_dim(),
            metric: m.metric,
            dtype: m.dtype.clone(),
            record: m.record,
            bits: m.bits,
            prefix_dims: m.prefix_dims,
            bound: m.bound,
            list_order: m.list_order,
            centroids: m.centroids,
            nlist: m.nlist,
            coarse: m.coarse,
            seed: m.seed,
            zero_rows: m.zero_rows,
            skipped_rows: m.skipped_rows,
            external_ids: m.external_ids,
            ids_in_records: geometry.id_in_record,
            resident_bytes: resident.iter().map(|(_, bytes)| bytes).sum(),
            resident: resident.into_iter().map(|(name, b)| (name.to_string(), b)).collect(),
            ssd_bytes: shape.ssd_bytes(),
            record_bytes: geometry.record_bytes,
            records_per_page: geometry.per_unit,
            pages_per_record: geometry.unit_pages,
            list_sizes: ListSizes::of(offsets),
            io_backend: file.backend().to_string(),
            direct: file.direct(),
            io_notes: file.why(),
            kernels: simd::Kernels::best().isa().to_string(),
        }
    }
}
