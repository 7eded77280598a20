//! Hours of use in little: many threads, every k and nprobe, one open index. Memory stays flat and
//! answers stay the same from the first to the last minute.
//!
//! `RABITQ_SSD_SOAK_SECONDS=120 cargo test --test soak -- --nocapture` is the long run; it prints the
//! latencies of each twelfth of it, which no test judges.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

#[allow(dead_code, unreachable_pub)]
mod support;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rabitq_ssd::{BuildOptions, Index, SearchOptions, SearchResult};
use support::Fixture;

const THREADS: usize = 16;
const SLICES: usize = 12;
/// Growth of resident memory that is not a leak: the allocator's own.
const SLACK: u64 = 4 << 20;

/// Settings of every size, and the answers that each must give every time.
fn settings(index: &Index, query: &[f32]) -> Vec<(SearchOptions, SearchResult)> {
    let mut all = Vec::new();
    for k in [1, 10, 100, 1000] {
        for nprobe in [1, 4, 16, 64] {
            let o = SearchOptions { k, nprobe, deterministic: true, ..SearchOptions::default() };
            let answer = index.search(query, &o).unwrap();
            all.push((o, answer));
        }
    }
    all
}

fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

/// Queries answered until `end`, each compared with its answer.
fn use_it(
    index: &Index,
    query: &[f32],
    settings: &[(SearchOptions, SearchResult)],
    mut i: usize,
    end: Instant,
    latencies: &Mutex<Vec<u32>>,
) {
    let mut own = Vec::new();
    while Instant::now() < end {
        i = i.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
        let (o, answer) = &settings[(i >> 33) % settings.len()];
        let start = Instant::now();
        let found = index.search(query, o).unwrap();
        own.push(start.elapsed().as_micros() as u32);
        assert_eq!((&found.ids, &found.scores), (&answer.ids, &answer.scores));
    }
    latencies.lock().unwrap().extend(own);
}

#[test]
fn sixteen_threads_for_long_keep_memory_flat_and_answers_the_same() {
    let seconds: u64 =
        std::env::var("RABITQ_SSD_SOAK_SECONDS").map_or(6, |seconds| seconds.parse().unwrap());
    let f = Fixture::clustered(30_000, 64, 77);
    let index = f.index(&BuildOptions { nlist: Some(64), ..BuildOptions::default() });
    let queries: Vec<_> =
        (0..THREADS).map(|i| &f.rows[i * 37]).map(|q| (q, settings(&index, q))).collect();
    let queries = &queries;
    let slice = Duration::from_secs(seconds) / SLICES as u32;
    let answered = AtomicU64::new(0);
    let mut resident_after = Vec::new();
    for round in 0..SLICES {
        let latencies = Mutex::default();
        let end = Instant::now() + slice;
        thread::scope(|scope| {
            for (thread, (query, settings)) in queries.iter().enumerate() {
                let (index, latencies) = (&index, &latencies);
                scope.spawn(move || use_it(index, query, settings, thread, end, latencies));
            }
        });
        let mut latencies = latencies.into_inner().unwrap();
        latencies.sort_unstable();
        answered.fetch_add(latencies.len() as u64, Ordering::Relaxed);
        let at = |share: f64| latencies.get((latencies.len() as f64 * share) as usize).copied();
        resident_after.push(resident());
        eprintln!(
            "{:2}/{SLICES}: {} queries, p50 {} us, p99 {} us, resident {} bytes",
            round + 1,
            latencies.len(),
            at(0.5).unwrap_or(0),
            at(0.99).unwrap_or(0),
            resident_after[round]
        );
    }
    eprintln!("{} queries in {seconds} s", answered.into_inner());
    let (early, late) = resident_after.split_at(SLICES / 2);
    let grown = late.iter().max().unwrap().saturating_sub(*early.iter().max().unwrap());
    assert!(grown <= SLACK, "{grown} bytes more in the second half: {resident_after:?}");
}
