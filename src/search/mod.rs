//! Searching: coarse → scan → pages → io → rerank → topk. One thread answers one query at a time;
//! a batch is spread over threads.

mod options;
mod stats;
mod stop;
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

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dataset::{RowCheck, check_rows};

pub use stats::SearchStats;
pub use stop::Cancel;
pub use trace::{Event, EventKind, Phase, Trace};

use crate::config::SearchOptions;
use crate::error::SearchError;
use crate::store::parts::Parts;
use stop::Stop;
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

/// The workers of an index that no query has.
#[derive(Default)]
pub(crate) struct Workers {
    idle: Mutex<Vec<Worker>>,
    /// Those whose query was stopped while reads were under way: idle once the reads have ended.
    settling: Mutex<Vec<Worker>>,
}

/// More workers than this do not settle at a time: a query that is stopped then waits for its reads.
const MOST_SETTLING: usize = 64;

impl Workers {
    fn take(&self, parts: &Parts) -> Result<Worker, SearchError> {
        self.settle();
        let idle = lock(&self.idle).pop();
        idle.map_or_else(|| Worker::new(parts), Ok)
    }

    /// Keeps a worker for the next query, unless its disk has not answered.
    fn put(&self, mut worker: Worker) {
        if worker.in_flight() > 0 {
            let mut settling = lock(&self.settling);
            if settling.len() < MOST_SETTLING {
                settling.push(worker);
                return;
            }
            drop(settling);
            worker.drain();
        }
        if worker.usable() {
            lock(&self.idle).push(worker);
        }
    }

    /// Looks after the reads of queries that were stopped.
    fn settle(&self) {
        let mut settling = lock(&self.settling);
        if settling.is_empty() {
            return;
        }
        let settled: Vec<Worker> = settling.extract_if(.., Worker::settled).collect();
        drop(settling);
        lock(&self.idle).extend(settled.into_iter().filter(Worker::usable));
    }

    /// Reads under way for no query.
    #[cfg(test)]
    fn in_flight(&self) -> usize {
        self.settle();
        let reads = |workers| lock(workers).iter().map(Worker::in_flight).sum::<usize>();
        reads(&self.settling) + reads(&self.idle)
    }
}

/// Workers are whole whenever the lock is free, so a poisoned one is as good as any.
fn lock(workers: &Mutex<Vec<Worker>>) -> MutexGuard<'_, Vec<Worker>> {
    workers.lock().unwrap_or_else(PoisonError::into_inner)
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
    let result = worker.search(parts, query, &plan, Stop::of(o), Tracer::new(recorder));
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
            let query = &queries[i * dim..(i + 1) * dim];
            match worker.search(parts, query, &plan, Stop::of(o), Tracer::default()) {
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
