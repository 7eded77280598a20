//! SIGINT and SIGTERM in commands that can stop in order.
//!
//! ```text
//! first    sets a flag: the work sees it at its next checkpoint and ends with an error
//! second   ends the process at once, by the signal, as it would without this file
//! ```
//! Only commands that ask for the flag may install it: in all others the first signal ends the
//! process, which is what the user meant.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Set once the first signal came.
pub(crate) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Begin to watch for signals, until the process ends.
pub(crate) fn watch() -> io::Result<StopFlag> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag not set yet.
        flag::register_conditional_default(signal, Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(StopFlag(stop))
}
