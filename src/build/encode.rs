//! Every row to its code and record, in the order of the index.
//!
//! Chunks of positions are independent: each gathers its rows, encodes them, and yields whole
//! batches of prefix codes and its records one after another, so the files are written front to
//! back while memory holds a few chunks.

use codec::{
    BATCH, Encoder, Estimator, PrefixCodes, ScalarEncoder, ScalarRanges, prefix_factors, sign_code,
};
use dataset::{Base, Rounding};
use rayon::prelude::*;
use simd::Kernels;
use std::path::Path;

use super::assign::Lists;
use super::prepare::prepare;
use super::train::Trained;
use crate::config::{Bound, Metric, RecordKind};
use crate::error::BuildError;
use crate::progress::Progress;
use crate::store::geometry::Geometry;
use crate::store::manifest::FileEntry;
use crate::store::shape::Shape;
use crate::store::writer::{FileWriter, UnitWriter, write_file};
use crate::store::{CHECKS, CODES, IDS, RECORDS, ZEROS};

/// Positions of a chunk, a multiple of the batch.
const CHUNK: usize = 64 * BATCH;

/// What encoding needs to know.
pub(crate) struct Encoding<'a> {
    pub(crate) base: &'a Base,
    pub(crate) trained: &'a Trained,
    pub(crate) lists: &'a Lists,
    pub(crate) shape: Shape,
    /// The ranges of scalar records.
    pub(crate) scales: Option<&'a ScalarRanges>,
    pub(crate) bound: Bound,
    /// External ids by row; row numbers otherwise.
    pub(crate) ids: Option<&'a [u64]>,
    pub(crate) tag: u32,
}

/// A chunk, encoded.
struct Chunk {
    codes: PrefixCodes,
    records: Vec<u8>,
    ids: Vec<u64>,
}

impl Encoding<'_> {
    /// Writes codes.bin, records.bin and, where the layout needs them, checks.bin and ids.bin.
    pub(crate) fn write(
        &self,
        dir: &Path,
        progress: &dyn Progress,
    ) -> Result<Vec<(&'static str, FileEntry)>, BuildError> {
        let geometry = self.shape.geometry();
        let mut codes = FileWriter::create(&dir.join(CODES))?;
        let mut records = UnitWriter::create(&dir.join(RECORDS), geometry, self.tag)?;
        let mut ids = if geometry.id_in_record {
            None
        } else {
            Some(UnitWriter::create(&dir.join(IDS), Geometry::ids(), self.tag)?)
        };
        let stored = self.lists.rows.len();
        let starts: Vec<usize> = (0..stored).step_by(CHUNK).collect();
        for wave in starts.chunks(rayon::current_num_threads() * 2) {
            progress.update("encode", wave[0] as u64, stored as u64);
            let chunks: Vec<Chunk> = wave
                .par_iter()
                .map(|&start| self.encode_chunk(start, (start + CHUNK).min(stored)))
                .collect::<Result<_, _>>()?;
            for chunk in &chunks {
                codes.write(chunk.codes.as_bytes())?;
                for record in chunk.records.chunks_exact(geometry.record_bytes) {
                    records.push(record)?;
                }
                if let Some(ids) = &mut ids {
                    chunk.ids.iter().try_for_each(|id| ids.push(&id.to_le_bytes()))?;
                }
            }
        }
        progress.update("encode", stored as u64, stored as u64);
        let mut files = vec![(CODES, codes.finish()?)];
        let (entry, checks) = records.finish()?;
        files.push((RECORDS, entry));
        if !checks.is_empty() {
            files.push((CHECKS, write_file(&dir.join(CHECKS), &checks)?));
        }
        if let Some(ids) = ids {
            files.push((IDS, ids.finish()?.0));
        }
        Ok(files)
    }

    fn encode_chunk(&self, start: usize, end: usize) -> Result<Chunk, BuildError> {
        let shape = &self.shape;
        let (dim, padded) = (shape.dim, shape.padded_dim);
        let geometry = shape.geometry();
        let rows = &self.lists.rows[start..end];
        let values = read_rows(self.base, rows)?;

        let mut codes = PrefixCodes::new(shape.prefix_dims, rows.len() as u64);
        let mut records = vec![0u8; rows.len() * geometry.record_bytes];
        let mut ids = Vec::with_capacity(rows.len());
        let mut list = self.lists.offsets.partition_point(|&o| o <= start as u64) - 1;
        let mut scratch = RowScratch::new(shape, self.scales, self.bound);
        let mut prepared = vec![0f32; dim];
        for (i, record) in records.chunks_exact_mut(geometry.record_bytes).enumerate() {
            while self.lists.offsets[list + 1] <= (start + i) as u64 {
                list += 1;
            }
            let row = &values[i * dim..(i + 1) * dim];
            prepared.copy_from_slice(row);
            let c = &self.trained.rotated[list * padded..(list + 1) * padded];
            residual(&mut prepared, shape.metric, self.trained, c, &mut scratch.residual);

            let id = self.ids.map_or(rows[i], |ids| ids[rows[i] as usize]);
            ids.push(id);
            let (payload, tail) = record.split_at_mut(shape.payload());
            if geometry.id_in_record {
                tail.copy_from_slice(&id.to_le_bytes());
            }
            let factors = scratch.encode(row, c, shape, payload);
            codes.set(i as u64, &scratch.prefix, factors);
        }
        Ok(Chunk { codes, records, ids })
    }
}

