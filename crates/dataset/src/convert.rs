//! From one format or value type to another, a few megabytes at a time.

use std::ops::ControlFlow;
use std::path::Path;

use crate::{Base, DatasetError, Dtype, Format, Rounding, VectorWriter};

const BATCH_BYTES: usize = 4 << 20;

/// Copy all rows of `source` to a file whose format its extension names; returns their number.
///
/// Without `dtype` the values get the type of the format, and of the source in a `.npy`. Bytes
/// are copied as they are when the types agree; otherwise values go through f32, and `rounding`
/// says what may happen to those that do not fit. `progress` is told (rows done, rows in all) and may
/// break: then there is no file.
pub fn convert(
    source: &Base,
    target: &Path,
    dtype: Option<Dtype>,
    rounding: Rounding,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<u64, DatasetError> {
    let natural = Format::from_path(target)?.dtype();
    let dtype = dtype.or(natural).unwrap_or(source.raw_dtype());
    let mut writer = VectorWriter::create(target, source.dim(), dtype)?.rounding(rounding);
    writer.check_room(source.n())?;
    let row_bytes = source.dim() * size_of::<f32>();
    let batch = (BATCH_BYTES / row_bytes).max(1) as u64;
    let (mut raw, mut values) = (Vec::new(), Vec::new());
    let mut start = 0;
    while start < source.n() {
        let rows = batch.min(source.n() - start) as usize;
        if dtype == source.raw_dtype() {
            raw.resize(rows * source.dim() * dtype.size(), 0);
            source.read_raw(start, &mut raw)?;
            writer.write_raw(&raw)?;
        } else {
            values.resize(rows * source.dim(), 0.0);
            source.read_f32(start, &mut values)?;
            writer.write_f32(&values)?;
        }
        start += rows as u64;
        if progress(start, source.n()).is_break() {
            return Err(DatasetError::Interrupted);
        }
    }
    writer.finish()
}
