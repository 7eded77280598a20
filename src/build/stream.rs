//! The base from front to back, one wave ahead of the work.
//!
//! ```text
//! reader   take an empty buffer ─▶ read the next wave into it ─▶ hand it over
//! caller                                                         work on it ─▶ give it back
//! ```
//! Two buffers travel in a circle. The reader has a thread of its own: one of the pool that waits
//! for the disk would be missing in the work.

use std::ops::Range;
use std::sync::mpsc::{channel, sync_channel};

use dataset::Base;

use crate::error::BuildError;

/// Calls `work(start, values)` for `rows` of the base, `wave` rows at a time, in order.
pub(crate) fn each_wave(
    base: &Base,
    rows: Range<u64>,
    wave: u64,
    mut work: impl FnMut(u64, &mut [f32]) -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    let (empty, empties) = channel::<Vec<f32>>();
    let (filled, waves) = sync_channel(1);
    for _ in 0..2 {
        // Cannot fail: the receiving end is alive in this function.
        let _ = empty.send(Vec::new());
    }
    let end = rows.end;
    let read_all = move || {
        for start in rows.step_by(wave as usize) {
            let Ok(mut buffer) = empties.recv() else { return };
            buffer.resize(wave.min(end - start) as usize * base.dim(), 0.0);
            let outcome = base.read_f32(start, &mut buffer);
            if filled.send(outcome.map(|()| (start, buffer))).is_err() {
                return;
            }
        }
    };
    std::thread::scope(move |scope| {
        std::thread::Builder::new().name("read-ahead".into()).spawn_scoped(scope, read_all)?;
        for wave in waves {
            let (start, mut values) = wave?;
            work(start, &mut values)?;
            // The reader may have ended: then nobody needs the buffer.
            let _ = empty.send(values);
        }
        Ok(())
    })
}
