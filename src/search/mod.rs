//! Searching: coarse → scan → pages → io → rerank → topk. One thread answers one query at a time;
//! a batch is spread over threads.

mod options;
mod stats;
mod trace;
mod seed;
mod stretch;
mod topk;
mod pages;
mod reads;
mod rerank;
mod engine;
mod ids;
mod worker;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use dataset::{RowCheck, check_rows};

pub use stats::SearchStats;
pub use trace::{Event, EventKind, Phase, Trace};

use crate::config::SearchOptions;
use crate::error::SearchError;
use crate::store::parts::Parts;
use trace::{Recorder, Tracer};
use worker::Worker;

/// The neighbours of one query, nearest first, ties by id; fewer than k only when the index, or
/// what the bounds left of it, holds fewer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResult {
    /// Ids: row numbers, or the caller's own.
    pub ids: Vec<u64>,
    /// Squared L2 distances, inner products or cosines.
    pub scores: Vec<f32>,
    /// What the query cost.
    pub stats: SearchStats,
}

/// Idle workers of an index.
#[derive(Default)]
pub(crate) struct Workers {
    idle: Mutex<Vec<Worker>>,
}

impl Workers {
    fn take(&self, parts: &Parts) -> Result<Worker, SearchError> {
        let idle = self.idle.lock().unwrap_or_else(|e| e.into_inner()).pop();
        idle.map_or_else(|| Worker::new(parts), Ok)
    }

    /// Keeps a worker for the next query, unless its disk has not answered.
    fn put(&self, worker: Worker) {
        if !worker.usable() {
            return;
        }
        self.idle.lock().unwrap_or_else(|e| e.into_inner()).push(worker);
    }
}

/// Answers one query.
pub(crate) fn search(
    parts: &Parts,
    workers: &Workers,
    query: &[f32],
    o: &SearchOptions,
) -> Result<SearchResult, SearchError> {
    search_one(parts, workers, query, o, None)
}

/// Answers one query and says what happened when.
pub(crate) fn trace(
    parts: &Parts,
    workers: &Workers,
    query: &[f32],
    o: &SearchOptions,
) -> Result<(SearchResult, Trace), SearchError> {
    let mut recorder = Recorder::default();
    let result = search_one(parts, workers, query, o, Some(&mut recorder))?;
    Ok((result, recorder.finish()))
}

fn search_one(
    parts: &Parts,
    workers: &Workers,
    query: &[f32],
    o: &SearchOptions,
    recorder: Option<&mut Recorder>,
) -> Result<SearchResult, SearchError> {
    let plan = o.plan(&parts.shape, 1)?;
    check_queries(parts, query, 1)?;
    let mut worker = workers.take(parts)?;
    let result = worker.search(parts, query, &plan, Tracer::new(recorder));
    workers.put(worker);
    result
}

/// Answers queries one after another on each of `threads` threads; results in the queries' order.
/// The first error ends the batch.
pub(crate) fn search_batch(
    parts: &Parts,
    workers: &Workers,
    queries: &[f32],
    o: &SearchOptions,
    threads: usize,
) -> Result<Vec<SearchResult>, SearchError> {
    let plan = o.plan(&parts.shape, threads)?;
    let dim = parts.shape.dim;
    check_queries(parts, queries, queries.len() / dim)?;
    let count = queries.len() / dim;
    let next = AtomicUsize::new(0);
    let run = || -> Result<Vec<(usize, SearchResult)>, SearchError> {
        let mut worker = workers.take(parts)?;
        let mut out = Vec::new();
        let outcome = loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                break Ok(out);
            }
            match worker.search(parts, &queries[i * dim..(i + 1) * dim], &plan, Tracer::default()) {
                Ok(result) => out.push((i, result)),
                Err(e) => {
                    next.store(count, Ordering::Relaxed);
                    break Err(e);
                }
            }
        };
        workers.put(worker);
        outcome
    };
    let mut results = vec![SearchResult::default(); count];
    for part in on_threads(threads.min(count.max(1)), run) {
        part?.into_iter().for_each(|(i, r)| results[i] = r);
    }
    Ok(results)
}

/// A query as the lists see it, rotated, and the `nprobe` lists a search of it visits.
pub(crate) fn lists_to_visit(
    parts: &Parts,
    query: &[f32],
    nprobe: usize,
) -> Result<(Vec<f32>, Vec<u32>), SearchError> {
    check_queries(parts, query, 1)?;
    Ok(Worker::new(parts)?.lists(parts, query, nprobe))
}

/// Runs `work` on `threads` threads, this one among them.
fn on_threads<T: Send>(threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(&work)).collect();
        let mut all = vec![work()];
        for other in others {
            match other.join() {
                Ok(part) => all.push(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    })
}

/// Every query must have the index's dim and finite values of a norm that arithmetic survives.
fn check_queries(parts: &Parts, queries: &[f32], count: usize) -> Result<(), SearchError> {
    let dim = parts.shape.dim;
    if queries.len() != count * dim {
        return Err(SearchError::Dim { expected: dim, found: queries.len() });
    }
    let mut check = RowCheck::default();
    check_rows(queries, dim, 0, &mut check);
    match check.first() {
        Some(bad) => {
            Err(SearchError::Query { query: bad.row as usize, reason: bad.reason.to_string() })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
