//! How long the stages of a build took and what memory they held.

use std::time::Instant;

use serde::Serialize;

use super::memory::peak_memory;
use super::survey::Survey;

/// What a build did; `build.json`, outside the index's identity.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct BuildReport {
    /// Rows of the index.
    pub n: u64,
    /// Zero rows under cosine, kept outside the lists.
    pub zero_rows: u64,
    /// Rows left out as invalid.
    pub skipped_rows: u64,
    /// Whether it went on from where an earlier one was stopped; the stages are those of the last.
    pub resumed: bool,
    /// Stages that ran, in order.
    pub stages: Vec<StageReport>,
    /// Seconds in all.
    pub total_seconds: f64,
    /// The most memory the build planned to hold.
    pub planned_memory_bytes: u64,
}

/// One stage of a build.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct StageReport {
    /// Its name.
    pub stage: &'static str,
    /// How long it took.
    pub seconds: f64,
    /// Peak resident bytes of the process up to its end, where the system tells.
    pub peak_memory_bytes: Option<u64>,
}

/// Measures stage by stage.
pub(crate) struct Clock {
    start: Instant,
    last: Instant,
    resumed: bool,
    stages: Vec<StageReport>,
}

impl Clock {
    pub(crate) fn start(resumed: bool) -> Self {
        let now = Instant::now();
        Self { start: now, last: now, resumed, stages: Vec::new() }
    }

    /// Ends a stage. What it freed goes back to the system, so that the next one has the room.
    pub(crate) fn stage(&mut self, stage: &'static str) {
        pageio::return_freed_memory();
        let now = Instant::now();
        let seconds = (now - self.last).as_secs_f64();
        self.stages.push(StageReport { stage, seconds, peak_memory_bytes: peak_memory() });
        self.last = now;
    }

    pub(crate) fn report(&self, n: u64, survey: &Survey, planned: u64) -> BuildReport {
        BuildReport {
            n,
            zero_rows: survey.zeros().len(),
            skipped_rows: survey.skipped(),
            resumed: self.resumed,
            stages: self.stages.clone(),
            total_seconds: self.start.elapsed().as_secs_f64(),
            planned_memory_bytes: planned,
        }
    }
}
