//! How long work reports where it is; the command line draws bars from it, a library user may log.

/// Receives progress of long work. Called often, from the thread that started the work.
pub trait Progress: Sync {
    /// `done` of `total` units of `stage` are finished; the first call of a stage has `done` 0.
    fn update(&self, stage: &'static str, done: u64, total: u64);
}

/// Ignores progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn update(&self, _stage: &'static str, _done: u64, _total: u64) {}
}
