//! One setting, measured: search all queries a few times, reduce to one row.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Truth;
use crate::{Index, IndexInfo, SearchError, SearchOptions, SearchResult, SearchStats};

/// An index, queries and their exact neighbours: what settings are tried on.
#[derive(Clone, Copy)]
pub struct Trial<'a> {
    index: &'a Index,
    info: &'a IndexInfo,
    queries: &'a [f32],
    truth: &'a Truth,
}

/// What may be different from one measurement to the next.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Options of each search.
    pub options: SearchOptions,
    /// Threads the queries are spread over.
    pub threads: usize,
}

impl Setting {
    /// The same with another nprobe.
    #[must_use]
    pub fn at(&self, nprobe: usize) -> Self {
        let mut setting = self.clone();
        setting.options.nprobe = nprobe;
        setting
    }
}

/// How often the queries are searched.
#[derive(Clone, Copy, Debug)]
pub struct Repeat {
    /// Rounds that count, at least 1.
    pub rounds: usize,
    /// Whether one round that does not count goes first.
    pub warmup: bool,
}

/// One measured setting. Counters are means per query over all rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BenchRow {
    /// Metric of the index.
    pub metric: String,
    /// Vectors in the index.
    pub n: u64,
    /// Values per vector.
    pub dim: usize,
    /// Neighbours asked for.
    pub k: usize,
    /// Search threads.
    pub threads: usize,
    /// Lists to visit.
    pub nprobe: usize,
    /// Mean tie-aware recall@k.
    pub recall: f64,
    /// Queries per second, all threads together: the median over the rounds.
    pub qps: f64,
    /// The slowest round.
    pub qps_min: f64,
    /// The fastest round.
    pub qps_max: f64,
    /// Mean latency of a query in milliseconds.
    pub mean_ms: f64,
    /// Median latency.
    pub p50_ms: f64,
    /// Latency that 95 of 100 queries kept within.
    pub p95_ms: f64,
    /// Latency that 99 of 100 queries kept within.
    pub p99_ms: f64,
    /// 4 KiB pages read.
    pub pages_per_query: f64,
    /// Bytes read.
    pub bytes_per_query: f64,
    /// Record kind of the index.
    pub record: String,
    /// Sign bits of each vector in RAM.
    pub prefix_dims: usize,
    /// Bits per dimension of `split` records.
    pub bits: u32,
    /// Inverted lists.
    pub nlist: usize,
    /// Share of the results a page must beat in the drain.
    pub alpha: f32,
    /// Width of the bounds in standard deviations.
    pub epsilon: f32,
    /// Reads in flight for each query; empty for the library's choice.
    pub inflight: Option<usize>,
    /// Read pipeline.
    pub pipeline: String,
    /// Where the threshold started.
    pub threshold: String,
    /// Coarse quantizer of the index.
    pub coarse: String,
    /// What carried the reads.
    pub io_backend: String,
    /// Whether reads went around the page cache.
    pub direct: bool,
    /// Reads issued.
    pub issued: f64,
    /// Page candidates discarded before they were read.
    pub dropped: f64,
    /// Reads nothing of which was still wanted when they came back.
    pub wasted: f64,
    /// Codes within the threshold when they were scanned.
    pub survivors: f64,
    /// Records re-ranked.
    pub reranked: f64,
    /// Lists visited.
    pub lists_probed: f64,
    /// Codes scanned.
    pub codes_scanned: f64,
    /// Share of the time spent after the scan, waiting for and ranking the last pages.
    pub drain_share: f64,
    /// Bytes of the index in RAM.
    pub resident_bytes: u64,
    /// Bytes of the index on disk.
    pub ssd_bytes: u64,
    /// Instruction set of the kernels.
    pub kernels: String,
    /// Bits of the lookup tables.
    pub table_bits: String,
    /// Mean number of reads in flight, from the first submit to the last completion.
    pub mean_inflight: f64,
    /// Reads that completed before the scan ended.
    pub completed_in_scan: f64,
    /// Milliseconds to rotate the query, build tables and find the lists.
    pub route_ms: f64,
    /// Milliseconds from the first list to the end of the scan.
    pub scan_ms: f64,
    /// Milliseconds from the end of the scan to the result.
    pub drain_ms: f64,
    /// Share of the time blocked on reads.
    pub wait_share: f64,
    /// The recall this row's nprobe was searched for, if it was.
    pub target_recall: Option<f64>,
    /// Random 4 KiB reads per second of this disk with 64 in flight from one thread, if measured.
    pub ceiling_reads_per_s: Option<f64>,
    /// Share of that ceiling the searches read at: pages a query times QPS, over the ceiling.
    pub read_share: Option<f64>,
    /// Rounds that counted.
    #[serde(default)]
    pub rounds: usize,
    /// Queries of each round.
    #[serde(default)]
    pub queries: usize,
    /// Latency that 999 of 1000 queries kept within.
    #[serde(default)]
    pub p999_ms: f64,
    /// Pages that 99 of 100 queries kept within.
    #[serde(default)]
    pub pages_p99: u64,
    /// Pages of the query that read most.
    #[serde(default)]
    pub pages_max: u64,
}

