//! What a build has finished, written down so that another can go on from there.
//!
//! ```text
//! scratch/checkpoint.json   what the build is of, and what is done: the file named last is whole
//! scratch/survey.bin        rows left out, zero rows          ┐
//! scratch/trained.bin       mean, centroids                   │ each made durable
//! scratch/assignment.bin    list and distance of every row    ├ before the checkpoint
//! scratch/lists.bin         rows of each list, centroids      │ names it
//! scratch/run-*.bin         sorted runs of encoded rows       ┘
//! ```
//! Nothing here affects the index: an uninterrupted build and a resumed one give the same bytes.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use dataset::{Base, Fingerprint};
use serde::{Deserialize, Serialize};

use crate::config::BuildOptions;
use crate::error::BuildError;
use crate::store::manifest::{FORMAT, FileEntry};
use crate::store::publish::sync_dir;
use crate::store::regular;
use crate::store::writer::write_file;

const CHECKPOINT: &str = "checkpoint.json";

/// What a build is of: a resumed one must be of the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Identity {
    /// Format of the index and of the scratch.
    format: (u64, u64),
    base: Fingerprint,
    /// Every option that affects the index.
    options: String,
    /// Length and checksum of the external ids.
    ids: Option<FileEntry>,
}

/// Changes whenever the files of the scratch do.
const SCRATCH_FORMAT: u64 = 1;

/// One sorted run of encoded rows.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    /// Encoded rows in it.
    pub(crate) rows: u64,
    /// The first row of the base that comes after it.
    pub(crate) end: u64,
    pub(crate) file: FileEntry,
}

/// What is done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) survey: Option<FileEntry>,
    pub(crate) trained: Option<FileEntry>,
    /// The assignment and the lists that follow from it.
    pub(crate) assigned: Option<(FileEntry, FileEntry)>,
    pub(crate) runs: Vec<Run>,
}

impl Done {
    /// Whether the runs hold rows of a base of `n`, each those after the one before.
    fn runs_follow_each_other(&self, n: u64) -> bool {
        let mut start = 0;
        self.runs.iter().all(|run| {
            let before = std::mem::replace(&mut start, run.end);
            (before + 1..=n).contains(&run.end) && (1..=run.end - before).contains(&run.rows)
        })
    }
}

/// The checkpoint of one build.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    identity: Identity,
    pub(crate) done: Done,
    #[serde(skip)]
    scratch: PathBuf,
}

impl Checkpoint {
    /// Of a build that starts.
    pub(crate) fn start(
        base: &Base,
        o: &BuildOptions,
        scratch: PathBuf,
    ) -> Result<Self, BuildError> {
        Ok(Self { identity: Identity::of(base, o)?, done: Done::default(), scratch })
    }

    /// Of a build that goes on: what is in `scratch`, if it is of this base and these options.
    /// A build that was stopped before its first checkpoint starts from the beginning.
    pub(crate) fn resume(
        base: &Base,
        o: &BuildOptions,
        scratch: PathBuf,
    ) -> Result<Self, BuildError> {
        let path = scratch.join(CHECKPOINT);
        let mut fresh = Self::start(base, o, scratch)?;
        let text = match regular::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(fresh),
            Err(error) => return Err(error.into()),
        };
        let found: Self = serde_json::from_slice(&text)
            .map_err(|error| refused(format!("{} is damaged: {error}", path.display())))?;
        found.identity.check(&fresh.identity)?;
        if !found.done.runs_follow_each_other(base.n()) {
            return Err(damaged(&path));
        }
        fresh.done = found.done;
        Ok(fresh)
    }

    /// What names the files of the scratch is not what was written.
    pub(crate) fn damaged(&self) -> BuildError {
        damaged(&self.path(CHECKPOINT))
    }

    /// Where a file of the scratch is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// Where run `number` is.
    pub(crate) fn run_path(&self, number: usize) -> PathBuf {
        self.scratch.join(format!("run-{number:05}.bin"))
    }

    /// Writes a file of the scratch, in place of one an interrupted build may have begun.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<FileEntry> {
        let path = self.path(name);
        remove_if_there(&path)?;
        write_file(&path, bytes)
    }

    /// Reads a file of the scratch back, checked.
    pub(crate) fn read(&self, name: &str, entry: FileEntry) -> Result<Vec<u8>, BuildError> {
        let path = self.path(name);
        check_length(&path, entry)?;
        let mut bytes = Vec::with_capacity(entry.bytes as usize);
        fs_err::File::open(&path)?.read_to_end(&mut bytes)?;
        if crc32c::crc32c(&bytes) != entry.crc32c {
            return Err(damaged(&path));
        }
        Ok(bytes)
    }

    /// Bytes on disk of what is done.
    pub(crate) fn bytes(&self) -> u64 {
        let Done { survey, trained, assigned, runs } = &self.done;
        let (assignment, lists) = assigned.unzip();
        let files = [*survey, *trained, assignment, lists].into_iter().flatten();
        let files = files.chain(runs.iter().map(|run| run.file));
        files.fold(0, |sum, file| sum.saturating_add(file.bytes))
    }

    /// Makes what is done durable.
    pub(crate) fn save(&self) -> Result<(), BuildError> {
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::from)?;
        let next = self.path("checkpoint.next");
        remove_if_there(&next)?;
        write_file(&next, &text)?;
        fs_err::rename(&next, self.path(CHECKPOINT))?;
        sync_dir(&self.scratch)?;
        Ok(())
    }
}

impl Identity {
    fn of(base: &Base, o: &BuildOptions) -> Result<Self, BuildError> {
        let ids = o.ids.as_ref().map(|ids| FileEntry {
            bytes: ids.len() as u64 * 8,
            crc32c: ids.iter().fold(0, |crc, id| crc32c::crc32c_append(crc, &id.to_le_bytes())),
        });
        Ok(Self {
            format: (FORMAT, SCRATCH_FORMAT),
            base: base.fingerprint()?,
            options: o.identity(),
            ids,
        })
    }

    /// Refuses to go on with a build of something else, in words.
    fn check(&self, now: &Self) -> Result<(), BuildError> {
        if self.format != now.format {
            return Err(refused(format!(
                "it was begun by another version (format {:?}, this one writes {:?})",
                self.format, now.format
            )));
        }
        let changes = self.base.changes(&now.base);
        if !changes.is_empty() {
            return Err(refused(format!("the base changed: {}", changes.join("; "))));
        }
        if self.options != now.options {
            return Err(refused(format!(
                "its options were\n  {}\nand are now\n  {}",
                self.options, now.options
            )));
        }
        if self.ids != now.ids {
            return Err(refused("the external ids (--ids) are others".into()));
        }
        Ok(())
    }
}

/// An error unless a file of the scratch is one, not a pipe, and has the length it should.
pub(crate) fn check_length(path: &Path, entry: FileEntry) -> Result<(), BuildError> {
    match fs_err::metadata(path) {
        Ok(found) if found.is_file() && found.len() == entry.bytes => Ok(()),
        Ok(_) => Err(damaged(path)),
        Err(error) => Err(error.into()),
    }
}

/// A file of the scratch is not what was written.
pub(crate) fn damaged(path: &Path) -> BuildError {
    refused(format!("{} is damaged", path.display()))
}

/// Removes a file that an earlier run may have left unfinished.
pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs_err::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

fn refused(problem: String) -> BuildError {
    BuildError::Resume { problem }
}
