//! Small files that are read whole.

use std::io;
use std::path::Path;

/// The bytes of a file.
///
/// # Errors
/// When it cannot be read, or is no regular file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Looking before opening: a pipe would wait for its writer.
    if !fs_err::metadata(path)?.is_file() {
        let problem = format!("{}: not a regular file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    fs_err::read(path)
}
