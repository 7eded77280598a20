//! Work beside the work: threads that search the same index, so that they take processors and
//! reads of its disk.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rabitq_ssd::{Index, SearchOptions};

/// Does `work` while `threads` threads search `index` for `queries` over and over.
pub(crate) fn beside<T>(
    threads: usize,
    index: &Index,
    queries: &[f32],
    options: &SearchOptions,
    work: impl FnOnce() -> T,
) -> T {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for first in 0..threads {
            let stop = &stop;
            scope.spawn(move || {
                let all = queries.chunks_exact(index.dim()).cycle().skip(first);
                for query in all {
                    // A query that fails here fails in the work as well, which says so.
                    if stop.load(Ordering::Relaxed) || index.search(query, options).is_err() {
                        break;
                    }
                }
            });
        }
        // Also when the work panics, or the scope would wait for ever.
        let _stop = StopAtEnd(&stop);
        work()
    })
}

struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
