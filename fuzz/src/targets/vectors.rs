//! Vector files: one byte which format, then the file.

use std::path::Path;

use rabitq_ssd::dataset::{Base, RowCheck, check_rows};

use crate::scratch::with_file;

const EXTENSIONS: [&str; 6] = ["fbin", "u8bin", "i8bin", "f16bin", "fvecs", "bvecs"];
/// Rows read at most.
const ROWS: u64 = 64;

/// Opens the file and reads its rows.
pub fn run(input: &[u8]) -> String {
    let Some((&which, bytes)) = input.split_first() else { return String::new() };
    let extension = EXTENSIONS[usize::from(which) % EXTENSIONS.len()];
    with_file(&format!("v.{extension}"), bytes, read)
}

/// The rows of a file, as a build would read them.
pub(super) fn read(path: &Path) -> String {
    let base = match Base::open(&[path]) {
        Ok(base) => base,
        Err(error) => return error.to_string(),
    };
    let rows = base.n().min(ROWS);
    let mut values = vec![0f32; rows as usize * base.dim()];
    if let Err(error) = base.read_f32(0, &mut values) {
        return error.to_string();
    }
    let mut check = RowCheck::default();
    check_rows(&values, base.dim(), 0, &mut check);
    let mut raw = vec![0u8; rows as usize * base.dim() * base.raw_dtype().size()];
    let (raw, last) = (base.read_raw(0, &mut raw), base.n().saturating_sub(1));
    let gathered = base.gather_f32(&[last], &mut vec![0f32; base.dim()]);
    let fingerprint = base.fingerprint().map(|_| ());
    format!("{} {raw:?} {gathered:?} {fingerprint:?}", check.first().is_some())
}
