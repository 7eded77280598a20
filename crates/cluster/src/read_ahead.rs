//! Reading rows one block ahead of the computation.
//!
//! ```text
//! reader   recv empty ─▶ read ─▶ send filled
//! caller                         recv filled ─▶ consume ─▶ send empty
//! ```
//!
//! Two buffers travel in a circle: while one is computed on the other is read. The reader has its
//! own thread, because a pool thread that waits for the disk would be missing in the computation.

use std::error::Error;
use std::sync::mpsc::{channel, sync_channel};
use std::thread;

use crate::ClusterError;

/// Calls `consume(start, rows)` for `n` rows of `dim` values, `block_rows` at a time, in order.
/// `read(start, out)` fills `out` with the rows from `start` on.
pub(crate) fn for_each_block(
    n: u64,
    dim: usize,
    block_rows: usize,
    read: impl Fn(u64, &mut [f32]) -> Result<(), Box<dyn Error + Send + Sync>> + Send,
    mut consume: impl FnMut(u64, &[f32]),
) -> Result<(), ClusterError> {
    let (empty, empties) = channel::<Vec<f32>>();
    let (filled, blocks) = sync_channel(1);
    for _ in 0..2 {
        // Cannot fail: the receiving end is alive in this function.
        let _ = empty.send(Vec::new());
    }
    let read_all = move || {
        for start in (0..n).step_by(block_rows) {
            let Ok(mut buffer) = empties.recv() else { return };
            let end = n.min(start + block_rows as u64);
            buffer.resize((end - start) as usize * dim, 0.0);
            let outcome = read(start, &mut buffer);
            let block = outcome.map_err(|source| ClusterError::Read { start, end, source });
            if filled.send(block.map(|()| (start, buffer))).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        thread::Builder::new()
            .name("read-ahead".into())
            .spawn_scoped(scope, read_all)
            .map_err(|source| ClusterError::Thread { source })?;
        for block in blocks {
            let (start, rows) = block?;
            consume(start, &rows);
            // The reader may have ended: then nobody needs the buffer.
            let _ = empty.send(rows);
        }
        Ok(())
    })
}
