//! How long work reports where it is and asks whether to go on; the command line draws bars from
//! it, a library user may log.

/// Receives progress of long work. Called often, from the thread that started the work.
pub trait Progress: Sync {
    /// `done` of `total` units of `stage` are finished; the first call of a stage has `done` 0.
    fn update(&self, stage: &'static str, done: u64, total: u64);

    /// Whether the work is to stop. Long work asks often, and once this is true ends with an error
    /// at its next checkpoint: the next point where what is done so far is kept, or nothing is
    /// left behind. Once true, it stays true.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Ignores progress and never stops.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn update(&self, _stage: &'static str, _done: u64, _total: u64) {}
}
