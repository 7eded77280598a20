//! How long a reader waits: for a device that does not answer, and for a kernel out of memory.

use std::time::{Duration, Instant};

/// How often a kernel that is out of memory for requests is asked again.
#[cfg(target_os = "linux")]
pub(crate) const MAX_REFUSALS: u32 = 1000;
/// Between two such questions.
#[cfg(target_os = "linux")]
pub(crate) const REFUSAL_PAUSE: Duration = Duration::from_millis(1);

/// The longest a single system call is told to wait: no kernel's clock overflows.
const AT_ONCE: Duration = Duration::from_secs(3600);

/// What is left of the time that a wait may take.
pub(crate) struct Patience {
    limit: Option<Duration>,
    start: Instant,
}

impl Patience {
    /// `None` waits for ever.
    pub(crate) fn start(limit: Option<Duration>) -> Patience {
        Patience { limit, start: Instant::now() }
    }

    /// For a system call that waits; what comes after it is a look at `is_over`.
    pub(crate) fn left(&self) -> Option<Duration> {
        Some(self.limit?.saturating_sub(self.start.elapsed()).min(AT_ONCE))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.start.elapsed() >= limit)
    }
}
