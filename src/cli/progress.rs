//! Progress on stderr: a bar on a terminal, a line every ten seconds elsewhere, nothing with
//! `--quiet`. Commands that can stop in order learn here that they should.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::bail;
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use rabitq_ssd::Progress;

use super::console::Console;
use super::signal::{self, StopFlag};
use super::size::grouped;

/// Time between two lines when stderr is a file or a pipe.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// Stage, bar, share, counts, rate and time left.
const BAR: &str = "{msg:>12} {bar:32} {percent:>3} %  {human_pos}/{human_len}  {rate}/s  ETA {eta}";

const STOPPING: &str = "stopping at the next checkpoint; once more to stop at once";

/// Draws the progress of one command.
pub(crate) struct Reporter {
    way: Way,
    stage: Mutex<Option<Stage>>,
    /// Of commands that ask.
    stop: Option<StopFlag>,
    said_stopping: AtomicBool,
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Bar,
    Lines,
    Silent,
}

struct Stage {
    name: &'static str,
    started: Instant,
    last_line: Instant,
    bar: Option<ProgressBar>,
}

impl Reporter {
    pub(crate) fn new(console: &Console) -> Self {
        let way = match (console.quiet(), io::stderr().is_terminal()) {
            (true, _) => Way::Silent,
            (false, true) => Way::Bar,
            (false, false) => Way::Lines,
        };
        Self { way, stage: Mutex::new(None), stop: None, said_stopping: AtomicBool::new(false) }
    }

    /// For work that asks whether it is [cancelled](Progress::cancelled): from here on the first
    /// signal makes it so, and only a second one ends the process.
    pub(crate) fn stoppable(console: &Console) -> anyhow::Result<Self> {
        let mut reporter = Self::new(console);
        reporter.stop = Some(signal::watch()?);
        Ok(reporter)
    }

    /// What became of the work: an error of cancelled work is that it was interrupted.
    pub(crate) fn outcome<T, E>(&self, outcome: Result<T, E>) -> anyhow::Result<T>
    where
        anyhow::Error: From<E>,
    {
        match outcome {
            Err(_) if self.cancelled() => bail!("interrupted"),
            outcome => Ok(outcome?),
        }
    }

    fn say(&self, text: &str) {
        // A closed stderr is no reason to stop the work.
        let write = || drop(writeln!(io::stderr(), "{text}"));
        let stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        match stage.as_ref().and_then(|stage| stage.bar.as_ref()) {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Leave stderr to other output. The last bar stays on screen as it is: full, or where the work
    /// failed.
    pub(crate) fn pause(&self) {
        let stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(bar) = stage.and_then(|stage| stage.bar) {
            bar.abandon();
        }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.pause();
    }
}

impl Progress for Reporter {
    fn cancelled(&self) -> bool {
        let stopped = self.stop.as_ref().is_some_and(StopFlag::is_set);
        if stopped && !self.said_stopping.swap(true, Ordering::Relaxed) && self.way != Way::Silent {
            self.say(STOPPING);
        }
        stopped
    }

    fn update(&self, stage: &'static str, done: u64, total: u64) {
        // Says so also where the work asks for its progress only.
        self.cancelled();
        if self.way == Way::Silent {
            return;
        }
        let mut current = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_none_or(|current| current.name != stage) {
            if let Some(bar) = current.take().and_then(|last| last.bar) {
                bar.finish();
            }
            *current = Some(Stage::begin(stage, total, self.way));
        }
        if let Some(current) = current.as_mut() {
            current.show(done, total);
        }
    }
}

impl Stage {
    fn begin(name: &'static str, total: u64, way: Way) -> Self {
        let now = Instant::now();
        let bar = (way == Way::Bar).then(|| {
            let bar = ProgressBar::new(total).with_style(style()).with_message(name);
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Self { name, started: now, last_line: now, bar }
    }

    fn show(&mut self, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            bar.set_position(done);
        } else if self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            // A closed stderr is no reason to stop the work.
            let _ =
                writeln!(io::stderr(), "{}", line(self.name, done, total, self.started.elapsed()));
        }
    }
}

/// `assign: 42 %, 12,345/s, 3 minutes left`
fn line(name: &str, done: u64, total: u64, elapsed: Duration) -> String {
    let share = if total == 0 { 0.0 } else { done as f64 / total as f64 };
    let per_second = done as f64 / elapsed.as_secs_f64().max(1e-9);
    let left = if done == 0 {
        "time left unknown".into()
    } else {
        let seconds = total.saturating_sub(done) as f64 / per_second;
        format!("{} left", HumanDuration(Duration::from_secs_f64(seconds.min(1e9))))
    };
    format!("{name}: {:.0} %, {}/s, {left}", share * 100.0, rate(per_second))
}

/// Whole numbers from 10 on, one digit below.
fn rate(per_second: f64) -> String {
    if per_second < 10.0 { format!("{per_second:.1}") } else { grouped(per_second as u64) }
}

fn style() -> ProgressStyle {
    // A test holds the template to be valid, so the fallback is never taken.
    let style = ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
        // Drawn into memory, which does not fail.
        let _ = out.write_str(&rate(state.per_sec()));
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_share_rate_and_time_left() {
        let text = line("assign", 250, 1000, Duration::from_secs(5));
        assert_eq!(text, "assign: 25 %, 50/s, 15 seconds left");
        let text = line("assign", 0, 0, Duration::ZERO);
        assert_eq!(text, "assign: 0 %, 0.0/s, time left unknown");
    }

    #[test]
    fn the_template_of_the_bar_is_valid() {
        assert!(ProgressStyle::with_template(BAR).is_ok());
    }
}
