//! Encoded rows on their way from the order of the base to the order of the index.
//!
//! ```text
//! entry   | list u32 | distance f32 | add, rescale, error f32 | prefix code | record | row u64 |
//!
//! buffer  entries in the order of the base ─ sort by (list, distance, row) ─▶ run-00000.bin ...
//! ```
//! An external sort: memory holds a buffer of entries, the disk the sorted runs that did not fit,
//! and a run is written and read from front to back. Distances are not negative, so their bits
//! sort as they do; rows of a buffer ascend, so among equals the slot decides.

use std::io;
use std::path::{Path, PathBuf};

use codec::Factors;
use fs_err::File;
use fs_err::os::unix::fs::FileExt;
use rayon::prelude::*;

use super::assign::{PLACE, Place};
use super::checkpoint::{Run, damaged};
use crate::error::BuildError;
use crate::store::manifest::FileEntry;
use crate::store::shape::Shape;
use crate::store::writer::FileWriter;

const FACTORS: usize = 12;
const ROW: usize = 8;

/// Bytes of a key that sorts entries: see [`Buffer`].
const KEY: usize = size_of::<(u64, u32)>();

/// Where the parts of an entry are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Bytes of the prefix code.
    prefix: usize,
    /// Bytes of the record without its id.
    payload: usize,
}

impl Layout {
    pub(crate) fn of(shape: &Shape) -> Self {
        Self { prefix: shape.prefix_dims / 8, payload: shape.payload() }
    }

    /// Bytes of an entry.
    pub(crate) fn bytes(self) -> usize {
        PLACE + FACTORS + self.prefix + self.payload + ROW
    }

    /// Bytes of memory an entry takes in a buffer.
    pub(crate) fn memory(self) -> u64 {
        (self.bytes() + KEY) as u64
    }

    fn factors(self) -> std::ops::Range<usize> {
        PLACE..PLACE + FACTORS
    }

    fn prefix(self) -> std::ops::Range<usize> {
        let start = PLACE + FACTORS;
        start..start + self.prefix
    }

    fn payload(self) -> std::ops::Range<usize> {
        let start = self.prefix().end;
        start..start + self.payload
    }

    /// Fills an entry; `encode` writes the prefix code and the record.
    pub(crate) fn write(
        self,
        entry: &mut [u8],
        place: Place,
        row: u64,
        encode: impl FnOnce(&mut [u8], &mut [u8]) -> Factors,
    ) {
        let (head, tail) = entry.split_at_mut(self.prefix().start);
        let (prefix, tail) = tail.split_at_mut(self.prefix);
        let (payload, tail) = tail.split_at_mut(self.payload);
        let factors = encode(prefix, payload);
        head[..PLACE].copy_from_slice(&place.to_bytes());
        for (out, value) in head[self.factors()].chunks_exact_mut(4).zip([
            factors.add,
            factors.rescale,
            factors.error,
        ]) {
            out.copy_from_slice(&value.to_le_bytes());
        }
        tail.copy_from_slice(&row.to_le_bytes());
    }

    pub(crate) fn read(self, entry: &[u8]) -> Entry<'_> {
        let float = |i: usize| {
            let bytes = entry[PLACE + 4 * i..].first_chunk().copied().unwrap_or_default();
            f32::from_le_bytes(bytes)
        };
        Entry {
            factors: Factors { add: float(0), rescale: float(1), error: float(2) },
            prefix: &entry[self.prefix()],
            payload: &entry[self.payload()],
            row: row(entry),
        }
    }
}

fn row(entry: &[u8]) -> u64 {
    u64::from_le_bytes(entry.last_chunk().copied().unwrap_or_default())
}

/// An encoded row.
pub(crate) struct Entry<'a> {
    pub(crate) factors: Factors,
    pub(crate) prefix: &'a [u8],
    /// The record without its id.
    pub(crate) payload: &'a [u8],
    pub(crate) row: u64,
}

/// What entries are sorted by: the list, then the distance.
fn key(entry: &[u8]) -> u64 {
    let place = Place::read(entry.first_chunk().unwrap_or(&[0; PLACE]));
    u64::from(place.list) << 32 | u64::from(place.distance.to_bits())
}

