//! Writes the files of an index in order, each with its length and checksum for the manifest.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use fs_err::File;

use super::geometry::{Geometry, unit_check};
use super::manifest::FileEntry;

const BUFFER: usize = 1 << 20;

/// A file written once from start to end; `finish` makes it durable.
pub(crate) struct FileWriter {
    out: BufWriter<File>,
    bytes: u64,
    crc: u32,
}

impl FileWriter {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let out = BufWriter::with_capacity(BUFFER, File::create_new(path)?);
        Ok(Self { out, bytes: 0, crc: 0 })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<FileEntry> {
        self.out.flush()?;
        self.out.get_ref().sync_all()?;
        Ok(FileEntry { bytes: self.bytes, crc32c: self.crc })
    }
}

/// Writes `bytes` as the whole file at `path`.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> io::Result<FileEntry> {
    let mut file = FileWriter::create(path)?;
    file.write(bytes)?;
    file.finish()
}

/// Packs records into the units of a paged file and seals each with its checksum.
pub(crate) struct UnitWriter {
    file: FileWriter,
    geometry: Geometry,
    tag: u32,
    unit: Vec<u8>,
    filled: usize,
    written: u64,
    checks: Vec<u8>,
}

impl UnitWriter {
    pub(crate) fn create(path: &Path, geometry: Geometry, tag: u32) -> io::Result<Self> {
        Ok(Self {
            file: FileWriter::create(path)?,
            geometry,
            tag,
            unit: vec![0; geometry.unit_bytes()],
            filled: 0,
            written: 0,
            checks: Vec::new(),
        })
    }

    /// Appends one record of `record_bytes` bytes.
    pub(crate) fn push(&mut self, record: &[u8]) -> io::Result<()> {
        let at = self.filled * self.geometry.record_bytes;
        self.unit[at..at + self.geometry.record_bytes].copy_from_slice(record);
        self.filled += 1;
        if self.filled == self.geometry.per_unit { self.seal() } else { Ok(()) }
    }

    fn seal(&mut self) -> io::Result<()> {
        let end = self.unit.len() - if self.geometry.check_in_unit { 4 } else { 0 };
        let check = unit_check(self.tag, self.written, &self.unit[..end]).to_le_bytes();
        if self.geometry.check_in_unit {
            self.unit[end..].copy_from_slice(&check);
        } else {
            self.checks.extend_from_slice(&check);
        }
        self.file.write(&self.unit)?;
        self.unit.fill(0);
        self.filled = 0;
        self.written += 1;
        Ok(())
    }

    /// Seals the last unit; returns the file's entry and the side table of checksums, empty when
    /// the units hold them.
    pub(crate) fn finish(mut self) -> io::Result<(FileEntry, Vec<u8>)> {
        if self.filled > 0 {
            self.seal()?;
        }
        Ok((self.file.finish()?, self.checks))
    }
}
