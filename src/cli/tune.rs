//! `tune`: the cheapest search for each recall, measured and kept in the index.

use std::path::{Path, PathBuf};

use anyhow::bail;
use rabitq_ssd::dataset::{Base, GroundTruth, sample_rows};
use rabitq_ssd::evaluate::{
    RecallCurve, Repeat, Setting, Trial, Truth, TunedPoint, Tuning, ground_truth, with_self,
    without_self,
};
use rabitq_ssd::{Index, IndexInfo, Progress, SearchOptions};

use super::bench::truth;
use super::console::Console;
use super::failure::usage;
use super::next;
use super::options::{OpenArgs, at_least_1, epsilon, share, thread_count, threads};
use super::progress::Reporter;
use super::table::Grid;
use super::vectors::{self, Queries};

/// Find the cheapest search for each recall, and keep it in the index for search --recall
///
/// Recall is measured on queries of yours, against --groundtruth or the exact neighbours in
/// --base; without queries, on rows of --base that are left out of their own neighbours. Queries
/// that are not like the base (text against images) need to be given. Of all combinations of
/// --alpha and --epsilon the fastest is kept for each recall.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of the index
    index: PathBuf,
    /// Vector files the index was built from
    #[arg(long, value_name = "BASE", num_args = 1.., required_unless_present = "groundtruth")]
    base: Vec<PathBuf>,
    /// Vector file of queries
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
    /// Ground truth of these queries, as `groundtruth` writes it
    #[arg(long, value_name = "FILE", requires = "queries", conflicts_with = "base")]
    groundtruth: Option<PathBuf>,
    /// The external ids the index was built with
    #[arg(long, value_name = "FILE")]
    ids: Option<PathBuf>,
    /// Recalls to reach
    #[arg(long, value_name = "R,...", value_delimiter = ',', value_parser = share::<f64>,
          default_value = "0.8,0.9,0.95,0.98,0.99", allow_negative_numbers = true)]
    recall: Vec<f64>,
    /// Neighbours wanted; one or several
    #[arg(long, value_name = "K,...", value_delimiter = ',', value_parser = at_least_1,
          default_value = "10", allow_negative_numbers = true)]
    k: Vec<usize>,
    /// Shares of the results a page must beat after the scan
    #[arg(long, value_name = "A,...", value_delimiter = ',', value_parser = share::<f32>,
          default_value = "0.4,1", allow_negative_numbers = true)]
    alpha: Vec<f32>,
    /// Widths of the lower bounds in standard deviations
    #[arg(long, value_name = "E,...", value_delimiter = ',', value_parser = epsilon,
          default_value = "1.9", allow_negative_numbers = true)]
    epsilon: Vec<f32>,
    /// Queries at most; rows of the base where no queries are given
    #[arg(long, value_name = "N", value_parser = at_least_1, default_value_t = 1000,
          allow_negative_numbers = true)]
    sample: usize,
    /// Threads the queries are spread over [default: all]
    #[arg(long, value_name = "T", value_parser = thread_count, allow_negative_numbers = true)]
    threads: Option<usize>,
    #[command(flatten)]
    open: OpenArgs,
}

const EXAMPLES: &str = "\
Examples:
  rabitq-ssd tune my.index --base base.fbin
  rabitq-ssd tune my.index --queries queries.fbin --groundtruth gt.bin --k 10,100 --recall 0.9,0.95
  rabitq-ssd search my.index queries.fbin --recall 0.95";

/// Seed of the rows that stand in for queries.
const SAMPLE_SEED: u64 = 0x7e57;
/// Rounds of a measurement, after one that does not count.
const ROUNDS: usize = 3;

/// Queries and their neighbours.
struct Asked {
    queries: Vec<f32>,
    truth: Truth,
    /// Whether the first neighbour of each is the query itself.
    with_self: bool,
}

pub(crate) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    let index = Index::open(&args.index, &args.open.options())?;
    let info = index.info();
    let reporter = Reporter::stoppable(console)?;
    let asked = args.asked(&info, &reporter, console)?;
    let mut tuning = Tuning::read(&args.index, &info.uuid)?;
    let trial = Trial::new(&index, &info, &asked.queries, &asked.truth);
    let mut grid = Grid::new(&[
        "k",
        "target",
        "recall",
        "nprobe",
        "alpha",
        "epsilon",
        "QPS",
        "mean ms",
        "pages/query",
    ]);
    let total = (args.k.len() * args.recall.len()) as u64;
    let mut done = 0;
    for &k in &args.k {
        let settings = args.settings(k + usize::from(asked.with_self));
        let mut curves = vec![RecallCurve::default(); settings.len()];
        for &target in &args.recall {
            reporter.update("tune", done, total);
            done += 1;
            if reporter.cancelled() {
                bail!("interrupted");
            }
            let within = if asked.with_self { with_self(target, k) } else { target };
            let repeat = Repeat { rounds: ROUNDS, warmup: true };
            let Some(row) = trial.tune(within, &settings, &mut curves, repeat)? else {
                reporter.pause();
                console.warn(format_args!(
                    "recall {target} at k {k} is out of reach with all {} lists: try a larger \
                     --epsilon, more --bits, or raw records",
                    info.nlist
                ));
                continue;
            };
            let recall = if asked.with_self { without_self(row.recall, k) } else { row.recall };
            let point = TunedPoint::of(&row, k, target, recall, asked.truth.queries());
            grid.row(cells(&point));
            console.object(&point)?;
            tuning.add(point);
        }
    }
    reporter.update("tune", total, total);
    drop(reporter);
    tuning.write(&args.index)?;
    let (program, out) = (next::program(), next::quoted(&args.index));
    console.text(format_args!(
        "{grid}\n\nkept in the index. Next: {program} search {out} QUERIES --recall 0.95"
    ))?;
    Ok(())
}

