//! Every row to its code and record, in one pass over the base.
//!
//! ```text
//! base ─ a wave of rows ─ rotate, less the centroid, quantise ─▶ buffer of entries (runs.rs)
//!        full buffer ─▶ sort, write as a run, checkpoint (spill.rs) ─ meanwhile fill the other
//! ```
//! When all rows fit in a buffer none is written: the sorted buffer is what the merge reads.

use codec::{Encoder, Estimator, ScalarEncoder, ScalarRanges, prefix_factors, sign_code};
use dataset::{Base, Rounding, RowSet};
use rayon::prelude::*;
use std::path::Path;

use super::Watch;
use super::assign::{Assignment, PLACE, Place, entries};
use super::checkpoint::Checkpoint;
use super::lists::Lists;
use super::memory::Memory;
use super::prepare::{length, prepare};
use super::runs::{Buffer, Layout, RunReader, Sorted};
use super::spill::Spill;
use super::train::Trained;
use crate::config::{Bound, Metric, RecordKind};
use crate::error::BuildError;
use crate::store::ZEROS;
use crate::store::geometry::Geometry;
use crate::store::manifest::FileEntry;
use crate::store::shape::Shape;
use crate::store::writer::UnitWriter;

/// What encoding needs to know.
pub(crate) struct Encoding<'a> {
    pub(crate) base: &'a Base,
    pub(crate) trained: &'a Trained,
    pub(crate) lists: &'a Lists,
    pub(crate) assignment: &'a Assignment,
    pub(crate) shape: Shape,
    /// The ranges of scalar records.
    pub(crate) scales: Option<&'a ScalarRanges>,
    pub(crate) bound: Bound,
    pub(crate) memory: &'a Memory,
    pub(crate) pool: &'a rayon::ThreadPool,
}

impl Encoding<'_> {
    /// All rows in the order of the index; runs that `checkpoint` names are not encoded again.
    pub(crate) fn run(
        &self,
        checkpoint: &mut Checkpoint,
        watch: &Watch<'_>,
    ) -> Result<Vec<Sorted>, BuildError> {
        let layout = Layout::of(&self.shape);
        if checkpoint.done.runs.is_empty() && self.memory.holds(self.shape.stored) {
            let mut all = Buffer::new(layout, self.shape.stored as usize);
            self.each_wave(0, watch, |wave| {
                all.append(wave.listed, |region| wave.encode(region));
                Ok(())
            })?;
            all.sort(self.pool);
            return Ok(vec![Sorted::Memory(all, 0)]);
        }
        self.spill(layout, checkpoint, watch)?;
        let runs = &checkpoint.done.runs;
        if runs.iter().map(|run| run.rows).sum::<u64>() != self.shape.stored {
            return Err(checkpoint.damaged());
        }
        let memory = self.memory.merge_bytes / runs.len().max(1) as u64;
        let open = |(number, run)| -> Result<Sorted, BuildError> {
            let path = checkpoint.run_path(number);
            Ok(Sorted::Disk(RunReader::open(&path, run, layout, memory)?))
        };
        runs.iter().copied().enumerate().map(open).collect()
    }

    /// Encodes what no run holds yet, run by run.
    fn spill(
        &self,
        layout: Layout,
        checkpoint: &mut Checkpoint,
        watch: &Watch<'_>,
    ) -> Result<(), BuildError> {
        let start = checkpoint.done.runs.last().map_or(0, |run| run.end);
        // A build that goes on with more memory than it began with may not have planned for runs.
        let rows = self.memory.run_rows.max(self.memory.waves.rows() as u64);
        let rows = rows.min(self.base.n() - start) as usize;
        std::thread::scope(|scope| {
            let mut spill = Spill::start(scope, layout, rows, checkpoint, self.pool)?;
            let mut end = start;
            self.each_wave(start, watch, |wave| {
                if spill.buffer().room() < wave.listed {
                    spill.next(end)?;
                }
                end = wave.end();
                spill.buffer().append(wave.listed, |region| wave.encode(region));
                Ok(())
            })?;
            spill.finish(end)
        })
    }

    /// Calls `work` for the rows from `start` on, wave by wave, with their places.
    fn each_wave(
        &self,
        start: u64,
        watch: &Watch<'_>,
        mut work: impl FnMut(Wave<'_>) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let n = self.base.n();
        let mut places = Vec::new();
        self.memory.waves.each(self.base, start..n, |start, values| {
            watch.update("encode", start, n)?;
            places.resize(values.len() / self.shape.dim * PLACE, 0);
            self.assignment.read(start, &mut places)?;
            let listed = entries(&places).filter(|place| place.is_listed()).count();
            work(Wave { encoding: self, start, values, places: &places, listed })
        })?;
        watch.update("encode", n, n)
    }
}

/// Consecutive rows and where they go.
struct Wave<'a> {
    encoding: &'a Encoding<'a>,
    start: u64,
    values: &'a mut [f32],
    places: &'a [u8],
    /// Rows of the wave that are in a list.
    listed: usize,
}