impl BenchRow {
    /// Note the random-read ceiling of the disk, and how much of it this row used.
    #[must_use]
    pub fn under_ceiling(mut self, reads_per_s: Option<f64>) -> Self {
        self.ceiling_reads_per_s = reads_per_s;
        self.read_share =
            reads_per_s.filter(|&r| r > 0.0).map(|r| self.pages_per_query * self.qps / r);
        self
    }
}

/// What all rounds together came to.
struct Outcome {
    recall: f64,
    /// Wall time of each round, ascending.
    walls: Vec<Duration>,
    /// Latencies of all queries of all rounds, ascending, in nanoseconds.
    latencies: Vec<u64>,
    /// Pages of all queries of all rounds, ascending.
    pages: Vec<u64>,
    sums: SearchStats,
}

impl<'a> Trial<'a> {
    /// `queries` holds whole queries of the index's dim, as many as `truth`.
    ///
    /// # Panics
    /// If it does not.
    #[must_use]
    pub fn new(
        index: &'a Index,
        info: &'a IndexInfo,
        queries: &'a [f32],
        truth: &'a Truth,
    ) -> Self {
        assert_eq!(queries.len(), truth.queries() * info.dim, "one ground truth row per query");
        Self { index, info, queries, truth }
    }

    /// Search all queries in every round and reduce the rounds to one row.
    ///
    /// # Errors
    /// The first query that fails.
    ///
    /// # Panics
    /// If k is beyond the ground truth's.
    pub fn measure(&self, setting: &Setting, repeat: Repeat) -> Result<BenchRow, SearchError> {
        self.measure_within(setting, repeat, Duration::MAX)
    }

    /// The same, but no round begins, after the first that counts, once `budget` is spent, warm-up
    /// included: the row says how many rounds it had.
    ///
    /// # Errors
    /// The first query that fails.
    ///
    /// # Panics
    /// If k is beyond the ground truth's.
    pub fn measure_within(
        &self,
        setting: &Setting,
        repeat: Repeat,
        budget: Duration,
    ) -> Result<BenchRow, SearchError> {
        let started = Instant::now();
        if repeat.warmup {
            self.round(setting)?;
        }
        let mut recalls = 0.0;
        let (mut walls, mut latencies, mut pages) = (Vec::new(), Vec::new(), Vec::new());
        let mut sums = SearchStats::default();
        for round in 0..repeat.rounds.max(1) {
            if round > 0 && started.elapsed() >= budget {
                break;
            }
            let (wall, results) = self.round(setting)?;
            walls.push(wall);
            recalls += self.mean_recall(setting.options.k, &results);
            for result in &results {
                latencies.push(result.stats.total_ns);
                pages.push(result.stats.pages);
                sums += result.stats;
            }
        }
        walls.sort_unstable();
        latencies.sort_unstable();
        pages.sort_unstable();
        let recall = recalls / walls.len() as f64;
        Ok(self.row(setting, &Outcome { recall, walls, latencies, pages, sums }))
    }

    /// Search all queries once: what each found, and the mean recall.
    ///
    /// # Errors
    /// The first query that fails.
    pub fn search(&self, setting: &Setting) -> Result<(Vec<SearchResult>, f64), SearchError> {
        let (_, results) = self.round(setting)?;
        let recall = self.mean_recall(setting.options.k, &results);
        Ok((results, recall))
    }

    /// Recall of one round, nothing else measured.
    pub(super) fn recall(&self, setting: &Setting) -> Result<f64, SearchError> {
        self.search(setting).map(|(_, recall)| recall)
    }

    pub(super) fn index(&self) -> &Index {
        self.index
    }

    pub(super) fn queries(&self) -> &[f32] {
        self.queries
    }

    pub(super) fn nlist(&self) -> usize {
        self.info.nlist
    }

