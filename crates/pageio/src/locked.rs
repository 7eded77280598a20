//! A share of the memory that may be locked.
//!
//! Registered buffers count against RLIMIT_MEMLOCK, and on some kernels so do the rings
//! themselves. A ring saves far more than its registered buffers do, so buffers take at most half
//! of the limit, over all readers of the process, and leave the rest to further rings:
//!
//! ```text
//! 8 MiB limit, 64 slots a reader: |16 readers' buffers, 256 KiB each|some 200 rings, 20 KiB each|
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Bytes that may be locked, given back when dropped.
pub(crate) struct Locked(u64);

impl Locked {
    /// `None` when buffers have their share already.
    pub(crate) fn take(bytes: usize) -> Option<Locked> {
        let share = limit() / 2;
        let bytes = bytes as u64;
        let add = |taken: u64| taken.checked_add(bytes).filter(|&sum| sum <= share);
        TAKEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Locked(bytes))
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        TAKEN.fetch_sub(self.0, Ordering::Relaxed);
    }
}

fn limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a whole rlimit for the kernel to fill.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    if result == 0 { limit.rlim_cur } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_never_exceeded_and_comes_back_when_dropped() {
        let share = usize::try_from(limit() / 2).unwrap_or(usize::MAX);
        let all = Locked::take(share);
        assert!(all.is_some());
        assert!(Locked::take(1).is_none());
        drop(all);
        assert!(Locked::take(share).is_some());
    }
}
