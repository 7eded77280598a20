//! Sorted runs to the files of the index.
//!
//! ```text
//! run 0 ┐                         ┌ prefix codes and factors, 32 to a batch ─▶ codes.bin
//! run 1 ├ least (list, distance) ─┼ records, several to a page ─▶ records.bin, checks.bin
//! run n ┘ first, then least run   └ ids, where records have no room ─▶ ids.bin
//! ```
//! Runs hold ascending ranges of rows, so that the lower run among equals is the lower row: entries
//! come by list, by distance within a list (paper §4.1), by row among equals, whatever the number of
//! runs. They are written in that order, or each window of them in that of `locality.rs`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use codec::{BATCH, PrefixCodes};

use super::Watch;
use super::locality::{self, Locality};
use super::runs::{Layout, Sorted, list_of};
use crate::config::ListOrder;
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
    pub(crate) order: ListOrder,
}

/// Bytes that merging takes beside the readers of the runs.
pub(crate) fn bytes(shape: &Shape) -> u64 {
    let chunk =
        CHUNK as u64 * (Layout::of(shape).bytes() as u64 + shape.prefix_dims as u64 / 8 + 12);
    let window = locality::window_rows(shape) as u64 * Layout::of(shape).bytes() as u64;
    let writers = 3 * crate::store::writer::WRITER_BYTES;
    chunk + window + locality::bytes(shape) + writers + 2 * shape.checks_bytes()
}

/// The files being written.
struct Files {
    codes: FileWriter,
    records: UnitWriter,
    ids: Option<UnitWriter>,
    /// Entries on their way.
    chunk: Vec<u8>,
    /// Entries written or on their way.
    done: u64,
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
        let mut locality = Locality::new(&self.shape);
        let rows = match self.order {
            ListOrder::Locality => locality::window_rows(&self.shape),
            ListOrder::Distance => 1,
        };
        let mut window = Vec::with_capacity(rows * entry_bytes);
        while let Some(Reverse((key, number))) = next.pop() {
            let run = &mut runs[number];
            run.take(&mut window)?;
            next.extend(run.key().map(|key| Reverse((key, number))));
            let list_goes_on =
                next.peek().is_some_and(|Reverse((next, _))| list_of(*next) == list_of(key));
            if !list_goes_on || window.len() == rows * entry_bytes {
                self.write_window(&window, &mut locality, &mut files, watch)?;
                window.clear();
            }
        }
        self.write_chunk(&mut files)?;
        watch.update("merge", self.shape.stored, self.shape.stored)?;
        self.finish(files, dir)
    }

    /// Puts the entries of a window in order and passes them on.
    fn write_window(
        &self,
        window: &[u8],
        locality: &mut Locality,
        files: &mut Files,
        watch: &Watch<'_>,
    ) -> Result<(), BuildError> {
        let layout = Layout::of(&self.shape);
        let entries = || window.chunks_exact(layout.bytes());
        let alone = [0];
        let order = if window.len() == layout.bytes() {
            &alone
        } else {
            locality.arrange(entries().map(|entry| layout.read(entry).prefix), files.done)
        };
        for &row in order {
            let start = row as usize * layout.bytes();
            files.chunk.extend_from_slice(&window[start..start + layout.bytes()]);
            files.done += 1;
            if files.chunk.len() == CHUNK * layout.bytes() {
                watch.update("merge", files.done, self.shape.stored)?;
                self.write_chunk(files)?;
            }
        }
        Ok(())
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
            chunk: Vec::with_capacity(CHUNK * Layout::of(&self.shape).bytes()),
            done: 0,
        })
    }

    fn write_chunk(&self, files: &mut Files) -> Result<(), BuildError> {
        let layout = Layout::of(&self.shape);
        let count = files.chunk.len() / layout.bytes();
        let mut codes = PrefixCodes::new(self.shape.prefix_dims, count as u64);
        for (position, entry) in (0..).zip(files.chunk.chunks_exact(layout.bytes())) {
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
        files.chunk.clear();
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
