//! `search`: the nearest vectors of each query.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rabitq_ssd::dataset::GroundTruth;
use rabitq_ssd::{Index, IndexInfo, Metric, Pipeline, SearchOptions, SearchResult, SearchStats};
use serde::Serialize;

use super::console::Console;
use super::options::{SearchArgs, Setting, at_least_1, share, thread_count};
use super::size::grouped;
use super::table::{Grid, Pairs};
use super::tune;
use super::vectors::{Queries, Rows, keep_inputs};

/// Find the nearest vectors of each query
///
/// Scores are squared distances ascending for l2, the inner product or the cosine descending for
/// ip and cosine. Ids count from 0 unless the index was built with --ids. With --json, one line a
/// query: {"query":0,"ids":[...],"scores":[...]}; the summary then goes to stderr.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of the index
    index: PathBuf,
    /// Vector file of the queries, any format and value type
    queries: PathBuf,
    /// Neighbours wanted for each query; fewer come back only if the index holds fewer
    #[arg(long, value_name = "K", default_value_t = SearchOptions::default().k,
          value_parser = at_least_1, allow_negative_numbers = true)]
    k: usize,
    /// Lists to visit: more find more and take longer; above the number of lists means all
    /// [default: 128; 32 with --preset paper]
    #[arg(long, value_name = "N", value_parser = at_least_1, allow_negative_numbers = true)]
    nprobe: Option<usize>,
    /// Instead: the cheapest search that reached this recall when the index was tuned (see tune);
    /// --alpha and --epsilon go before what it found
    #[arg(long, value_name = "R", value_parser = share::<f64>, conflicts_with = "nprobe",
          allow_negative_numbers = true)]
    recall: Option<f64>,
    /// After the scan, read only pages that can beat this share of the results, above 0 to 1;
    /// 1 reads all that can matter [default: 0.4, with --deterministic 1]
    #[arg(long, value_name = "A", value_parser = share::<f32>, allow_negative_numbers = true)]
    alpha: Option<f32>,
    /// Reads in flight for each query [default: 16 up to 16 threads, 8 above]
    #[arg(long, value_name = "Q", value_parser = at_least_1, allow_negative_numbers = true)]
    inflight: Option<usize>,
    /// How reads are issued: naive, coalesced, overlapped, scheduled, full or fifo
    #[arg(long, value_name = "NAME", default_value_t = Pipeline::Full)]
    pipeline: Pipeline,
    /// Threads the queries are spread over [default: all]
    #[arg(long, value_name = "T", value_parser = thread_count, allow_negative_numbers = true)]
    threads: Option<usize>,
    #[command(flatten)]
    search: SearchArgs,
    /// Search only some queries, numbered from 0: 5, 10..20 (without 20), 10.. or ..20
    #[arg(
        long,
        value_name = "RANGE",
        help_heading = "Input and output",
        allow_hyphen_values = true
    )]
    rows: Option<Rows>,
    /// Also write ids and scores to a file: u32 queries, u32 k, all ids as u32, all scores as f32.
    /// k is at most the number of vectors; missing results have id 4294967295 and an infinite score
    #[arg(long, value_name = "FILE", help_heading = "Input and output")]
    out: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  rabitq-ssd search my.index queries.fbin --k 10 --nprobe 64
  rabitq-ssd search my.index queries.fbin --k 10 --recall 0.95
  rabitq-ssd search my.index queries.fbin --json | head -1
  rabitq-ssd search my.index queries.npy --deterministic --rows ..100 --out results.bin";

/// Queries and neighbours of the table for people.
const SHOWN_QUERIES: usize = 5;
const SHOWN_NEIGHBOURS: usize = 5;

