//! `groundtruth`: the exact neighbours of a set of queries.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use rabitq_ssd::dataset::Base;
use rabitq_ssd::evaluate::{Exact, ground_truth};
use rabitq_ssd::{Metric, Progress};
use serde_json::json;

use super::console::Console;
use super::failure::usage;
use super::next;
use super::options::{at_least_1, thread_count, threads};
use super::progress::Reporter;
use super::size::grouped;
use super::vectors::{self, Queries, keep_inputs};

/// Compute the exact nearest rows of each query, to measure recall against
///
/// Writes u32 queries, u32 k, all row numbers as u32, then all scores as f32: squared distances
/// ascending for l2, the score itself descending for ip and cosine. Ties go by row number. Rows
/// with NaN, infinities or overflowing norms are nobody's neighbour.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Vector files, together one base, in the order they are given to build; quoted patterns as
    /// 'part*.fbin' work too
    #[arg(long, required = true, num_args = 1.., value_name = "FILE")]
    base: Vec<PathBuf>,
    /// Only the first N rows of the base
    #[arg(long, value_name = "N", value_parser = at_least_1, allow_negative_numbers = true)]
    rows: Option<usize>,
    /// Vector file of the queries
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// Neighbours of each query; recall can be measured up to this k
    #[arg(long, value_name = "K", default_value_t = 100, value_parser = at_least_1,
          allow_negative_numbers = true)]
    k: usize,
    /// l2 (squared Euclidean), ip (inner product) or cosine
    #[arg(long, value_name = "l2|ip|cosine", default_value_t = Metric::L2)]
    metric: Metric,
    /// File to write, replaced if it exists
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Threads [default: all]
    #[arg(long, value_name = "T", value_parser = thread_count, allow_negative_numbers = true)]
    threads: Option<usize>,
}

const EXAMPLES: &str = "\
Examples:
  rabitq-ssd groundtruth --base base.fbin --queries queries.fbin --out gt.bin
  rabitq-ssd groundtruth --base part0.fbin part1.fbin --queries q.npy --metric ip --k 10 --out gt.bin";

/// Rows that ground truth files have numbers for.
const MOST_ROWS: u64 = 1 << 32;
/// Time between two looks whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    if args.out.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ivecs")) {
        return Err(usage(".ivecs cannot hold scores: give --out another extension, as gt.bin"));
    }
    let base = vectors::open_first(&args.base, args.rows)?;
    keep_inputs(&args.out, base.paths().iter().chain([&args.queries]))?;
    if base.n() > MOST_ROWS {
        return Err(usage(format!(
            "the base has {} rows, but ground truth files number them in 32 bits: use --rows \
             {MOST_ROWS} or fewer",
            grouped(base.n())
        )));
    }
    let started = Instant::now();
    let (n, dim) = (base.n(), base.dim());
    let of = base.paths().first().cloned().unwrap_or_default();
    let queries = Queries::read(&args.queries, dim, &of, None)?;
    let exact = compare(base, queries, args, Reporter::stoppable(console)?)?;
    let truth = exact.truth;
    if exact.invalid_rows > 0 {
        let rows = grouped(exact.invalid_rows);
        console.warn(format_args!("{rows} invalid rows of the base are nobody's neighbour"));
    }
    if truth.k < args.k {
        console
            .warn(format_args!("the base has {} valid rows: k is that, not {}", truth.k, args.k));
    }
    truth.write(&args.out)?;
    let seconds = started.elapsed().as_secs_f64();
    console.object(&json!({
        "out": args.out.to_string_lossy(), "queries": truth.queries, "k": truth.k,
        "metric": args.metric, "n": n, "dim": dim,
        "invalid_rows": exact.invalid_rows, "seconds": seconds,
    }))?;
    console.text(format_args!(
        "{}: the {} nearest of {} rows for {} queries, in {seconds:.1} s\n\nNext: {} bench INDEX {} {}",
        args.out.display(),
        truth.k,
        grouped(n),
        grouped(truth.queries as u64),
        next::program(),
        next::quoted(&args.queries),
        next::quoted(&args.out),
    ))?;
    Ok(())
}

/// The comparison, in a thread of its own. It asks once a block whether to stop, and a block of many
/// queries takes long; nothing is written before the end, so a command that is to stop need not
/// wait for it.
fn compare(base: Base, queries: Queries, args: &Args, told: Reporter) -> anyhow::Result<Exact> {
    let (k, metric, threads) = (args.k, args.metric, threads(args.threads));
    let told = Arc::new(told);
    let (sender, result) = mpsc::channel();
    let progress = Arc::clone(&told);
    thread::Builder::new().name("compare".into()).spawn(move || {
        // Nobody listens once the command has stopped.
        let _ = sender.send(ground_truth(&base, &queries.values, k, metric, threads, &*progress));
    })?;
    let outcome = loop {
        match result.recv_timeout(LOOK_EVERY) {
            Err(RecvTimeoutError::Timeout) if !told.cancelled() => {}
            outcome => break outcome,
        }
    };
    told.pause();
    match outcome {
        Ok(exact) => told.outcome(exact),
        Err(RecvTimeoutError::Timeout) => bail!("interrupted"),
        Err(RecvTimeoutError::Disconnected) => bail!("the comparison ended without a result"),
    }
}