/// The list of a key.
pub(crate) fn list_of(key: u64) -> u32 {
    (key >> 32) as u32
}

/// Entries in memory.
pub(crate) struct Buffer {
    entry: usize,
    bytes: Vec<u8>,
    /// Key and slot of each entry, in the order of the slots until it is sorted.
    keys: Vec<(u64, u32)>,
}

impl Buffer {
    /// For at most `rows` entries; memory is touched as they come.
    pub(crate) fn new(layout: Layout, rows: usize) -> Self {
        Self {
            entry: layout.bytes(),
            bytes: vec![0; rows * layout.bytes()],
            keys: Vec::with_capacity(rows),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn room(&self) -> usize {
        self.bytes.len() / self.entry - self.keys.len()
    }

    /// Appends `rows` entries that `fill` writes.
    pub(crate) fn append(&mut self, rows: usize, fill: impl FnOnce(&mut [u8])) {
        let start = self.keys.len();
        let new = &mut self.bytes[start * self.entry..(start + rows) * self.entry];
        fill(new);
        self.keys.extend(
            (start as u32..)
                .zip(new.chunks_exact(self.entry))
                .map(|(slot, entry)| (key(entry), slot)),
        );
    }

    pub(crate) fn clear(&mut self) {
        self.keys.clear();
    }

    /// Puts the entries in order.
    pub(crate) fn sort(&mut self, pool: &rayon::ThreadPool) {
        pool.install(|| self.keys.par_sort_unstable());
    }

    /// The entry at `position` of the order.
    fn get(&self, position: usize) -> Option<&[u8]> {
        let slot = self.keys.get(position)?.1 as usize;
        Some(&self.bytes[slot * self.entry..(slot + 1) * self.entry])
    }

    /// Writes the entries in order.
    pub(crate) fn write(&self, path: &Path) -> io::Result<FileEntry> {
        let mut file = FileWriter::create(path)?;
        for position in 0..self.len() {
            file.write(self.get(position).unwrap_or_default())?;
        }
        file.finish()
    }
}

/// Entries in order, from one source, front to back.
pub(crate) enum Sorted {
    /// A buffer, and the position of its next entry.
    Memory(Buffer, usize),
    /// A run on disk.
    Disk(RunReader),
}

impl Sorted {
    /// The next entry's key.
    pub(crate) fn key(&self) -> Option<u64> {
        match self {
            Self::Memory(buffer, at) => buffer.keys.get(*at).map(|&(key, _)| key),
            Self::Disk(run) => run.entry().map(key),
        }
    }

    /// Appends the next entry to `out` and steps over it.
    pub(crate) fn take(&mut self, out: &mut Vec<u8>) -> Result<(), BuildError> {
        match self {
            Self::Memory(buffer, at) => {
                out.extend_from_slice(buffer.get(*at).unwrap_or_default());
                *at += 1;
                Ok(())
            }
            Self::Disk(run) => {
                out.extend_from_slice(run.entry().unwrap_or_default());
                run.step()
            }
        }
    }
}

/// Reads a run from front to back.
pub(crate) struct RunReader {
    file: File,
    path: PathBuf,
    run: Run,
    entry: usize,
    buffer: Vec<u8>,
    /// Where the next entry is in the buffer.
    at: usize,
    /// Bytes of the file read so far, and their checksum.
    read: u64,
    crc: u32,
}

impl RunReader {
    /// With a buffer of at most `memory` bytes, at least one entry.
    pub(crate) fn open(
        path: &Path,
        run: Run,
        layout: Layout,
        memory: u64,
    ) -> Result<Self, BuildError> {
        let entry = layout.bytes();
        super::checkpoint::check_length(path, run.file)?;
        if run.file.bytes != run.rows * entry as u64 {
            return Err(damaged(path));
        }
        let entries = (memory / entry as u64).min(run.rows).max(1) as usize;
        let mut reader = Self {
            file: File::open(path)?,
            path: path.into(),
            run,
            entry,
            buffer: Vec::with_capacity(entries * entry),
            at: 0,
            read: 0,
            crc: 0,
        };
        reader.fill()?;
        Ok(reader)
    }

    fn entry(&self) -> Option<&[u8]> {
        self.buffer.get(self.at..self.at + self.entry)
    }

    fn step(&mut self) -> Result<(), BuildError> {
        self.at += self.entry;
        if self.at < self.buffer.len() { Ok(()) } else { self.fill() }
    }

    /// Reads the next entries; at the end, compares the checksum.
    fn fill(&mut self) -> Result<(), BuildError> {
        self.at = 0;
        let left = self.run.file.bytes - self.read;
        let bytes = left.min(self.buffer.capacity() as u64 / self.entry as u64 * self.entry as u64);
        self.buffer.resize(bytes as usize, 0);
        self.file.read_exact_at(&mut self.buffer, self.read)?;
        let mut entries = self.buffer.chunks_exact(self.entry);
        if entries.any(|entry| row(entry) >= self.run.end) {
            return Err(damaged(&self.path));
        }
        self.read += bytes;
        self.crc = crc32c::crc32c_append(self.crc, &self.buffer);
        if self.read == self.run.file.bytes && self.crc != self.run.file.crc32c {
            return Err(damaged(&self.path));
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout { prefix: 8, payload: 5 };

    fn buffer(places: &[(u32, f32)], pool: &rayon::ThreadPool) -> Buffer {
        let mut buffer = Buffer::new(LAYOUT, places.len());
        buffer.append(places.len(), |bytes| {
            for (row, (entry, &(list, distance))) in
                bytes.chunks_exact_mut(LAYOUT.bytes()).zip(places).enumerate()
            {
                let place = Place { list, distance };
                LAYOUT.write(entry, place, row as u64, |prefix, payload| {
                    prefix.fill(row as u8);
                    payload.fill(row as u8 + 1);
                    Factors { add: row as f32, rescale: 2.0, error: 3.0 }
                });
            }
        });
        buffer.sort(pool);
        buffer
    }

    #[test]
    fn entries_come_back_by_list_distance_and_row_from_memory_and_from_disk() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let places = [(1, 2.0), (0, 5.0), (1, 0.0), (0, 0.5), (1, 2.0), (0, 5.0)];
        let buffer = buffer(&places, &pool);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        let file = buffer.write(&path).unwrap();
        let run = Run { rows: 6, end: 6, file };
        // A buffer of two entries is filled three times.
        let disk = RunReader::open(&path, run, LAYOUT, 2 * LAYOUT.bytes() as u64 + 1).unwrap();
        for mut sorted in [Sorted::Memory(buffer, 0), Sorted::Disk(disk)] {
            let mut rows = Vec::new();
            while sorted.key().is_some() {
                let mut bytes = Vec::new();
                sorted.take(&mut bytes).unwrap();
                let entry = LAYOUT.read(&bytes);
                assert_eq!(entry.prefix, [entry.row as u8; 8]);
                assert_eq!(entry.payload, [entry.row as u8 + 1; 5]);
                assert_eq!(entry.factors.add, entry.row as f32);
                assert_eq!((entry.factors.rescale, entry.factors.error), (2.0, 3.0));
                rows.push(entry.row);
            }
            assert_eq!(rows, [3, 1, 5, 2, 0, 4]);
        }
    }

    #[test]
    fn rows_beyond_32_bits_stay_apart() {
        let mut entry = vec![0; LAYOUT.bytes()];
        for row in [5, (1 << 32) + 5, u64::MAX] {
            let place = Place { list: 1, distance: 2.0 };
            let factors = Factors { add: 0.0, rescale: 0.0, error: 0.0 };
            LAYOUT.write(&mut entry, place, row, |_, _| factors);
            assert_eq!(LAYOUT.read(&entry).row, row);
        }
    }

    #[test]
    fn a_run_that_changed_is_refused() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let buffer = buffer(&[(0, 1.0), (0, 2.0)], &pool);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        let run = Run { rows: 2, end: 2, file: buffer.write(&path).unwrap() };
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[30] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(RunReader::open(&path, run, LAYOUT, 1 << 20).is_err());
        std::fs::write(&path, &bytes[1..]).unwrap();
        assert!(RunReader::open(&path, run, LAYOUT, 1 << 20).is_err());
    }
}