pub(crate) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    let setting = Setting {
        k: args.k,
        nprobe: args.nprobe,
        alpha: args.alpha,
        inflight: args.inflight,
        pipeline: args.pipeline,
        threads: args.threads,
        threshold: None,
    };
    let mut options = args.search.options(&setting)?;
    if let Some(out) = &args.out {
        keep_inputs(out, [&args.index, &args.queries])?;
    }
    let index = Index::open(&args.index, &args.search.open())?;
    let info = index.info();
    let queries = Queries::read(&args.queries, info.dim, &args.index, args.rows.as_ref())?;
    if let Some(recall) = args.recall {
        let point = tune::point(&args.index, &info, args.k, recall)?;
        args.search.take(&point, args.alpha, &mut options);
    } else if args.nprobe.is_none() {
        // An index of nothing but zero rows has no lists, and is searched all the same.
        options.nprobe = options.nprobe.min(info.nlist).max(1);
    }
    for warning in index.warnings(&options) {
        console.warn(warning);
    }
    let started = Instant::now();
    let results = index.search_batch(&queries.values, &options, setting.threads())?;
    let wall = started.elapsed();

    if let Some(out) = &args.out {
        write_results(out, &info, args.k, &results)?;
    }
    for (query, result) in (queries.first..).zip(&results) {
        console.object(&Line { query, ids: &result.ids, scores: &result.scores })?;
    }
    let recall = match args.recall {
        Some(recall) if args.search.keeps_tuned(args.alpha) => {
            format!("at least {recall} when the index was tuned")
        }
        _ => "unknown: compare with ground truth by `bench`".into(),
    };
    // Anew: by now a reader may have had to do without the backend.
    let info = index.info();
    let summary = summary(&options, setting.threads(), &info, &results, wall, &recall);
    if console.json() {
        console.note(summary);
    } else {
        console.text(format_args!("{}\n{summary}", first_results(&queries, &results)))?;
    }
    Ok(())
}

#[derive(Serialize)]
struct Line<'a> {
    query: usize,
    ids: &'a [u64],
    scores: &'a [f32],
}

fn first_results(queries: &Queries, results: &[SearchResult]) -> String {
    if results.is_empty() {
        return "no queries".into();
    }
    let mut grid = Grid::new(&["query", "found", "nearest ids (score)"]).with_text();
    for (query, result) in (queries.first..).zip(results).take(SHOWN_QUERIES) {
        let neighbours = result.ids.iter().zip(&result.scores).take(SHOWN_NEIGHBOURS);
        let shown: Vec<String> =
            neighbours.map(|(id, score)| format!("{id} ({score:.4})")).collect();
        grid.row(vec![query.to_string(), result.ids.len().to_string(), shown.join("  ")]);
    }
    let hidden = results.len().saturating_sub(SHOWN_QUERIES);
    let more =
        if hidden > 0 { format!("... and {} more", grouped(hidden as u64)) } else { String::new() };
    format!("{grid}\n{more}\n")
}

fn summary(
    options: &SearchOptions,
    threads: usize,
    info: &IndexInfo,
    results: &[SearchResult],
    wall: Duration,
    recall: &str,
) -> Pairs {
    let mut sums = SearchStats::default();
    for result in results {
        sums += result.stats;
    }
    let count = results.len().max(1) as f64;
    let qps = results.len() as f64 / wall.as_secs_f64().max(1e-9);
    let each = |sum: u64| sum as f64 / count;
    let mut pairs = Pairs::default();
    pairs
        .add("searched", format!("{} queries, k {}", grouped(results.len() as u64), options.k))
        .add(
            "with",
            format!("nprobe {}, alpha {}, {threads} threads", options.nprobe, options.alpha),
        )
        .add("speed", format!("{qps:.0} QPS, {:.2} ms mean latency", each(sums.total_ns) / 1e6))
        .add(
            "per query",
            format!(
                "{:.1} pages read, {:.0} codes scanned, {:.1} lists",
                each(sums.pages),
                each(sums.codes_scanned),
                each(sums.lists_probed)
            ),
        )
        .add("recall", recall);
    machine(&mut pairs, info);
    pairs
}

/// Which kernels and which I/O ran, and why.
pub(crate) fn machine(pairs: &mut Pairs, info: &IndexInfo) {
    let direct = if info.direct { "O_DIRECT" } else { "through the page cache" };
    pairs.add("kernels", &info.kernels).add("I/O", format!("{}, {direct}", info.io_backend));
    for note in &info.io_notes {
        pairs.add("", note);
    }
}

/// A file of the shape of ground truth, `k` columns or as many as the index has vectors.
fn write_results(
    out: &Path,
    info: &IndexInfo,
    k: usize,
    results: &[SearchResult],
) -> anyhow::Result<()> {
    let k = usize::try_from(info.n).map_or(k, |n| k.min(n));
    let worst = if info.metric == Metric::L2 { f32::INFINITY } else { f32::NEG_INFINITY };
    let mut table = GroundTruth { queries: results.len(), k, ..GroundTruth::default() };
    let mut scores = Vec::with_capacity(results.len() * k);
    for result in results {
        let missing = k.saturating_sub(result.ids.len());
        table.ids.extend(&result.ids);
        table.ids.extend(std::iter::repeat_n(u64::from(u32::MAX), missing));
        scores.extend(&result.scores);
        scores.extend(std::iter::repeat_n(worst, missing));
    }
    table.distances = Some(scores);
    Ok(table.write(out)?)
}
