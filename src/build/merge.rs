//! Sorted runs to the files of the index.
//!
//! ```text
//! run 0 ┐                         ┌ prefix codes and factors, 32 to a batch ─▶ codes.bin
//! run 1 ├ least (list, distance) ─┼ records, several to a page ─▶ records.bin, checks.bin
//! run n ┘ first, then least run   └ ids, where records have no room ─▶ ids.bin
//! ```
//! Runs hold ascending ranges of rows, so that the lower run among equals is the lower row: the
//! order is by list, by distance within a list (paper §4.1), by row among equals, whatever the
//! number of runs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use codec::{BATCH, PrefixCodes};

use super::Watch;
use super::runs::{Layout, Sorted};
use crate::error::BuildError;
use crate::store::geometry::Geometry;
use crate::store::manifest::FileEntry;
use crate::store::shape::Shape;
use crate::store::writer::{FileWriter, UnitWriter, write_file};
use crate::store::{CHECKS, CODES, IDS, RECORDS};

/// Entries handled at a time, a multiple of the batch.
const CHUNK: usize = 32 * BATCH;

/// What the files are written for.
pub(crate) struct Merge<'a> {
    pub(crate) shape: Shape,
    pub(crate) tag: u32,
    /// External ids by row; row numbers otherwise.
    pub(crate) ids: Option<&'a [u64]>,
}

/// Bytes that merging takes beside the readers of the runs.
pub(crate) fn bytes(shape: &Shape) -> u64 {
    let chunk =
        CHUNK as u64 * (Layout::of(shape).bytes() as u64 + shape.prefix_dims as u64 / 8 + 12);
    let writers = 3 * crate::store::writer::WRITER_BYTES;
    chunk + writers + 2 * shape.checks_bytes()
}

/// The files being written.
struct Files {
    codes: FileWriter,
    records: UnitWriter,
    ids: Option<UnitWriter>,
}

impl Merge<'_> {
    /// Writes codes.bin, records.bin and, where the layout needs them, checks.bin and ids.bin.
    pub(crate) fn write(
        &self,
        mut runs: Vec<Sorted>,
        dir: &Path,
        watch: &Watch<'_>,
    ) -> Result<Vec<(&'static str, FileEntry)>, BuildError> {
        let mut files = self.create(dir)?;
        let mut next: BinaryHeap<Reverse<(u64, usize)>> = runs
            .iter()
            .enumerate()
            .filter_map(|(number, run)| Some(Reverse((run.key()?, number))))
            .collect();
        let entry_bytes = Layout::of(&self.shape).bytes();
        let mut chunk = Vec::with_capacity(CHUNK * entry_bytes);
        let mut done = 0;
        while let Some(Reverse((_, number))) = next.pop() {
            let run = &mut runs[number];
            run.take(&mut chunk)?;
            next.extend(run.key().map(|key| Reverse((key, number))));
            if chunk.len() == CHUNK * entry_bytes {
                watch.update("merge", done, self.shape.stored)?;
                self.write_chunk(&chunk, &mut files)?;
                done += CHUNK as u64;
                chunk.clear();
            }
        }
        self.write_chunk(&chunk, &mut files)?;
        watch.update("merge", self.shape.stored, self.shape.stored)?;
        self.finish(files, dir)
    }

    fn create(&self, dir: &Path) -> Result<Files, BuildError> {
        let geometry = self.shape.geometry();
        let ids = if geometry.id_in_record {
            None
        } else {
            Some(UnitWriter::create(&dir.join(IDS), Geometry::ids(), self.tag)?)
        };
        Ok(Files {
            codes: FileWriter::create(&dir.join(CODES))?,
            records: UnitWriter::create(&dir.join(RECORDS), geometry, self.tag)?,
            ids,
        })
    }

    fn write_chunk(&self, entries: &[u8], files: &mut Files) -> Result<(), BuildError> {
        let layout = Layout::of(&self.shape);
        let count = entries.len() / layout.bytes();
        let mut codes = PrefixCodes::new(self.shape.prefix_dims, count as u64);
        for (position, entry) in (0..).zip(entries.chunks_exact(layout.bytes())) {
            let entry = layout.read(entry);
            codes.set(position, entry.prefix, entry.factors);
            let id = self.ids.map_or(entry.row, |ids| ids[entry.row as usize]).to_le_bytes();
            match &mut files.ids {
                None => files.records.push(&[entry.payload, &id])?,
                Some(ids) => {
                    files.records.push(&[entry.payload])?;
                    ids.push(&[&id])?;
                }
            }
        }
        Ok(files.codes.write(codes.as_bytes())?)
    }

    fn finish(
        &self,
        files: Files,
        dir: &Path,
    ) -> Result<Vec<(&'static str, FileEntry)>, BuildError> {
        let mut written = vec![(CODES, files.codes.finish()?)];
        let (entry, checks) = files.records.finish()?;
        written.push((RECORDS, entry));
        if !checks.is_empty() {
            written.push((CHECKS, write_file(&dir.join(CHECKS), &checks)?));
        }
        if let Some(ids) = files.ids {
            written.push((IDS, ids.finish()?.0));
        }
        Ok(written)
    }
}
