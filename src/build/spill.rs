//! Full buffers to sorted runs on disk, while the next buffer is filled.
//!
//! ```text
//! caller   fill buffer A ─▶ hand over ─▶ fill buffer B ─▶ take A back, note its run ─▶ ...
//! thread                    sort A, write run-00000.bin ─▶ ...
//! ```

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Scope;

use super::checkpoint::{Checkpoint, Run, remove_if_there};
use super::runs::{Buffer, Layout};
use crate::error::BuildError;

/// A full buffer and what its run is called.
struct Full {
    buffer: Buffer,
    path: std::path::PathBuf,
    /// The first row of the base after it.
    end: u64,
}

type Spilled = Result<(Buffer, Run), BuildError>;

/// The buffer being filled, and the thread that writes the other one.
pub(crate) struct Spill<'a> {
    checkpoint: &'a mut Checkpoint,
    buffer: Buffer,
    /// The other buffer, until it is first needed.
    spare: Option<Buffer>,
    full: SyncSender<Full>,
    spilled: Receiver<Spilled>,
    /// Whether the thread has a buffer.
    away: bool,
}

impl<'a> Spill<'a> {
    /// Buffers of `rows` entries; the thread lives in `scope`.
    pub(crate) fn start<'scope, 'env>(
        scope: &'scope Scope<'scope, 'env>,
        layout: Layout,
        rows: usize,
        checkpoint: &'a mut Checkpoint,
        pool: &'env rayon::ThreadPool,
    ) -> Result<Self, BuildError> {
        let (full, fulls) = sync_channel(1);
        let (done, spilled) = sync_channel(1);
        std::thread::Builder::new()
            .name("spill".into())
            .spawn_scoped(scope, move || write_all(&fulls, &done, pool))?;
        Ok(Self {
            checkpoint,
            buffer: Buffer::new(layout, rows),
            spare: Some(Buffer::new(layout, rows)),
            full,
            spilled,
            away: false,
        })
    }

    /// The buffer to fill.
    pub(crate) fn buffer(&mut self) -> &mut Buffer {
        &mut self.buffer
    }

    /// Hands the buffer over, which holds the rows before `end`, and goes on with the other.
    pub(crate) fn next(&mut self, end: u64) -> Result<(), BuildError> {
        let next = match self.spare.take() {
            Some(spare) => spare,
            None => self.take_back()?,
        };
        let buffer = std::mem::replace(&mut self.buffer, next);
        let path = self.checkpoint.run_path(self.checkpoint.done.runs.len());
        self.away = true;
        self.full.send(Full { buffer, path, end }).map_err(|_| died())
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self, end: u64) -> Result<(), BuildError> {
        if self.away {
            self.spare = Some(self.take_back()?);
        }
        if self.buffer.len() > 0 {
            self.next(end)?;
            self.take_back()?;
        }
        Ok(())
    }

    /// Waits for the thread's buffer; its run is done then.
    fn take_back(&mut self) -> Result<Buffer, BuildError> {
        let (mut buffer, run) = self.spilled.recv().map_err(|_| died())??;
        self.away = false;
        self.checkpoint.done.runs.push(run);
        self.checkpoint.save()?;
        buffer.clear();
        Ok(buffer)
    }
}

fn write_all(fulls: &Receiver<Full>, done: &SyncSender<Spilled>, pool: &rayon::ThreadPool) {
    for full in fulls {
        if done.send(write(full, pool)).is_err() {
            return;
        }
    }
}

fn write(full: Full, pool: &rayon::ThreadPool) -> Spilled {
    let Full { mut buffer, path, end } = full;
    buffer.sort(pool);
    remove_if_there(&path)?;
    let file = buffer.write(&path)?;
    let run = Run { rows: buffer.len() as u64, end, file };
    Ok((buffer, run))
}

fn died() -> BuildError {
    std::io::Error::other("the thread that writes runs died").into()
}
