//! An index appears whole or not at all: it is written under a temporary name beside its target
//! and renamed into place when every byte is on disk.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::BuildError;

/// A directory being written; dropping it unpublished removes it.
pub(crate) struct Draft {
    dir: TempDir,
    target: PathBuf,
    overwrite: bool,
}

impl Draft {
    /// Starts a draft for `target`. An existing target is an error unless `overwrite`, and then
    /// must be an index (or empty), so that a slip of the hand never replaces other data.
    pub(crate) fn create(target: &Path, overwrite: bool) -> Result<Self, BuildError> {
        // Without a slash at its end, which would hide a file of this name until the rename.
        let target = &target.components().collect::<PathBuf>();
        if target.symlink_metadata().is_ok() {
            if !overwrite {
                return Err(BuildError::Exists(target.into()));
            }
            if !replaceable(target)? {
                return Err(BuildError::Option {
                    option: "--overwrite",
                    problem: format!(
                        "{} is not an index, or holds other things beside it; remove it yourself \
                         or choose another --out",
                        target.display()
                    ),
                });
            }
        }
        let parent = match target.parent() {
            Some(p) if !p.as_os_str().is_empty() => p,
            _ => Path::new("."),
        };
        fs_err::create_dir_all(parent)?;
        let name = target.file_name().map(|n| n.to_string_lossy()).unwrap_or_default();
        let dir =
            tempfile::Builder::new().prefix(&format!(".{name}.partial-")).tempdir_in(parent)?;
        Ok(Self { dir, target: target.into(), overwrite })
    }

    /// Where the files of the draft go.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Makes the draft the index: fsync, then rename. An index that is replaced is moved aside
    /// first and removed only when the new one stands in its place.
    pub(crate) fn publish(self) -> io::Result<()> {
        allow_reading(self.dir.path())?;
        sync_dir(self.dir.path())?;
        let parent = self.dir.path().parent().unwrap_or(Path::new(".")).to_path_buf();
        let old = if self.overwrite && self.target.symlink_metadata().is_ok() {
            let aside = tempfile::Builder::new().prefix(".replaced-").tempdir_in(&parent)?;
            fs_err::rename(&self.target, aside.path().join("index"))?;
            Some(aside)
        } else {
            None
        };
        if let Err(e) = fs_err::rename(self.dir.path(), &self.target) {
            if let Some(aside) = &old {
                fs_err::rename(aside.path().join("index"), &self.target)?;
            }
            return Err(e);
        }
        let _published = self.dir.keep();
        sync_dir(&parent)
    }
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

/// Temporary directories are private; an index gets the permissions a new directory would have.
fn allow_reading(dir: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let probe = dir.join(".mode");
        fs_err::create_dir(&probe)?;
        let mode = fs_err::metadata(&probe)?.permissions().mode();
        fs_err::remove_dir(&probe)?;
        fs_err::set_permissions(dir, std::fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    fs_err::File::open(dir)?.sync_all()
}
