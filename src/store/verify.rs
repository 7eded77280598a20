//! Reads everything an index has and says what is damaged.

use std::io::Read;
use std::path::Path;

use fs_err::File;
use serde::Serialize;

use super::geometry::Geometry;
use super::manifest::{FileEntry, Manifest};
use super::parts::Parts;
use super::units::Units;
use super::{IDS, RECORDS, ZEROS};
use crate::config::{Backend, Direct, OpenOptions};
use crate::error::OpenError;
use crate::progress::Progress;

const BUFFER: usize = 1 << 20;

/// What [`verify`] found.
#[derive(Clone, Debug, Serialize)]
pub struct VerifyReport {
    /// Every file of the manifest, in the order of their names.
    pub files: Vec<FileCheck>,
    /// Why the index does not open, when that is not one file's fault.
    pub problem: Option<String>,
}

impl VerifyReport {
    /// Whether everything is as it was written.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.problem.is_none() && self.files.iter().all(|f| f.ok)
    }
}

/// The state of one file.
#[derive(Clone, Debug, Serialize)]
pub struct FileCheck {
    /// Its name in the index directory.
    pub name: String,
    /// Bytes the manifest gives it.
    pub bytes: u64,
    /// Whether it is as it was written.
    pub ok: bool,
    /// What is wrong with it as a whole.
    pub problem: Option<String>,
    /// Its damaged pages of 4 KiB, from 0.
    pub bad_pages: Vec<u64>,
}

/// Reads every byte of the index at `dir` and compares it with its checksums.
///
/// # Errors
/// When there is no readable manifest to compare with.
pub fn verify(dir: &Path, progress: &dyn Progress) -> Result<VerifyReport, OpenError> {
    let manifest = Manifest::read(dir)?;
    let total: u64 = manifest.files.values().map(|f| f.bytes).fold(0, u64::saturating_add);
    let mut done = 0u64;
    let mut files = Vec::new();
    for (name, entry) in &manifest.files {
        files.push(check_file(dir, name, *entry, &mut |read| {
            done += read;
            progress.update("verify", done, total);
        }));
    }
    let o = OpenOptions { backend: Backend::Pread, direct: Direct::Off, ..OpenOptions::default() };
    let problem = match Parts::open(dir, &o) {
        Ok(parts) => {
            add_bad_pages(&mut files, RECORDS, &parts.records);
            if let Some(ids) = &parts.ids {
                add_bad_pages(&mut files, IDS, ids);
            }
            if let Some(zeros) = &parts.zeros {
                add_bad_pages(&mut files, ZEROS, zeros);
            }
            None
        }
        Err(e) => files.iter().all(|f| f.ok).then(|| e.to_string()),
    };
    Ok(VerifyReport { files, problem })
}

/// Compares a file's size and checksum with the manifest's.
fn check_file(
    dir: &Path,
    name: &str,
    entry: FileEntry,
    progress: &mut dyn FnMut(u64),
) -> FileCheck {
    let problem = match checksum(&dir.join(name), progress) {
        Err(e) => Some(e.to_string()),
        Ok((bytes, _)) if bytes != entry.bytes => {
            Some(format!("{bytes} bytes, the manifest says {}", entry.bytes))
        }
        Ok((_, crc)) if crc != entry.crc32c => {
            Some(format!("crc32c {crc:08x}, the manifest says {:08x}", entry.crc32c))
        }
        Ok(_) => None,
    };
    FileCheck {
        name: name.into(),
        bytes: entry.bytes,
        ok: problem.is_none(),
        problem,
        bad_pages: Vec::new(),
    }
}

fn checksum(path: &Path, progress: &mut dyn FnMut(u64)) -> std::io::Result<(u64, u32)> {
    if !fs_err::metadata(path)?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    let mut file = File::open(path)?;
    let mut buffer = vec![0u8; BUFFER];
    let (mut bytes, mut crc) = (0u64, 0u32);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((bytes, crc));
        }
        crc = crc32c::crc32c_append(crc, &buffer[..read]);
        bytes += read as u64;
        progress(read as u64);
    }
}

/// Looks page by page at a file that is not as it was written.
fn add_bad_pages(files: &mut [FileCheck], name: &str, units: &Units) {
    let Some(check) = files.iter_mut().find(|f| f.name == name && !f.ok) else {
        return;
    };
    let Geometry { unit_pages, .. } = units.geometry;
    let mut bytes = vec![0u8; units.geometry.unit_bytes()];
    for unit in 0..units.file.pages() / unit_pages as u64 {
        if units.read(unit, &mut bytes).is_err() || !units.intact(unit, &bytes) {
            check.bad_pages.extend(units.page(unit)..units.page(unit) + unit_pages as u64);
        }
    }
}