/// Rows of the base in the order asked for, read in their own.
pub(super) fn read_rows(base: &Base, rows: &[u64]) -> Result<Vec<f32>, BuildError> {
    let dim = base.dim();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_unstable_by_key(|&i| rows[i]);
    let sorted: Vec<u64> = order.iter().map(|&i| rows[i]).collect();
    let mut read = vec![0f32; rows.len() * dim];
    base.gather_f32(&sorted, &mut read)?;
    let mut values = vec![0f32; rows.len() * dim];
    for (from, &to) in read.chunks_exact(dim).zip(&order) {
        values[to * dim..(to + 1) * dim].copy_from_slice(from);
    }
    Ok(values)
}

/// The rotated residual of a row, which it leaves prepared, to the rotated centroid `c`.
pub(super) fn residual(row: &mut [f32], metric: Metric, t: &Trained, c: &[f32], out: &mut [f32]) {
    prepare(row, metric, &t.mean);
    t.rotation.apply(row, out);
    out.iter_mut().zip(c).for_each(|(r, c)| *r -= c);
}

/// Buffers of one chunk.
struct RowScratch {
    residual: Vec<f32>,
    signs: Vec<u8>,
    prefix: Vec<u8>,
    raw: Vec<u8>,
    encoder: Encoder,
    scalar: Option<ScalarEncoder>,
    estimator: Estimator,
}

impl RowScratch {
    fn new(shape: &Shape, scales: Option<&ScalarRanges>, bound: Bound) -> Self {
        let estimator = estimator(bound);
        Self {
            residual: vec![0.0; shape.padded_dim],
            signs: vec![0; shape.padded_dim / 8],
            prefix: vec![0; shape.prefix_dims / 8],
            raw: Vec::new(),
            encoder: Encoder::new(shape.split(), estimator),
            scalar: scales.map(|scales| ScalarEncoder::new(shape.scalar(), scales)),
            estimator,
        }
    }

    /// Writes the record of a row whose residual is in place, and leaves its prefix code.
    fn encode(&mut self, row: &[f32], c: &[f32], shape: &Shape, out: &mut [u8]) -> codec::Factors {
        if shape.record == RecordKind::Split {
            return self.encoder.encode(&self.residual, c, &mut self.prefix, out);
        }
        match &mut self.scalar {
            Some(scalar) => scalar.encode(&self.residual, c, out),
            None => self.write_raw(row, shape, out),
        }
        self.encode_prefix(c, shape)
    }

    /// Writes a raw record: the row in the record's type, and under cosine its norm. Every type a
    /// raw record may have converts to f32 and back without loss.
    fn write_raw(&mut self, row: &[f32], shape: &Shape, out: &mut [u8]) {
        let (values, norm) = out.split_at_mut(shape.raw_bytes());
        self.raw.clear();
        let whole = shape.raw_dtype().encode(row, Rounding::Clamp, &mut self.raw);
        debug_assert_eq!(whole, Ok(()));
        values.copy_from_slice(&self.raw);
        if shape.metric == Metric::Cosine {
            let length = f64::from(Kernels::best().dot(row, row)).sqrt() as f32;
            norm.copy_from_slice(&length.to_le_bytes());
        }
    }

    /// The prefix code and factors of the residual alone, for records that share nothing with them.
    fn encode_prefix(&mut self, c: &[f32], shape: &Shape) -> codec::Factors {
        sign_code(&self.residual, &mut self.signs);
        self.prefix.copy_from_slice(&self.signs[..shape.prefix_dims / 8]);
        let metric = shape.code_metric();
        prefix_factors(&self.residual, c, shape.prefix_dims, metric, self.estimator)
    }
}

/// The codec's name for a bound.
pub(crate) fn estimator(bound: Bound) -> Estimator {
    match bound {
        Bound::PerVector => Estimator::PerVector,
        Bound::Paper => Estimator::Paper,
    }
}

/// Writes zeros.bin, the ids of the rows outside the lists, ascending.
pub(crate) fn write_zeros(
    dir: &Path,
    tag: u32,
    mut ids: Vec<u64>,
) -> Result<(&'static str, FileEntry), BuildError> {
    ids.sort_unstable();
    let mut file = UnitWriter::create(&dir.join(ZEROS), Geometry::ids(), tag)?;
    ids.iter().try_for_each(|id| file.push(&id.to_le_bytes()))?;
    Ok((ZEROS, file.finish()?.0))
}
