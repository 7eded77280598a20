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
use std::ops::Range;
use std::sync::mpsc::{channel, sync_channel};
use std::thread;

use crate::ClusterError;

/// Calls `consume(start, values)` for `rows` of `dim` values, `block_rows` at a time, in order.
/// `read(start, values)` fills `values` with the rows from `start` on.
///
/// # Errors
/// The first error of `read` or `consume`, which ends it; or the thread cannot be started.
pub fn read_ahead<E: From<ClusterError> + Send>(
    rows: Range<u64>,
    dim: usize,
    block_rows: usize,
    read: impl Fn(u64, &mut [f32]) -> Result<(), E> + Send,
    mut consume: impl FnMut(u64, &mut [f32]) -> Result<(), E>,
) -> Result<(), E> {
    let (empty, empties) = channel::<Vec<f32>>();
    let (filled, blocks) = sync_channel(1);
    for _ in 0..2 {
        // Cannot fail: the receiving end is alive in this function.
        let _ = empty.send(Vec::new());
    }
    let end = rows.end;
    let read_all = move || {
        for start in rows.step_by(block_rows) {
            let Ok(mut buffer) = empties.recv() else { return };
            let count = (end - start).min(block_rows as u64) as usize;
            buffer.resize(count * dim, 0.0);
            let outcome = read(start, &mut buffer);
            if filled.send(outcome.map(|()| (start, buffer))).is_err() {
                return;
            }
        }
    };
    // The channels move into the scope: when `consume` fails they are closed before the scope waits
    // for the reader.
    thread::scope(move |scope| {
        thread::Builder::new()
            .name("read-ahead".into())
            .spawn_scoped(scope, read_all)
            .map_err(|source| ClusterError::Thread { source })?;
        for block in blocks {
            let (start, mut values) = block?;
            consume(start, &mut values)?;
            // The reader may have ended: then nobody needs the buffer.
            let _ = empty.send(values);
        }
        Ok(())
    })
}

/// [`read_ahead`] over a source of rows; `consume` cannot fail.
pub(crate) fn for_each_block(
    n: u64,
    dim: usize,
    block_rows: usize,
    read: impl Fn(u64, &mut [f32]) -> Result<(), Box<dyn Error + Send + Sync>> + Send,
    mut consume: impl FnMut(u64, &[f32]),
) -> Result<(), ClusterError> {
    let read = move |start, values: &mut [f32]| {
        let end = start + (values.len() / dim) as u64;
        read(start, values).map_err(|source| ClusterError::Read { start, end, source })
    };
    read_ahead(0..n, dim, block_rows, read, |start, values| {
        consume(start, values);
        Ok(())
    })
}
