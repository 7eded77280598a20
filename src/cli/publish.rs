//! A file that is there whole, or not at all.

use std::io::Write;
use std::path::Path;

use anyhow::Context;

/// Write `text` to a temporary name beside `path`, then rename; an existing file keeps its
/// content until then.
pub(crate) fn whole(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let publish = || -> anyhow::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".rabitq-ssd.").make_in(folder, |path| {
            fs_err::OpenOptions::new().write(true).create_new(true).open(path)
        })?;
        file.write_all(text.as_bytes())?;
        file.persist(path)?;
        Ok(())
    };
    publish().with_context(|| format!("cannot write {}", path.display()))
}
