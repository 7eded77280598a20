//! The base from front to back, one wave ahead of the work.
//!
//! ```text
//! wave     | block | block | block |   read together, while the wave before is worked on
//! block    what one thread works on at a time
//! ```

use std::ops::Range;

use cluster::read_ahead;
use dataset::Base;

use crate::error::BuildError;

/// How rows are cut for the threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waves {
    /// Rows that one thread works on at a time.
    pub(crate) block_rows: usize,
    /// Blocks that are read at a time.
    pub(crate) blocks: usize,
}

impl Waves {
    /// Rows of a wave.
    pub(crate) fn rows(self) -> usize {
        self.block_rows * self.blocks
    }

    /// Calls `work(start, values)` for `rows` of the base, a wave at a time, in order.
    pub(crate) fn each(
        self,
        base: &Base,
        rows: Range<u64>,
        work: impl FnMut(u64, &mut [f32]) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let read = |start, values: &mut [f32]| Ok(base.read_f32(start, values)?);
        read_ahead(rows, base.dim(), self.rows(), read, work)
    }
}
