//! What one thread needs to search: a reader for each paged file, and scratch that queries reuse.

use std::time::{Duration, Instant};

use codec::{Query, ScalarQuery, Scan, TightBound};
use pageio::PageReader;
use simd::Kernels;

use super::SearchResult;
use super::engine::{Engine, EngineScratch};
use super::ids::{all_ids, first_ids, read_ids};
use super::options::Plan;
use super::reads::Reads;
use super::rerank::Rerank;
use super::stats::SearchStats;
use super::stop::Stop;
use super::stretch::stretch;
use super::trace::Tracer;
use crate::build::{estimator, prepare::normalise};
use crate::coarse::{CoarseScratch, Probe};
use crate::config::Metric;
use crate::error::SearchError;
use crate::store::parts::{Parts, READ_SLOTS};

/// The searching side of one thread; an index keeps those that are idle.
pub(crate) struct Worker {
    records: Box<dyn PageReader>,
    /// Reads `records` can have in flight.
    room: usize,
    ids: Option<Box<dyn PageReader>>,
    scratch: EngineScratch,
    coarse: CoarseScratch,
    query: Query,
    scaled: ScalarQuery,
    probes: Vec<Probe>,
    /// The query as raw records see it, then centred, then rotated.
    given: Vec<f32>,
    centred: Vec<f32>,
    rotated: Vec<f32>,
}

impl Worker {
    pub(crate) fn new(parts: &Parts) -> Result<Self, SearchError> {
        Ok(Self {
            records: parts.records.file.reader()?,
            room: READ_SLOTS as usize,
            ids: parts.ids.as_ref().map(|ids| ids.file.reader()).transpose()?,
            scratch: EngineScratch::default(),
            coarse: CoarseScratch::default(),
            query: Query::default(),
            scaled: ScalarQuery::default(),
            probes: Vec::new(),
            given: Vec::new(),
            centred: Vec::new(),
            rotated: Vec::new(),
        })
    }

    /// Whether another query can be answered: not after a disk has kept silent for too long.
    pub(crate) fn usable(&self) -> bool {
        self.records.usable() && self.ids.as_ref().is_none_or(|ids| ids.usable())
    }

    /// Reads under way for a query that was stopped.
    pub(crate) fn in_flight(&self) -> usize {
        self.records.in_flight() + self.ids.as_ref().map_or(0, |ids| ids.in_flight())
    }

    /// Takes back what has ended of a stopped query's reads; whether that was all, or the reader
    /// has been given up.
    pub(crate) fn settled(&mut self) -> bool {
        let readers = [Some(&mut self.records), self.ids.as_mut()];
        readers.into_iter().flatten().all(|reader| {
            let mut ended = Vec::new();
            let waited = match reader.in_flight() {
                0 => return true,
                // A wait of no time, not a look: it counts for the watchdog.
                _ => reader.wait_at_most(Some(Duration::ZERO), &mut ended),
            };
            ended.into_iter().for_each(|completion| reader.release(completion.slot));
            waited.is_err() || reader.in_flight() == 0
        })
    }

    /// Waits for the reads of a stopped query.
    pub(crate) fn drain(&mut self) {
        self.records.drain();
        self.ids.iter_mut().for_each(|ids| ids.drain());
    }

    /// Answers one valid query. After an error nothing is in flight and the worker can go on, if it
    /// is still usable; only the reads of a query that was stopped may still be under way.
    pub(crate) fn search(
        &mut self,
        parts: &Parts,
        query: &[f32],
        plan: &Plan,
        stop: Stop<'_>,
        mut trace: Tracer<'_>,
    ) -> Result<SearchResult, SearchError> {
        let start = trace.start();
        let mut stats = SearchStats::default();
        self.make_room(parts, plan.policy.inflight)?;
        self.take_query(parts, query);
        if parts.shape.metric == Metric::Cosine && self.given.iter().all(|&v| v == 0.0) {
            return answer_zero_query(parts, plan, start, stop, stats);
        }
        self.route(parts, plan.nprobe, plan.k);
        let stretch = match parts.shape.metric {
            Metric::Ip => stretch(parts, &mut self.rotated, &mut self.probes),
            Metric::L2 | Metric::Cosine => 1.0,
        };
        self.tabulate(parts, plan);
        stats.route_ns = start.elapsed().as_nanos() as u64;

        let mut outcome = self.scan_and_drain(parts, plan, stop, stretch, &mut stats, trace.lend());
        if outcome.is_ok() {
            outcome = self.name_hits(parts, plan, stop, &mut stats, trace);
        }
        if outcome.as_ref().is_err_and(|error| !error.is_stop()) {
            self.drain();
        }
        outcome?;
        let mut hits: Vec<(u64, f32)> =
            self.scratch.top.hits().iter().map(|h| (h.id, h.score)).collect();
        if hits.len() < plan.k
            && let Some(zeros) = &parts.zeros
        {
            let ids =
                first_ids(zeros, parts.shape.zero_rows, plan.k - hits.len(), stop, &mut stats)?;
            hits.extend(ids.into_iter().map(|id| (id, 0.0)));
        }
        stats.total_ns = start.elapsed().as_nanos() as u64;
        let (ids, scores) = hits.into_iter().unzip();
        Ok(SearchResult { ids, scores, stats })
    }

    /// A reader for as many reads in flight as the search may have; it stays for the next ones.
    fn make_room(&mut self, parts: &Parts, reads: usize) -> Result<(), SearchError> {
        if reads > self.room {
            self.records = parts.records.file.reader_with_slots(reads as u32)?;
            self.room = reads;
        }
        Ok(())
    }

