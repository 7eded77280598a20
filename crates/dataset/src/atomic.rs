//! A file that is either complete or absent.
//!
//! ```text
//! create   .NAME.RANDOM.partial beside the target      dropped: removed
//! publish  flush, fsync, rename over the target, fsync the directory
//! ```
//! An existing target keeps its old content until the rename. Only files are replaced: a rename
//! over `/dev/null` or a pipe would put a file in its place for everybody.

use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::DatasetError;

const BUFFER_BYTES: usize = 1 << 20;

/// A file under construction.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    target: PathBuf,
    directory: PathBuf,
    file: BufWriter<NamedTempFile<fs_err::File>>,
}

impl AtomicFile {
    /// Begin a file that will appear at `target`.
    pub(crate) fn create(target: &Path) -> Result<Self, DatasetError> {
        // A link is followed, so that its target is replaced and not the link.
        let resolved = target.canonicalize();
        let target = resolved.as_deref().unwrap_or(target);
        let occupied = target.metadata().is_ok_and(|found| !found.is_file());
        let Some(name) = target.file_name().filter(|_| !occupied) else {
            return Err(DatasetError::NotReplaceable { path: target.to_path_buf() });
        };
        let directory = match target.parent() {
            Some(parent) if parent != Path::new("") => parent.to_path_buf(),
            _ => PathBuf::from("."),
        };
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        // `create_new` with the usual mode: the published file gets the permissions any other
        // program would give it, not those of a private temporary file.
        let file = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(".partial")
            .make_in(&directory, |path| {
                fs_err::OpenOptions::new().write(true).create_new(true).open(path)
            })?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(Self { target: target.to_path_buf(), directory, file })
    }

    /// Where the file will appear.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Overwrite the beginning, make everything durable and put the file in place.
    pub(crate) fn publish(mut self, head: &[u8]) -> Result<(), DatasetError> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(head)?;
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        file.persist(&self.target).map_err(|error| DatasetError::Publish {
            path: self.target.clone(),
            source: error.error,
        })?;
        fs_err::File::open(&self.directory)?.sync_all()?;
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