impl Wave<'_> {
    /// The first row after the wave.
    fn end(&self) -> u64 {
        self.start + (self.places.len() / PLACE) as u64
    }

    /// Fills `region` with an entry for each listed row, in their order.
    fn encode(self, mut region: &mut [u8]) {
        let encoding = self.encoding;
        let block = encoding.memory.waves.block_rows;
        let entry = Layout::of(&encoding.shape).bytes();
        let mut blocks = Vec::new();
        let rows = self.values.chunks_mut(block * encoding.shape.dim);
        for (i, (values, places)) in rows.zip(self.places.chunks(block * PLACE)).enumerate() {
            let listed = entries(places).filter(|place| place.is_listed()).count();
            let (now, later) = region.split_at_mut(listed * entry);
            blocks.push((self.start + (i * block) as u64, values, places, now));
            region = later;
        }
        encoding.pool.install(|| {
            blocks.into_par_iter().for_each_init(
                || RowScratch::new(encoding),
                |scratch, (start, values, places, out)| {
                    scratch.encode_block(start, values, places, out);
                },
            );
        });
    }
}

/// The rotated residual of a row, which it leaves prepared, to the rotated centroid `c`.
pub(super) fn residual(row: &mut [f32], metric: Metric, t: &Trained, c: &[f32], out: &mut [f32]) {
    prepare(row, metric, &t.mean);
    t.rotation.apply(row, out);
    out.iter_mut().zip(c).for_each(|(r, c)| *r -= c);
}

/// What one thread needs to encode rows.
struct RowScratch<'a> {
    encoding: &'a Encoding<'a>,
    prepared: Vec<f32>,
    centroid: Vec<f32>,
    residual: Vec<f32>,
    signs: Vec<u8>,
    raw: Vec<u8>,
    encoder: Encoder,
    scalar: Option<ScalarEncoder>,
    estimator: Estimator,
}

impl<'a> RowScratch<'a> {
    fn new(encoding: &'a Encoding<'a>) -> Self {
        let shape = &encoding.shape;
        let estimator = estimator(encoding.bound);
        Self {
            encoding,
            prepared: vec![0.0; shape.dim],
            centroid: vec![0.0; shape.padded_dim],
            residual: vec![0.0; shape.padded_dim],
            signs: vec![0; shape.padded_dim / 8],
            raw: Vec::new(),
            encoder: Encoder::new(shape.split(), estimator),
            scalar: encoding.scales.map(|scales| ScalarEncoder::new(shape.scalar(), scales)),
            estimator,
        }
    }

    /// Writes an entry for each listed row.
    fn encode_block(&mut self, start: u64, values: &[f32], places: &[u8], out: &mut [u8]) {
        let encoding = self.encoding;
        let shape = &encoding.shape;
        let layout = Layout::of(shape);
        let rows = (start..).zip(values.chunks_exact(shape.dim)).zip(entries(places));
        let listed = rows.filter(|(_, place)| place.is_listed());
        for (((row, values), place), out) in listed.zip(out.chunks_exact_mut(layout.bytes())) {
            let list = encoding.lists.position(place.list);
            let place = Place { list, ..place };
            encoding.lists.centroids.read(list, &mut self.centroid);
            self.prepared.copy_from_slice(values);
            let (metric, c) = (shape.metric, &self.centroid);
            residual(&mut self.prepared, metric, encoding.trained, c, &mut self.residual);
            layout.write(out, place, row, |prefix, record| self.encode(values, prefix, record));
        }
    }

    /// Writes the prefix code and the record of a row whose residual is in place.
    fn encode(&mut self, row: &[f32], prefix: &mut [u8], record: &mut [u8]) -> codec::Factors {
        let shape = &self.encoding.shape;
        if shape.record == RecordKind::Split {
            return self.encoder.encode(&self.residual, &self.centroid, prefix, record);
        }
        match &mut self.scalar {
            Some(scalar) => scalar.encode(&self.residual, &self.centroid, record),
            None => self.write_raw(row, record),
        }
        sign_code(&self.residual, &mut self.signs);
        prefix.copy_from_slice(&self.signs[..prefix.len()]);
        let metric = shape.code_metric();
        let (residual, c) = (&self.residual, &self.centroid);
        prefix_factors(residual, c, shape.prefix_dims, metric, self.estimator)
    }

    /// Writes a raw record: the row in the record's type, and under cosine its norm. Every type a
    /// raw record may have converts to f32 and back without loss.
    fn write_raw(&mut self, row: &[f32], out: &mut [u8]) {
        let shape = &self.encoding.shape;
        let (values, norm) = out.split_at_mut(shape.raw_bytes());
        self.raw.clear();
        let whole = shape.raw_dtype().encode(row, Rounding::Clamp, &mut self.raw);
        debug_assert_eq!(whole, Ok(()));
        values.copy_from_slice(&self.raw);
        if shape.metric == Metric::Cosine {
            norm.copy_from_slice(&(length(row) as f32).to_le_bytes());
        }
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
    zeros: &RowSet,
    ids: Option<&[u64]>,
) -> Result<(&'static str, FileEntry), BuildError> {
    let mut file = UnitWriter::create(&dir.join(ZEROS), Geometry::ids(), tag)?;
    let mut write = |id: u64| file.push(&[&id.to_le_bytes()]);
    match ids {
        None => zeros.iter().try_for_each(&mut write)?,
        Some(ids) => {
            let mut ids: Vec<u64> = zeros.iter().map(|row| ids[row as usize]).collect();
            ids.sort_unstable();
            ids.into_iter().try_for_each(&mut write)?;
        }
    }
    Ok((ZEROS, file.finish()?.0))
}
