//! Writes the files of an index in order, each with its length and checksum for the manifest.
//!
//! ```text
//! caller   fill a buffer, sum its checksum ─▶ hand over ─▶ take the other one
//! thread                                      write it around the page cache ─▶ give it back
//! ```
//! A file that fits in one buffer is written by the caller; a longer one gets a thread, so that
//! the disk works while the caller computes. Direct writes keep a build of any size from filling
//! the page cache; where the file system has none, the same bytes go through it.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use fs_err::File;
use fs_err::os::unix::fs::FileExt;
use pageio::{AlignedBuf, PAGE};

use super::geometry::{Geometry, unit_check};
use super::manifest::FileEntry;

/// Pages of a buffer; large writes are what disks are good at.
const BUFFER_PAGES: usize = 256;
const BUFFER: usize = BUFFER_PAGES * PAGE;

/// Most bytes a writer holds.
pub(crate) const WRITER_BYTES: u64 = 2 * BUFFER as u64;

/// A file written once from start to end; `finish` makes it durable.
pub(crate) struct FileWriter {
    file: File,
    path: PathBuf,
    buffer: AlignedBuf,
    filled: usize,
    bytes: u64,
    crc: u32,
    background: Option<Background>,
}

/// The thread that writes, and the way to it and back.
struct Background {
    full: SyncSender<(AlignedBuf, u64)>,
    written: Receiver<io::Result<AlignedBuf>>,
    thread: JoinHandle<()>,
    /// Buffers that are on their way back.
    away: usize,
}

impl FileWriter {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: File::create_new(path)?,
            path: path.into(),
            buffer: buffer()?,
            filled: 0,
            bytes: 0,
            crc: 0,
            background: None,
        })
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        while !bytes.is_empty() {
            let room = (BUFFER - self.filled).min(bytes.len());
            let (now, later) = bytes.split_at(room);
            self.buffer[self.filled..self.filled + room].copy_from_slice(now);
            self.filled += room;
            self.bytes += room as u64;
            bytes = later;
            if self.filled == BUFFER {
                self.hand_over()?;
            }
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<FileEntry> {
        if let Some(mut background) = self.background.take() {
            while background.away > 0 {
                background.take_back()?;
            }
            drop(background.full);
            background.thread.join().map_err(|_| io::Error::other("the writing thread died"))?;
        }
        let start = self.bytes - self.filled as u64;
        self.file.write_all_at(&self.buffer[..self.filled], start)?;
        self.file.sync_all()?;
        Ok(FileEntry { bytes: self.bytes, crc32c: self.crc })
    }

    /// Gives the full buffer to the thread and goes on with another.
    fn hand_over(&mut self) -> io::Result<()> {
        let background = match &mut self.background {
            Some(background) => background,
            None => self.background.insert(Background::start(&self.path, &self.file)?),
        };
        let next = if background.away > 0 { background.take_back()? } else { buffer()? };
        let full = std::mem::replace(&mut self.buffer, next);
        background.away += 1;
        self.filled = 0;
        let start = self.bytes - BUFFER as u64;
        background.full.send((full, start)).map_err(|_| io::Error::other("the writing thread died"))
    }
}

impl Background {
    fn start(path: &Path, file: &File) -> io::Result<Self> {
        let buffered = file.try_clone()?;
        let direct = open_direct(path);
        let (full, fulls) = sync_channel::<(AlignedBuf, u64)>(1);
        let (back, written) = sync_channel(2);
        let thread = std::thread::Builder::new().name("write".into()).spawn(move || {
            let mut direct = direct;
            for (buffer, start) in fulls {
                let outcome = write_at(&mut direct, &buffered, &buffer, start);
                if back.send(outcome.map(|()| buffer)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { full, written, thread, away: 0 })
    }

    fn take_back(&mut self) -> io::Result<AlignedBuf> {
        self.away -= 1;
        self.written.recv().map_err(|_| io::Error::other("the writing thread died"))?
    }
}

/// Around the page cache as long as the file system takes it.
fn write_at(
    direct: &mut Option<File>,
    buffered: &File,
    buffer: &[u8],
    start: u64,
) -> io::Result<()> {
    if let Some(file) = direct {
        match file.write_all_at(buffer, start) {
            Err(refused) if refused.kind() == io::ErrorKind::InvalidInput => *direct = None,
            outcome => return outcome,
        }
    }
    buffered.write_all_at(buffer, start)
}

#[cfg(target_os = "linux")]
fn open_direct(path: &Path) -> Option<File> {
    let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
    let file = OpenOptions::new().write(true).custom_flags(flags).open(path).ok()?;
    Some(File::from_parts(file, path))
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_path: &Path) -> Option<File> {
    None
}

fn buffer() -> io::Result<AlignedBuf> {
    AlignedBuf::zeroed(BUFFER_PAGES).map_err(io::Error::other)
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

    /// Appends one record of `record_bytes` bytes, in parts.
    pub(crate) fn push(&mut self, record: &[&[u8]]) -> io::Result<()> {
        let mut at = self.filled * self.geometry.record_bytes;
        for part in record {
            self.unit[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn bytes_arrive_in_order_whatever_their_number() {
        let dir = tempfile::tempdir().unwrap();
        for len in [0, 1, PAGE, BUFFER - 1, BUFFER, BUFFER + 1, 5 * BUFFER + 4097] {
            let path = dir.path().join(format!("{len}"));
            let bytes: Vec<u8> = (0..len).map(|i| (i * 31 % 251) as u8).collect();
            let mut file = FileWriter::create(&path).unwrap();
            bytes.chunks(70_001).for_each(|part| file.write(part).unwrap());
            let entry = file.finish().unwrap();
            assert_eq!((entry.bytes, entry.crc32c), (len as u64, crc32c::crc32c(&bytes)));
            assert!(std::fs::read(&path).unwrap() == bytes, "{len} bytes differ");
        }
    }

    #[test]
    fn an_existing_file_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        write_file(&path, b"first").unwrap();
        let error = write_file(&path, b"second").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
    }
}
