//! What the disk gives at most, the scale on which a row's reads are measured.

use std::time::Duration;

use rabitq_ssd::{Backend, Index, IndexInfo};

/// Reads in flight while the ceiling is measured.
pub(super) const CEILING_DEPTH: u32 = 64;
const CEILING_TIME: Duration = Duration::from_millis(500);

/// What this disk gives one thread at most. Nothing to measure where reads do not reach a disk.
pub(crate) fn read_ceiling(index: &Index, info: &IndexInfo) -> anyhow::Result<Option<f64>> {
    if info.io_backend == Backend::Memory.to_string() || index.page_file().pages() == 0 {
        return Ok(None);
    }
    let seed = 1;
    let result = pageio::probe(index.page_file(), CEILING_DEPTH, CEILING_TIME, seed)?;
    Ok(Some(result.reads_per_second))
}
