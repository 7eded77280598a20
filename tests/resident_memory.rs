//! An open index takes the bytes its plan promised: counted at the allocator.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, unreachable_pub)]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rabitq_ssd::{BuildOptions, BuildPlan, CoarseKind, Index, IndexInfo, OpenOptions, Silent};
use support::Fixture;

static LIVE: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counting.
struct Counting;

// SAFETY: every call is passed on unchanged to the system's allocator, whose contract it keeps.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's layout, as it came.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `ptr` came from `alloc` above with this layout.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The bytes held once the threads of the build have ended and given theirs back.
fn settled() -> usize {
    loop {
        let before = LIVE.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(200));
        if LIVE.load(Ordering::Relaxed) == before {
            return before;
        }
    }
}

#[test]
fn an_open_index_holds_what_its_plan_says_and_no_second_copy() {
    let f = Fixture::clustered(40_000, 128, 5);
    for coarse in [CoarseKind::Flat, CoarseKind::Irq, CoarseKind::Hnsw] {
        let o = BuildOptions { nlist: Some(600), coarse, overwrite: true, ..Default::default() };
        let planned = BuildPlan::new(&f.base(), &o).unwrap().resident_bytes;
        Index::build(&f.base(), &f.path("index"), &o, &Silent).unwrap();
        let before = settled();
        let index = Index::open(&f.path("index"), &OpenOptions::default()).unwrap();
        let held = (LIVE.load(Ordering::Relaxed) - before) as f64;
        assert_eq!(index.info().resident_bytes, planned, "{coarse}");
        let unopened = IndexInfo::read(&f.path("index"), &OpenOptions::default()).unwrap();
        assert_eq!(unopened.resident, index.info().resident, "{coarse}");
        let off = (held - planned as f64).abs() / planned as f64;
        assert!(off < 0.02, "{coarse}: {held} bytes held, {planned} planned");
    }
}
