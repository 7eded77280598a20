//! `deterministic` means: whatever the timing of reads, on any number of threads, beside anything.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, unreachable_pub)]
mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rabitq_ssd::{BuildOptions, Index, Prefix, SearchOptions, SearchResult};
use support::Fixture;

/// Ids, and scores to the last bit.
fn found(results: &[SearchResult]) -> Vec<(Vec<u64>, Vec<u32>)> {
    let bits = |r: &SearchResult| r.scores.iter().map(|score| score.to_bits()).collect();
    results.iter().map(|r| (r.ids.clone(), bits(r))).collect()
}

/// Searches and computes until told to stop.
fn compete(index: &Index, queries: &[f32], stop: &AtomicBool) {
    let o = SearchOptions { k: 50, nprobe: 30, ..SearchOptions::default() };
    let mut sum = 0.0f64;
    for query in queries.chunks_exact(index.dim()).cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        sum += f64::from(index.search(query, &o).unwrap().scores[0]);
        sum = (0..2000).fold(sum, |sum, i| (sum + f64::from(i)).sqrt());
    }
    assert!(sum.is_finite());
}

#[test]
fn twenty_runs_on_1_2_and_8_threads_idle_and_loaded_are_the_same_bit_for_bit() {
    let f = Fixture::clustered(12_000, 128, 77);
    // Half the bits in RAM: bounds are wide, and much is read that the timing could decide.
    let o = BuildOptions { nlist: Some(40), prefix: Prefix::Dims(64), ..BuildOptions::default() };
    let index = f.index(&o);
    let queries: Vec<f32> = f.rows.iter().step_by(300).flatten().copied().collect();
    let o = SearchOptions { k: 20, nprobe: 12, deterministic: true, ..SearchOptions::default() };
    let first = found(&index.search_batch(&queries, &o, 1).unwrap());
    assert!(first.iter().all(|(ids, _)| ids.len() == 20));
    for run in 0..20 {
        let threads = [1, 2, 8][run % 3];
        let stop = AtomicBool::new(false);
        let results = thread::scope(|scope| {
            if run % 2 == 1 {
                scope.spawn(|| compete(&index, &queries, &stop));
            }
            let results = index.search_batch(&queries, &o, threads);
            stop.store(true, Ordering::Relaxed);
            results
        });
        assert!(found(&results.unwrap()) == first, "run {run} on {threads} threads");
    }
}
