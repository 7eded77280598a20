//! How far a run of the experiments is: which of them, how many rows, since when.

use std::time::{Duration, Instant};

use indicatif::HumanDuration;

use crate::cli::console::Console;

/// Time between two lines about one experiment.
const LINE_EVERY: Duration = Duration::from_secs(20);

/// The experiments of a run, one after another.
pub(crate) struct Stages {
    all: usize,
    number: usize,
    name: &'static str,
    rows: usize,
    started: Instant,
    said: Instant,
}

impl Stages {
    pub(crate) fn new(all: usize) -> Self {
        let now = Instant::now();
        Self { all, number: 0, name: "", rows: 0, started: now, said: now }
    }

    /// The next experiment begins.
    pub(crate) fn begin(&mut self, name: &'static str, console: &Console) {
        (self.number, self.name, self.rows) = (self.number + 1, name, 0);
        self.say(console);
    }

    /// One more row of it was measured.
    pub(crate) fn row(&mut self, console: &Console) {
        self.rows += 1;
        if self.said.elapsed() >= LINE_EVERY {
            self.say(console);
        }
    }

    fn say(&mut self, console: &Console) {
        self.said = Instant::now();
        console.note(self.line(self.started.elapsed()));
    }

    /// `[3 of 12] coarse: 8 rows, 2 minutes since the start`
    fn line(&self, elapsed: Duration) -> String {
        let Self { number, all, name, rows, .. } = self;
        format!(
            "[{number} of {all}] {name}: {rows} rows, {} since the start",
            HumanDuration(elapsed)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_which_of_how_many_and_since_when() {
        let mut stages = Stages::new(12);
        let quiet = Console::new(false, true);
        for name in ["table1", "quantile", "coarse"] {
            stages.begin(name, &quiet);
        }
        (0..8).for_each(|_| stages.row(&quiet));
        let text = stages.line(Duration::from_secs(120));
        assert_eq!(text, "[3 of 12] coarse: 8 rows, 2 minutes since the start");
    }
}
