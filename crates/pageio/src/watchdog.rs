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
    start: Instant,
    /// The caller's; `None` waits as long as the device may keep silent.
    limit: Option<Duration>,
    /// Since when nothing has come back: at the latest since `start`.
    silent_since: Instant,
    /// How long a device may keep silent; `None` for ever.
    timeout: Option<Duration>,
}

/// Whose time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// The caller wants to do something else.
    Limit,
    /// The device does not answer.
    Silence,
}

impl Patience {
    pub(crate) fn new(
        limit: Option<Duration>,
        silent_since: Instant,
        timeout: Option<Duration>,
    ) -> Patience {
        Patience { start: Instant::now(), limit, silent_since, timeout }
    }

    /// For a system call that waits; what comes after it is a look at `over`.
    pub(crate) fn left(&self) -> Option<Duration> {
        let limit = self.limit.map(|limit| limit.saturating_sub(self.start.elapsed()));
        let timeout = self.timeout.map(|t| t.saturating_sub(self.silent_since.elapsed()));
        let shorter = limit.into_iter().chain(timeout).min();
        shorter.map(|left| left.min(AT_ONCE))
    }

    /// Whether the wait has lasted long enough.
    pub(crate) fn over(&self) -> Option<Over> {
        if self.timeout.is_some_and(|t| self.silent_since.elapsed() >= t) {
            return Some(Over::Silence);
        }
        self.limit.is_some_and(|limit| self.start.elapsed() >= limit).then_some(Over::Limit)
    }
}