fn cells(point: &TunedPoint) -> Vec<String> {
    vec![
        point.k.to_string(),
        point.target_recall.to_string(),
        format!("{:.4}", point.recall),
        point.nprobe.to_string(),
        point.alpha.to_string(),
        point.epsilon.to_string(),
        format!("{:.0}", point.qps),
        format!("{:.2}", point.mean_ms),
        format!("{:.1}", point.pages_per_query),
    ]
}

impl Args {
    /// Every combination of alpha and epsilon, for `k` neighbours.
    fn settings(&self, k: usize) -> Vec<Setting> {
        let options =
            |(alpha, epsilon)| SearchOptions { k, alpha, epsilon, ..SearchOptions::default() };
        let pairs = self.alpha.iter().flat_map(|&a| self.epsilon.iter().map(move |&e| (a, e)));
        let threads = threads(self.threads);
        pairs.map(|pair| Setting { options: options(pair), threads }).collect()
    }

    fn asked(
        &self,
        info: &IndexInfo,
        reporter: &Reporter,
        console: &Console,
    ) -> anyhow::Result<Asked> {
        let most_k = self.k.iter().copied().max().unwrap_or(1);
        if let (Some(queries), Some(truth_file)) = (&self.queries, &self.groundtruth) {
            let found = Queries::read(queries, info.dim, &self.index, None)?;
            let of = truth::Asked { file: queries, n: found.n };
            let ids = self.ids.as_deref();
            let truth = truth::read(console, info, &of, truth_file, ids, &self.k)?;
            return Ok(Asked { queries: found.values, truth, with_self: false });
        }
        let base = vectors::open(&self.base)?;
        self.check_base(&base, info)?;
        let with_self = self.queries.is_none();
        let queries = match &self.queries {
            Some(path) => {
                let mut queries = Queries::read(path, info.dim, &self.index, None)?;
                queries.values.truncate(self.sample * info.dim);
                queries.values
            }
            None => self.held_out(&base, info)?,
        };
        if queries.is_empty() {
            bail!("there are no queries to tune with");
        }
        let k = most_k + usize::from(with_self);
        let threads = threads(self.threads);
        let exact = ground_truth(&base, &queries, k, info.metric, threads, reporter)?;
        if exact.truth.k < k {
            return Err(usage(format!(
                "--k {most_k}: the base has {} valid rows, too few for that many neighbours",
                exact.truth.k
            )));
        }
        let truth = self.named(exact.truth, info)?;
        Ok(Asked { queries, truth, with_self })
    }

    /// The index says how many rows it was built from.
    fn check_base(&self, base: &Base, info: &IndexInfo) -> anyhow::Result<()> {
        let rows = info.n + info.skipped_rows;
        if (base.n(), base.dim()) != (rows, info.dim) {
            bail!(
                "--base holds {} rows of {} dims, {} was built from {rows} of {}",
                base.n(),
                base.dim(),
                self.index.display(),
                info.dim
            );
        }
        Ok(())
    }

    /// Rows of the base that stand in for queries. Rows no index holds are left out.
    fn held_out(&self, base: &Base, info: &IndexInfo) -> anyhow::Result<Vec<f32>> {
        let rows = sample_rows(base.n(), self.sample as u64, SAMPLE_SEED);
        let mut values = vec![0f32; rows.len() * info.dim];
        base.gather_f32(&rows, &mut values)?;
        let valid = |row: &&[f32]| {
            let norm: f64 = row.iter().map(|&v| f64::from(v) * f64::from(v)).sum();
            norm.is_finite() && norm > 0.0 && norm < f64::from(f32::MAX)
        };
        Ok(values.chunks_exact(info.dim).filter(valid).flatten().copied().collect())
    }

    /// Ground truth in the ids that the index returns.
    fn named(&self, mut truth: GroundTruth, info: &IndexInfo) -> anyhow::Result<Truth> {
        match (&self.ids, info.external_ids) {
            (Some(path), _) => truth::rename_rows(&mut truth, path)?,
            (None, true) => return Err(usage("the index returns external ids: give its --ids")),
            (None, false) => {}
        }
        Ok(Truth::new(truth.k, info.metric, truth.ids, truth.distances)?)
    }
}

/// The point for a search, or an error that says which there are.
pub(crate) fn point(
    dir: &Path,
    info: &IndexInfo,
    k: usize,
    recall: f64,
) -> anyhow::Result<TunedPoint> {
    let tuning = Tuning::read(dir, &info.uuid)?;
    if let Some(point) = tuning.point(k, recall) {
        return Ok(point.clone());
    }
    let known: Vec<String> =
        tuning.points().iter().map(|p| format!("{} at k {}", p.target_recall, p.k)).collect();
    let known = if known.is_empty() { "none".into() } else { known.join(", ") };
    Err(usage(format!(
        "--recall {recall} at k {k}: the index knows {known}; run `{} tune {} --k {k} --recall \
         {recall} --base BASE`, or give --nprobe",
        next::program(),
        next::quoted(dir)
    )))
}
