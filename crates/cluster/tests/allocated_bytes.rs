//! Training and assignment allocate no more than they say beforehand: counted at the allocator.

#![allow(clippy::unwrap_used, missing_docs)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};

use cluster::{
    AssignMethod, AssignScratch, Assigner, KmeansOptions, RowSource, Rows, kmeans, kmeans_bytes,
};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counting.
struct Counting;

// SAFETY: every call is passed on unchanged to the system's allocator, whose contract it keeps.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
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

/// Most bytes that `work` had allocated at a time.
fn peak_of(work: impl FnOnce()) -> f64 {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    work();
    (PEAK.load(Ordering::Relaxed) - before) as f64
}

/// Rows computed when they are read: they take no memory.
struct Computed {
    n: u64,
    dim: usize,
}

impl Computed {
    fn fill(&self, row: u64, out: &mut [f32]) {
        for (column, value) in (0..).zip(out) {
            // A bijection of 64 bits that leaves no pattern (the finaliser of MurmurHash3).
            let mut h = (row << 16) + column;
            h = (h ^ (h >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
            h = (h ^ (h >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
            *value = (h >> 40) as f32 / (1 << 24) as f32;
        }
    }
}

impl RowSource for Computed {
    fn n(&self) -> u64 {
        self.n
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn read_f32(&self, start: u64, out: &mut [f32]) -> Result<(), Box<dyn Error + Send + Sync>> {
        (start..).zip(out.chunks_mut(self.dim)).for_each(|(row, out)| self.fill(row, out));
        Ok(())
    }
}

impl Rows for Computed {
    fn gather_f32(
        &self,
        rows: &[u32],
        out: &mut [f32],
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        rows.iter().zip(out.chunks_mut(self.dim)).for_each(|(&r, out)| self.fill(r.into(), out));
        Ok(())
    }
}

/// A pool whose threads all run: what they allocate for themselves is not counted as work.
fn pool(threads: usize) -> rayon::ThreadPool {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.broadcast(|_| ());
    pool
}

/// The only test of this program: beside another one, the other and the harness's report of it
/// would be counted too.
#[test]
fn training_and_assignment_allocate_no_more_than_they_say() {
    training_stays_below_its_bound_and_the_bound_is_near();
    an_assigner_and_its_scratch_stay_below_their_bounds();
}

fn training_stays_below_its_bound_and_the_bound_is_near() {
    // rows, dim, nlist, two levels from, memory in MiB, threads
    let shapes = [
        (30_000, 96, 100, 512, 0, 2),
        (9_000, 1024, 64, 512, 0, 1),
        (60_000, 16, 1_000, 4000, 0, 3),
        (60_000, 64, 700, 512, 4, 2),
        (40_000, 64, 700, 512, 64, 2),
        (80_000, 32, 6_000, 512, 16, 2),
        (20_000, 200, 520, 512, 20, 2),
    ];
    for (n, dim, nlist, two_level_from, memory, threads) in shapes {
        let mut options = KmeansOptions::default();
        options.two_level_from = two_level_from;
        options.iterations = 1;
        options.memory = memory << 20;
        let bound = kmeans_bytes(n, dim, nlist, &options, threads) as f64;
        let pool = pool(threads);
        let peak = peak_of(|| {
            kmeans(&Computed { n, dim }, nlist, &options, &pool, &|_| {}).unwrap();
        });
        let what = format!("{n} x {dim}, {nlist} lists, {memory} MiB, {threads} threads");
        assert!(peak <= bound, "{what}: {peak} bytes allocated, bound {bound}");
        // Threads that wait for a core hold nothing yet: on a busy machine the peak is lower.
        assert!(bound <= 2.5 * peak, "{what}: bound {bound} for {peak} bytes");
    }
}

fn an_assigner_and_its_scratch_stay_below_their_bounds() {
    for method in [AssignMethod::Flat, AssignMethod::Hnsw] {
        for (nlist, dim) in [(3000, 60), (400, 700)] {
            let mut centroids = vec![0f32; nlist * dim];
            Computed { n: 0, dim }.read_f32(0, &mut centroids).unwrap();
            let pool = pool(1);
            let mut assigner = None;
            let peak = peak_of(|| {
                assigner = Some(Assigner::new(&centroids, dim, method, &pool).unwrap());
            });
            let bound = Assigner::bytes_for(nlist, dim, method) as f64;
            assert!(peak <= bound, "{method:?} of {nlist} x {dim}: {peak} bytes, bound {bound}");

            let rows = &centroids[..centroids.len().min(2000 * dim)];
            let (mut lists, mut dist2) = (vec![0; rows.len() / dim], vec![0.0; rows.len() / dim]);
            let assigner = assigner.unwrap();
            // A thread of its own: the matrix library keeps a buffer per thread.
            let peak = peak_of(|| {
                let mut scratch = AssignScratch::default();
                std::thread::scope(|s| {
                    s.spawn(|| assigner.assign_with(rows, &mut lists, &mut dist2, &mut scratch));
                });
            });
            let bound = Assigner::scratch_bytes(nlist, dim, method) as f64;
            assert!(peak <= bound, "{method:?} of {nlist} x {dim}: {peak} bytes, bound {bound}");
        }
    }
}
