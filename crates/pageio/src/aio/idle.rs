//! Contexts between two readers: the process keeps a few, so that opening a file and dropping a
//! reader do not wait for the kernel to destroy one.

use std::process;
use std::sync::{Mutex, PoisonError};

use super::context::Kept;

/// Most events that idle contexts keep from other processes: 64 readers of the default size.
const MOST_EVENTS: u32 = 4096;

static IDLE: Mutex<Idle> = Mutex::new(Idle { process: 0, contexts: Vec::new() });

struct Idle {
    /// Contexts do not survive a fork.
    process: u32,
    contexts: Vec<Kept>,
}

/// One for exactly `events` reads.
pub(super) fn take(events: u32) -> Option<Kept> {
    with_idle(|contexts| {
        let found = contexts.iter().position(|kept| kept.events == events)?;
        Some(contexts.swap_remove(found))
    })
}

/// Keeps a context in which no read is in flight, unless there are enough.
pub(super) fn keep(kept: Kept) -> bool {
    with_idle(|contexts| {
        let events: u32 = contexts.iter().map(|other| other.events).sum();
        let room = events + kept.events <= MOST_EVENTS;
        if room {
            contexts.push(kept);
        }
        room
    })
}

/// Gives the events of idle contexts back; whether there were any.
pub(super) fn destroy_all() -> bool {
    let all = with_idle(std::mem::take);
    all.iter().for_each(|kept| kept.destroy());
    !all.is_empty()
}

fn with_idle<T>(look: impl FnOnce(&mut Vec<Kept>) -> T) -> T {
    let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    if idle.process != process::id() {
        idle.process = process::id();
        idle.contexts.clear();
    }
    look(&mut idle.contexts)
}
