//! When a query ends without an answer: its time is over, or somebody has cancelled it.
//!
//! The scan asks once a list; a wait for reads is cut into slices short enough to notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::config::SearchOptions;
use crate::error::SearchError;

/// How soon a wait notices that it is cancelled.
const SLICE: Duration = Duration::from_millis(20);

/// Cancels searches: every search whose options hold this handle or a clone of it.
///
/// A cancelled search ends within milliseconds with [`SearchError::Cancelled`], also when its disk
/// does not answer. It stays cancelled: later searches need a new handle.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends the searches.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether `cancel` was called.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Handles are equal when they cancel the same searches.
impl PartialEq for Cancel {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What may stop the query under way.
#[derive(Clone, Copy)]
pub(crate) struct Stop<'a> {
    start: Instant,
    timeout: Option<Duration>,
    cancel: Option<&'a Cancel>,
}

impl<'a> Stop<'a> {
    /// The limits of a query that starts now.
    pub(crate) fn of(o: &'a SearchOptions) -> Self {
        Self { start: Instant::now(), timeout: o.timeout, cancel: o.cancel.as_ref() }
    }

    /// An error when the query must not go on.
    pub(crate) fn check(&self) -> Result<(), SearchError> {
        if self.cancel.is_some_and(Cancel::is_cancelled) {
            return Err(SearchError::Cancelled);
        }
        match self.timeout {
            Some(timeout) if self.start.elapsed() >= timeout => {
                Err(SearchError::TimedOut { timeout })
            }
            _ => Ok(()),
        }
    }

    /// How long a wait may last before `check` is due; `None` as long as it takes.
    pub(crate) fn slice(&self) -> Option<Duration> {
        let left = self.timeout.map(|timeout| timeout.saturating_sub(self.start.elapsed()));
        left.into_iter().chain(self.cancel.map(|_| SLICE)).min()
    }
}