    fn round(&self, setting: &Setting) -> Result<(Duration, Vec<SearchResult>), SearchError> {
        let started = Instant::now();
        let results = self.index.search_batch(self.queries, &setting.options, setting.threads)?;
        Ok((started.elapsed(), results))
    }

    fn mean_recall(&self, k: usize, results: &[SearchResult]) -> f64 {
        let exact = self.info.record.is_exact();
        let sum: f64 = results
            .iter()
            .enumerate()
            .map(|(query, r)| self.truth.recall(query, k, &r.ids, &r.scores, exact))
            .sum();
        sum / results.len().max(1) as f64
    }

    fn row(&self, setting: &Setting, outcome: &Outcome) -> BenchRow {
        let (info, options, sums) = (self.info, &setting.options, &outcome.sums);
        let count = outcome.latencies.len().max(1) as f64;
        let each = |sum: u64| sum as f64 / count;
        let each_ms = |sum: u64| each(sum) / 1e6;
        let qps = |wall: Option<&Duration>| {
            self.truth.queries() as f64 / wall.map_or(1e-9, |w| w.as_secs_f64().max(1e-9))
        };
        BenchRow {
            metric: info.metric.to_string(),
            n: info.n,
            dim: info.dim,
            k: options.k,
            threads: setting.threads,
            nprobe: options.nprobe,
            recall: outcome.recall,
            qps: qps(outcome.walls.get(outcome.walls.len() / 2)),
            qps_min: qps(outcome.walls.last()),
            qps_max: qps(outcome.walls.first()),
            mean_ms: each_ms(sums.total_ns),
            p50_ms: percentile_ms(&outcome.latencies, 500),
            p95_ms: percentile_ms(&outcome.latencies, 950),
            p99_ms: percentile_ms(&outcome.latencies, 990),
            pages_per_query: each(sums.pages),
            bytes_per_query: each(sums.bytes),
            record: info.record.to_string(),
            prefix_dims: info.prefix_dims,
            bits: info.bits,
            nlist: info.nlist,
            alpha: options.alpha,
            epsilon: options.epsilon,
            inflight: options.inflight,
            pipeline: options.pipeline.to_string(),
            threshold: options.threshold.to_string(),
            coarse: info.coarse.to_string(),
            io_backend: info.io_backend.clone(),
            direct: info.direct,
            issued: each(sums.issued),
            dropped: each(sums.dropped),
            wasted: each(sums.wasted),
            survivors: each(sums.survivors),
            reranked: each(sums.reranked),
            lists_probed: each(sums.lists_probed),
            codes_scanned: each(sums.codes_scanned),
            drain_share: ratio(sums.drain_ns, sums.total_ns),
            resident_bytes: info.resident_bytes,
            ssd_bytes: info.ssd_bytes,
            kernels: info.kernels.clone(),
            table_bits: options.table_bits.to_string(),
            mean_inflight: ratio(sums.inflight_ns, sums.io_span_ns),
            completed_in_scan: each(sums.completed_in_scan),
            route_ms: each_ms(sums.route_ns),
            scan_ms: each_ms(sums.scan_ns),
            drain_ms: each_ms(sums.drain_ns),
            wait_share: ratio(sums.wait_ns, sums.total_ns),
            target_recall: None,
            ceiling_reads_per_s: None,
            read_share: None,
            rounds: outcome.walls.len(),
            queries: self.truth.queries(),
            p999_ms: percentile_ms(&outcome.latencies, 999),
            pages_p99: percentile(&outcome.pages, 990),
            pages_max: outcome.pages.last().copied().unwrap_or(0),
        }
    }
}

/// Nearest rank: the least value that at least `mille` of 1000 kept within.
fn percentile(ascending: &[u64], mille: usize) -> u64 {
    let rank = (ascending.len() * mille).div_ceil(1000).max(1);
    ascending.get(rank - 1).copied().unwrap_or(0)
}

fn percentile_ms(ascending_ns: &[u64], mille: usize) -> f64 {
    percentile(ascending_ns, mille) as f64 / 1e6
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let ascending: Vec<u64> = (1..=200).map(|ms| ms * 1_000_000).collect();
        assert_eq!(percentile_ms(&ascending, 500), 100.0);
        assert_eq!(percentile_ms(&ascending, 990), 198.0);
        assert_eq!(percentile_ms(&ascending, 999), 200.0);
        assert_eq!(percentile_ms(&ascending[..1], 990), 1.0);
        assert_eq!(percentile(&[], 500), 0);
    }
}
