//! An index appears whole or not at all: it is written under a name of its own beside its target
//! and put into place when every byte is on disk.
//!
//! ```text
//! .NAME.partial/            the files of the index, as they are finished
//! .NAME.partial/scratch/    what only the build needs: its checkpoint, intermediate files
//!
//! publish   remove scratch ─▶ fsync ─▶ rename .NAME.partial to NAME
//!           or, where NAME is an index to be replaced: exchange the two, remove the old one
//! ```
//! A draft is locked while a build works on it. One that a killed build left behind is where
//! `--resume` goes on; a build without it starts over.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::error::BuildError;

/// Where a draft keeps what does not belong to the index.
const SCRATCH: &str = "scratch";

/// A directory being written. Dropping it unpublished removes it, unless it is kept.
pub(crate) struct Draft {
    dir: PathBuf,
    target: PathBuf,
    overwrite: bool,
    /// Holds the lock on the directory.
    _lock: File,
    remove: bool,
}

impl Draft {
    /// Starts a draft for `target`, or takes up the one a build left there. An existing target is
    /// an error unless `overwrite`, and then must be an index (or empty), so that a slip of the
    /// hand never replaces other data.
    pub(crate) fn create(target: &Path, overwrite: bool, resume: bool) -> Result<Self, BuildError> {
        // Without a slash at its end, which would hide a file of this name until the rename.
        let target = &target.components().collect::<PathBuf>();
        check_target(target, overwrite)?;
        let dir = partial(target);
        let (lock, found) = lock(&dir, target)?;
        let draft =
            Self { dir, target: target.into(), overwrite, _lock: lock, remove: !(resume && found) };
        if resume && !found {
            return Err(BuildError::NothingToResume(target.into()));
        }
        if !resume {
            clear(&draft.dir)?;
        }
        fs_err::create_dir_all(draft.scratch())?;
        Ok(draft)
    }