    /// Prepares the query as the rows were prepared; inner products are taken with the query as
    /// it is, so only the rows are centred.
    fn take_query(&mut self, parts: &Parts, query: &[f32]) {
        self.given.clear();
        self.given.extend_from_slice(query);
        if parts.shape.metric == Metric::Cosine {
            normalise(&mut self.given);
        }
        self.centred.clear();
        self.centred.extend_from_slice(&self.given);
        if parts.shape.metric != Metric::Ip {
            self.centred.iter_mut().zip(&parts.mean).for_each(|(v, m)| *v -= m);
        }
        self.rotated.resize(parts.shape.padded_dim, 0.0);
        parts.rotation.apply(&self.centred, &mut self.rotated);
    }

    /// Makes the tables of the rotated query.
    fn tabulate(&mut self, parts: &Parts, plan: &Plan) {
        self.query.prepare(&self.rotated, parts.shape.prefix_dims, plan.table_bits);
        if let Some(scales) = &parts.scales {
            self.scaled.prepare(scales, &self.rotated);
        }
    }

    /// The rotated query and the lists nearest to it, no more than asked for.
    pub(crate) fn lists(
        &mut self,
        parts: &Parts,
        query: &[f32],
        nprobe: usize,
    ) -> (Vec<f32>, Vec<u32>) {
        self.take_query(parts, query);
        self.route(parts, nprobe, 0);
        (self.rotated.clone(), self.probes.iter().map(|probe| probe.list).collect())
    }

    /// Finds the lists to visit, more than asked for when those hold fewer than k rows.
    fn route(&mut self, parts: &Parts, wanted: usize, k: usize) {
        let enough = (k as u64).min(parts.shape.stored);
        let mut nprobe = wanted.min(parts.shape.nlist);
        loop {
            let (coarse, out) = (&mut self.coarse, &mut self.probes);
            parts.coarse.select(&parts.centroids, &self.rotated, nprobe, coarse, out);
            let mut rows = 0;
            let first = self.probes.iter().position(|p| {
                let list = parts.list(p.list);
                rows += list.end - list.start;
                rows >= enough
            });
            if let Some(first) = first {
                let asked = wanted.max(first + 1);
                self.probes.truncate(asked);
                return;
            }
            if nprobe >= parts.shape.nlist {
                return;
            }
            nprobe = (nprobe * 2).min(parts.shape.nlist);
        }
    }

    fn scan_and_drain(
        &mut self,
        parts: &Parts,
        plan: &Plan,
        stop: Stop<'_>,
        stretch: f32,
        stats: &mut SearchStats,
        trace: Tracer<'_>,
    ) -> Result<(), SearchError> {
        let shape = &parts.shape;
        let kernels = Kernels::best();
        let metric = shape.code_metric();
        let estimator = estimator(parts.manifest.bound);
        let mean_product = match shape.metric {
            Metric::Ip => kernels.dot(&self.given, &parts.mean),
            Metric::L2 | Metric::Cosine => 0.0,
        };
        let mut engine = Engine {
            parts,
            plan,
            probes: &self.probes,
            scan: Scan { kernels, query: &self.query, codes: &parts.codes, epsilon: plan.epsilon },
            tight: TightBound::new(
                shape.padded_dim,
                shape.prefix_dims,
                metric,
                estimator,
                plan.epsilon,
            ),
            rerank: Rerank {
                shape,
                split: shape.split(),
                scalar: shape.scalar(),
                kernels,
                rotated: &self.query,
                scaled: &self.scaled,
                query: &self.given,
                mean_product,
                stretch,
            },
            reads: Reads::new(self.records.as_mut(), &parts.records, stop, trace),
            s: &mut self.scratch,
            stats,
        };
        let start = Instant::now();
        engine.scan()?;
        let scanned = start.elapsed().as_nanos() as u64;
        engine.stats.scan_ns = scanned;
        engine.stats.completed_in_scan = engine.stats.issued - engine.reads.in_flight() as u64;
        engine.drain()?;
        engine.stats.drain_ns = start.elapsed().as_nanos() as u64 - scanned;
        Ok(())
    }

    /// Reads the ids of the hits when records do not hold them; then orders by score, ties by id.
    fn name_hits(
        &mut self,
        parts: &Parts,
        plan: &Plan,
        stop: Stop<'_>,
        stats: &mut SearchStats,
        trace: Tracer<'_>,
    ) -> Result<(), SearchError> {
        let hits = self.scratch.top.hits_mut();
        if let (Some(units), Some(reader)) = (&parts.ids, &mut self.ids) {
            let mut reads = Reads::new(reader.as_mut(), units, stop, trace);
            read_ids(&mut reads, units, hits, stats)?;
        }
        let ascending = parts.shape.metric == Metric::L2;
        hits.sort_unstable_by(|a, b| {
            let by_score = a.score.total_cmp(&b.score);
            (if ascending { by_score } else { by_score.reverse() }).then(a.id.cmp(&b.id))
        });
        hits.truncate(plan.k);
        Ok(())
    }
}

/// Every row scores 0 against a zero query: the answer is the lowest ids.
fn answer_zero_query(
    parts: &Parts,
    plan: &Plan,
    start: Instant,
    stop: Stop<'_>,
    mut stats: SearchStats,
) -> Result<SearchResult, SearchError> {
    let units = parts.ids.as_ref().unwrap_or(&parts.records);
    let mut ids = all_ids(units, parts.shape.stored, parts.shape.payload(), stop, &mut stats)?;
    if let Some(zeros) = &parts.zeros {
        ids.extend(first_ids(zeros, parts.shape.zero_rows, plan.k, stop, &mut stats)?);
    }
    ids.sort_unstable();
    ids.truncate(plan.k);
    stats.total_ns = start.elapsed().as_nanos() as u64;
    Ok(SearchResult { scores: vec![0.0; ids.len()], ids, stats })
}
