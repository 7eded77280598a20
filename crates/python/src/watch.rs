//! Long work, watched: it runs in a thread of its own while the caller's waits without the GIL and
//! looks for Ctrl-C.
//!
//! ```text
//! caller    wait 50 ms ─ signals? ─ wait 50 ms ─ ... ─ result
//! run       update ─ callback, at most every 100 ms and at each stage's start and end ─ ...
//!           cancelled? ◀─ a signal, or an exception in the callback
//! search    each query asks the Cancel that a signal sets
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use rabitq_ssd::{Cancel, Progress};

use crate::error::Error;

/// Time between two looks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Time between two calls of the callback within a stage.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// What becomes of work that is to stop.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Stop {
    /// It is waited for: it has files to remove.
    Wait,
    /// It is left to itself: it leaves nothing behind, and may look at the flag seldom.
    Leave,
}

/// Runs `work`, telling `progress` (stage, done, total).
///
/// # Errors
/// What a signal handler raised (KeyboardInterrupt) or `progress` did.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    stop: Stop,
    work: impl FnOnce(&dyn Progress) -> T + Send + 'static,
) -> PyResult<T> {
    let told = Arc::new(Told { progress, ..Told::default() });
    let (sender, mut receiver) = mpsc::channel();
    let state = Arc::clone(&told);
    thread::Builder::new().name("rabitq-ssd".into()).spawn(move || {
        // Nobody listens any more when the work was left to itself.
        let _ = sender.send(work(&*state));
    })?;
    let outcome = wait(py, &mut receiver, || told.cancelled.store(true, Ordering::Relaxed), stop);
    match told.take_raised() {
        Some(raised) => Err(raised),
        None => outcome,
    }
}

/// Runs searches that `cancel` ends; they may borrow what the caller holds.
///
/// # Errors
/// What a signal handler raised (KeyboardInterrupt).
pub(crate) fn search<T: Send>(
    py: Python<'_>,
    cancel: &Cancel,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let (sender, mut receiver) = mpsc::channel();
    thread::scope(|scope| {
        thread::Builder::new().name("rabitq-ssd".into()).spawn_scoped(scope, move || {
            // The receiver lives until the thread has ended.
            let _ = sender.send(work());
        })?;
        wait(py, &mut receiver, || cancel.cancel(), Stop::Wait)
    })
}

fn wait<T: Send>(
    py: Python<'_>,
    receiver: &mut Receiver<T>,
    cancel: impl Fn(),
    stop: Stop,
) -> PyResult<T> {
    let failed = || Error::new_err("the work ended without a result");
    loop {
        let waiting = &mut *receiver;
        match py.detach(move || waiting.recv_timeout(LOOK_EVERY)) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Disconnected) => return Err(failed()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let Err(signal) = py.check_signals() else { continue };
        cancel();
        if stop == Stop::Wait {
            let waiting = &mut *receiver;
            // Its result no longer matters: the signal does.
            let _ = py.detach(move || waiting.recv());
        }
        return Err(signal);
    }
}

/// Where the work is, and whether it is to go on.
#[derive(Default)]
struct Told {
    progress: Option<Py<PyAny>>,
    cancelled: AtomicBool,
    last: Mutex<Option<(&'static str, Instant)>>,
    raised: Mutex<Option<PyErr>>,
}

impl Told {
    fn take_raised(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether the callback is to hear of this.
    fn due(&self, stage: &'static str, done: u64, total: u64) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let soon = last.is_some_and(|(s, at)| s == stage && now - at < TELL_EVERY);
        if soon && done != total {
            return false;
        }
        *last = Some((stage, now));
        true
    }
}

impl Progress for Told {
    fn update(&self, stage: &'static str, done: u64, total: u64) {
        let Some(progress) = &self.progress else { return };
        if self.cancelled() || !self.due(stage, done, total) {
            return;
        }
        // An interpreter that is going away takes no calls.
        let told = Python::try_attach(|py| progress.call1(py, (stage, done, total)).map(drop));
        if let Some(Err(raised)) = told {
            *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
            self.cancelled.store(true, Ordering::Relaxed);
        }
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}