    /// Where the files of the index go.
    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    /// Where everything else goes.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.dir.join(SCRATCH)
    }

    /// Leaves the draft where it is, for a later build to resume.
    pub(crate) fn keep(mut self) {
        self.remove = false;
    }

    /// From now on the draft is removed unless it is published or kept.
    pub(crate) fn remove_on_drop(&mut self) {
        self.remove = true;
    }

    /// Removes the files of the index that an earlier run wrote, but not its scratch.
    pub(crate) fn clear_files(&self) -> io::Result<()> {
        for entry in fs_err::read_dir(&self.dir)? {
            let entry = entry?;
            if entry.file_name() != SCRATCH {
                fs_err::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Makes the draft the index. Whenever this stops, the target is the old index or the new one,
    /// whole.
    pub(crate) fn publish(mut self) -> io::Result<()> {
        fs_err::remove_dir_all(self.scratch())?;
        sync_dir(&self.dir)?;
        if self.overwrite && self.target.symlink_metadata().is_ok() {
            match renameat_with(CWD, &self.dir, CWD, &self.target, RenameFlags::EXCHANGE) {
                Ok(()) => {
                    sync_dir(parent(&self.target))?;
                    // The draft's name is the old index's now.
                    fs_err::remove_dir_all(&self.dir)?;
                }
                Err(Errno::INVAL | Errno::NOSYS) => self.replace_in_two_steps()?,
                Err(error) => return Err(at(error, &self.target)),
            }
        } else {
            let flags = RenameFlags::NOREPLACE;
            match renameat_with(CWD, &self.dir, CWD, &self.target, flags) {
                Ok(()) => {}
                Err(Errno::INVAL | Errno::NOSYS) => fs_err::rename(&self.dir, &self.target)?,
                Err(error) => return Err(at(error, &self.target)),
            }
        }
        self.remove = false;
        sync_dir(parent(&self.target))
    }

    /// For file systems that cannot exchange two directories: the old index is moved aside first,
    /// and back should the new one not take its place.
    fn replace_in_two_steps(&self) -> io::Result<()> {
        let aside = tempfile::Builder::new().prefix(".replaced-").tempdir_in(parent(&self.dir))?;
        let old = aside.path().join("index");
        fs_err::rename(&self.target, &old)?;
        if let Err(error) = fs_err::rename(&self.dir, &self.target) {
            fs_err::rename(&old, &self.target)?;
            return Err(error);
        }
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.remove {
            // Nobody is left to tell; what stays is removed by the next build of this target.
            let _ = fs_err::remove_dir_all(&self.dir);
        }
    }
}

/// Whether a build of `target` was stopped and left something to go on from.
#[must_use]
pub fn unfinished(target: &Path) -> bool {
    partial(&target.components().collect::<PathBuf>()).join(SCRATCH).is_dir()
}

/// Removes what a stopped build of `target` left, for those who will not go on from it.
///
/// # Errors
/// [`BuildError::Busy`] while a build of `target` is at work.
pub fn discard(target: &Path) -> Result<(), BuildError> {
    let target = &target.components().collect::<PathBuf>();
    let dir = partial(target);
    if dir.is_dir() {
        let (_lock, _) = lock(&dir, target)?;
        fs_err::remove_dir_all(&dir)?;
    }
    Ok(())
}

/// The draft's name. Fixed, so that the next build finds it.
fn partial(target: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(".partial");
    parent(target).join(name)
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn check_target(target: &Path, overwrite: bool) -> Result<(), BuildError> {
    if target.symlink_metadata().is_err() {
        return Ok(());
    }
    if !overwrite {
        return Err(BuildError::Exists(target.into()));
    }
    if replaceable(target)? {
        return Ok(());
    }
    Err(BuildError::Option {
        option: "--overwrite",
        problem: format!(
            "{} is not an index, or holds other things beside it; remove it yourself or choose \
             another --out",
            target.display()
        ),
    })
}

/// Opens and locks the draft's directory; says whether it was there already.
fn lock(dir: &Path, target: &Path) -> Result<(File, bool), BuildError> {
    fs_err::create_dir_all(parent(dir))?;
    loop {
        let found = match fs_err::create_dir(dir) {
            Ok(()) => false,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => true,
            Err(error) => return Err(error.into()),
        };
        let file = match File::open(dir) {
            // Published between the two lines.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(BuildError::Busy(target.into())),
            // A file system without locks: two builds of one target are the user's to avoid.
            Err(std::fs::TryLockError::Error(_)) => return Ok((file, found)),
        }
        // Published by another build while this one opened it: then the name is free again.
        let same = |m: std::fs::Metadata| -> io::Result<bool> {
            let locked = file.metadata()?;
            Ok((m.dev(), m.ino()) == (locked.dev(), locked.ino()))
        };
        if let Ok(true) = std::fs::symlink_metadata(dir).and_then(same) {
            return Ok((file, found));
        }
    }
}

fn clear(dir: &Path) -> io::Result<()> {
    for entry in fs_err::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs_err::remove_dir_all(entry.path())?;
        } else {
            fs_err::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Whether `target` is an empty directory or an index, damaged or not, with nothing beside it:
/// everything in the directory goes, and other programs have a `manifest.json` too.
fn replaceable(target: &Path) -> io::Result<bool> {
    if !fs_err::symlink_metadata(target)?.is_dir() {
        return Ok(false);
    }
    let (mut files, mut ours) = (0, 0);
    for entry in fs_err::read_dir(target)? {
        let name = entry?.file_name();
        files += 1;
        if !super::FILES.iter().any(|known| name == *known) {
            return Ok(false);
        }
        ours += u32::from(name != super::manifest::MANIFEST);
    }
    Ok(files == 0 || ours > 0)
}

fn at(error: Errno, path: &Path) -> io::Error {
    let error = io::Error::from(error);
    io::Error::new(error.kind(), format!("cannot put the index at {}: {error}", path.display()))
}

pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    fs_err::File::open(dir)?.sync_all()
}
