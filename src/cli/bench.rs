//! `bench`: recall, speed and cost of one setting or many.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rabitq_ssd::dataset::GroundTruth;
use rabitq_ssd::evaluate::{BenchRow, OperatingPoint, RecallCurve, Repeat, Setting, Trial, Truth};
use rabitq_ssd::{Backend, Index, IndexInfo, Pipeline, Progress};

use super::console::Console;
use super::failure::usage;
use super::options::{self, SearchArgs, at_least_1, share, thread_count};
use super::progress::Reporter;
use super::report::{Gathered, ReportArgs};
use super::rows::{self, Journal, NamedRow};
use super::search::machine;
use super::size::grouped;
use super::sweep::Sweep;
use super::table::{Grid, Pairs};
use super::vectors::Queries;
use super::{csv, ids, paper};

/// Measure recall, throughput, latency and reads against ground truth
///
/// Every combination of the comma lists is one row. Recall is tie-aware: a result counts if its
/// ground-truth score is as good as that at rank k. QPS is queries over wall time, the median of
/// the rounds; latencies are per query, percentiles by nearest rank over all rounds; everything
/// else is a mean per query.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of the index
    #[arg(required_unless_present = "paper")]
    index: Option<PathBuf>,
    /// Vector file of the queries
    #[arg(value_name = "QUERIES", required_unless_present = "paper")]
    query_file: Option<PathBuf>,
    /// Ground truth of these queries, as `groundtruth` writes it (or .ivecs)
    #[arg(value_name = "GT", required_unless_present = "paper")]
    truth: Option<PathBuf>,
    /// Neighbours wanted; one or several, comma separated, up to the k of the ground truth
    /// [default: 10]
    #[arg(long, value_name = "K,...", value_delimiter = ',', value_parser = at_least_1,
          allow_negative_numbers = true)]
    k: Vec<usize>,
    /// Lists to visit; one or several [default: 32]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = at_least_1,
          allow_negative_numbers = true)]
    nprobe: Vec<usize>,
    /// Instead of --nprobe: find and report the least nprobe whose recall reaches each target.
    /// Recall is taken to rise with nprobe: doubling brackets the target, bisection closes in
    #[arg(long, value_name = "R,...", value_delimiter = ',', value_parser = share::<f64>,
          conflicts_with = "nprobe", allow_negative_numbers = true)]
    recall: Vec<f64>,
    /// Share of the results a page must beat after the scan, above 0 to 1; one or several
    /// [default: 0.4, with --deterministic 1]
    #[arg(long, value_name = "A,...", value_delimiter = ',', value_parser = share::<f32>,
          allow_negative_numbers = true)]
    alpha: Vec<f32>,
    /// Reads in flight for each query; one or several [default: 16 up to 16 threads, 8 above]
    #[arg(long, value_name = "Q,...", value_delimiter = ',', value_parser = at_least_1,
          allow_negative_numbers = true)]
    inflight: Vec<usize>,
    /// How reads are issued: naive, coalesced, overlapped, scheduled, full, fifo; one or several
    /// [default: full]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pipeline: Vec<Pipeline>,
    /// Threads the queries are spread over; one or several [default: all]
    #[arg(long, value_name = "T,...", value_delimiter = ',', value_parser = thread_count,
          allow_negative_numbers = true)]
    threads: Vec<usize>,
    /// Take lists from a TOML file where none is given here: k, nprobe or recall, threads, alpha,
    /// inflight, pipeline, threshold, and further indexes. Example: k = [10, 100]
    #[arg(long, value_name = "FILE")]
    sweep: Option<PathBuf>,
    #[command(flatten)]
    search: SearchArgs,
    /// Times all queries are searched
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = at_least_1,
          help_heading = "Measurement", allow_negative_numbers = true)]
    rounds: usize,
    /// Search all queries once more before the rounds that count
    #[arg(long, help_heading = "Measurement")]
    warmup: bool,
    /// Do not measure the random-read ceiling of the disk first
    #[arg(long, help_heading = "Measurement")]
    no_probe: bool,
    /// Append every row to this file as a line of JSON as soon as it is measured; rows it already
    /// holds are not measured again
    #[arg(long, value_name = "FILE", help_heading = "Input and output")]
    jsonl: Option<PathBuf>,
    /// Also write the rows to a CSV file, with the names of --json
    #[arg(long, value_name = "FILE", help_heading = "Input and output")]
    csv: Option<PathBuf>,
    /// The external ids the index was built with: ground truth holds row numbers
    #[arg(long, value_name = "FILE", help_heading = "Input and output")]
    ids: Option<PathBuf>,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    experiments: paper::PaperArgs,
}

const EXAMPLES: &str = "\
Examples:
  rabitq-ssd bench my.index queries.fbin gt.bin --nprobe 8,16,32,64 --threads 1,2
  rabitq-ssd bench my.index queries.fbin gt.bin --recall 0.9,0.95,0.99 --csv rows.csv
  rabitq-ssd bench my.index queries.fbin gt.bin --pipeline naive,full --k 10,100 --json
  rabitq-ssd bench my.index queries.fbin gt.bin --sweep sweep.toml --jsonl rows.jsonl
  rabitq-ssd bench my.index queries.fbin gt.bin --recall 0.8,0.9,0.95,0.99 --report report.html
  rabitq-ssd bench --paper --base base.fbin --queries queries.fbin --groundtruth gt.bin --dir out";

pub(crate) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    if args.experiments.paper {
        return paper::run(&args.experiments, &args.threads, args.search.open(), console);
    }
    let (Some(index), Some(queries), Some(truth)) = (&args.index, &args.query_file, &args.truth)
    else {
        return Err(usage("INDEX, QUERIES and GT are needed"));
    };
    let sweep = args.sweep()?;
    let mut run = Run {
        args,
        console,
        sweep: &sweep,
        queries,
        truth,
        journal: Journal::open(args.jsonl.as_deref())?,
        rows: Vec::new(),
        report: Gathered::new(&args.report, [index, queries, truth])?,
    };
    for index in std::iter::once(index).chain(&sweep.index) {
        run.index(index)?;
    }
    if let Some(path) = &args.csv {
        csv::write(path, &run.rows)?;
    }
    run.report.write()
}

/// One call of `bench`, index after index.
struct Run<'a> {
    args: &'a Args,
    console: &'a Console,
    sweep: &'a Sweep,
    queries: &'a Path,
    truth: &'a Path,
    journal: Journal,
    rows: Vec<NamedRow>,
    report: Gathered<'a>,
}

/// What all rows of an index share.
struct Place<'a> {
    trial: Trial<'a>,
    info: &'a IndexInfo,
    ceiling: Option<f64>,
    reporter: &'a Reporter,
}

impl Run<'_> {
    /// Measure every setting on one index.
    fn index(&mut self, path: &Path) -> anyhow::Result<()> {
        let (args, console) = (self.args, self.console);
        let mut settings = args.settings(self.sweep)?;
        let index = Index::open(path, &args.search.open())?;
        let info = index.info();
        if self.sweep.nprobe.is_empty() {
            let most = info.nlist.max(1);
            settings.iter_mut().for_each(|s| s.options.nprobe = s.options.nprobe.min(most));
        }
        let queries = Queries::read(self.queries, info.dim, path, None)?;
        let truth = args.truth(self, &info, &queries)?;
        for warning in settings.iter().flat_map(|setting| index.warnings(&setting.options)) {
            console.warn(warning);
        }
        let trial = Trial::new(&index, &info, &queries.values, &truth);
        let reporter = Reporter::new(console);
        let total = (settings.len() * self.sweep.recall.len().max(1)) as u64;
        reporter.update("bench", 0, total);
        let ceiling = if args.no_probe { None } else { read_ceiling(&index, &info)? };
        let place = Place { trial, info: &info, ceiling, reporter: &reporter };
        let first = self.rows.len();
        for setting in &settings {
            let mut curve = RecallCurve::default();
            for target in self.targets() {
                let row = self.row(&place, setting, target, &mut curve)?;
                console.object(&row)?;
                self.rows.push(row);
                reporter.update("bench", (self.rows.len() - first) as u64, total);
            }
        }
        drop(reporter);
        let header = header(&info, queries.n, args.rounds, ceiling);
        let rows: Vec<BenchRow> =
            self.rows[first..].iter().map(|named| named.row.clone()).collect();
        console.text(format_args!("{header}\n\n{}", grid(&rows)))?;
        match settings.first() {
            Some(first) => self.report.add(path, &index, &queries.values, &first.options, &rows),
            None => Ok(()),
        }
    }

    /// The recalls nprobe is searched for, or none.
    fn targets(&self) -> Vec<Option<f64>> {
        match self.sweep.recall.as_slice() {
            [] => vec![None],
            targets => targets.iter().copied().map(Some).collect(),
        }
    }

    /// One row, measured now or in an earlier run.
    fn row(
        &mut self,
        place: &Place<'_>,
        setting: &Setting,
        target: Option<f64>,
        curve: &mut RecallCurve,
    ) -> anyhow::Result<NamedRow> {
        let Place { trial, info, ceiling, reporter } = *place;
        let dataset = self.queries.file_stem().unwrap_or_default().to_string_lossy();
        let id = rows::run_id(info, &dataset, setting, target, self.args.rounds);
        if let Some(row) = self.journal.find(&id) {
            return Ok(row.clone());
        }
        let repeat = Repeat { rounds: self.args.rounds, warmup: self.args.warmup };
        let row = match target {
            None => trial.measure(setting, repeat)?,
            Some(target) => {
                let point = trial.operating_point(target, setting, curve, repeat)?;
                if let OperatingPoint::OutOfReach(row) = &point {
                    reporter.pause();
                    self.console.warn(format_args!(
                        "recall {target} is out of reach: all {} lists give {:.4}; try a larger \
                         --epsilon, --alpha 1 or more bits",
                        row.nprobe, row.recall
                    ));
                }
                point.into_row()
            }
        };
        let row = NamedRow::new(id, dataset.into_owned(), row.under_ceiling(ceiling));
        self.journal.add(&row)?;
        Ok(row)
    }
}

impl Args {
    /// The lists of the command line, and those of the file where there are none.
    fn sweep(&self) -> anyhow::Result<Sweep> {
        let given = Sweep {
            index: Vec::new(),
            k: self.k.clone(),
            nprobe: self.nprobe.clone(),
            recall: self.recall.clone(),
            threads: self.threads.clone(),
            alpha: self.alpha.clone(),
            inflight: self.inflight.clone(),
            pipeline: self.pipeline.clone(),
            threshold: Vec::new(),
        };
        let file = self.sweep.as_deref().map(Sweep::read).transpose()?;
        Ok(given.or(file.unwrap_or_default()))
    }

    fn settings(&self, sweep: &Sweep) -> anyhow::Result<Vec<Setting>> {
        let resolve = |setting: options::Setting| {
            let options = self.search.options(&setting)?;
            Ok(Setting { options, threads: setting.threads() })
        };
        sweep.settings().into_iter().map(resolve).collect()
    }

    fn truth(&self, run: &Run<'_>, info: &IndexInfo, queries: &Queries) -> anyhow::Result<Truth> {
        let file = run.truth.display();
        let mut truth = GroundTruth::read(run.truth)?;
        if truth.queries != queries.n {
            anyhow::bail!(
                "{file} is ground truth of {} queries, {} holds {}",
                truth.queries,
                run.queries.display(),
                queries.n
            );
        }
        if queries.n == 0 {
            anyhow::bail!("{} holds no queries", run.queries.display());
        }
        if let Some(k) = run.sweep.k.iter().find(|&&k| k > truth.k) {
            return Err(usage(format!(
                "--k {k} is beyond the ground truth, which holds {} neighbours of each query: \
                 run `groundtruth --k {k}`",
                truth.k
            )));
        }
        match &self.ids {
            Some(path) => rename_rows(&mut truth, path)?,
            None if info.external_ids => run.console.warn(format_args!(
                "the index returns external ids: without --ids, {file} must hold those as well"
            )),
            None => check_rows(&truth, info, run.truth)?,
        }
        Truth::new(truth.k, info.metric, truth.ids, truth.distances)
            .map_err(|error| anyhow::anyhow!("{file}: {error}"))
    }
}

/// Row numbers that the base of the index does not have come from another base.
fn check_rows(truth: &GroundTruth, info: &IndexInfo, path: &Path) -> anyhow::Result<()> {
    let rows = info.n + info.skipped_rows;
    match truth.ids.iter().find(|&&row| row >= rows) {
        None => Ok(()),
        Some(row) => anyhow::bail!(
            "{} names row {row}, but the index was built from {rows} rows: it is no ground truth \
             of this base",
            path.display()
        ),
    }
}

/// From row numbers to the external ids that stand for them.
fn rename_rows(truth: &mut GroundTruth, ids_path: &Path) -> anyhow::Result<()> {
    let names = ids::read(ids_path)?;
    for row in &mut truth.ids {
        *row = usize::try_from(*row).ok().and_then(|row| names.get(row).copied()).ok_or_else(
            || {
                anyhow::anyhow!(
                    "{} has no id for row {row} of the ground truth",
                    ids_path.display()
                )
            },
        )?;
    }
    Ok(())
}

const CEILING_DEPTH: u32 = 64;
const CEILING_TIME: Duration = Duration::from_millis(500);

/// What this disk gives one thread at most. Nothing to measure where reads do not reach a disk.
pub(crate) fn read_ceiling(index: &Index, info: &IndexInfo) -> anyhow::Result<Option<f64>> {
    if info.io_backend == Backend::Memory.to_string() || index.page_file().pages() == 0 {
        return Ok(None);
    }
    let seed = 1;
    let result = pageio::probe(index.page_file(), CEILING_DEPTH, CEILING_TIME, seed)?;
    Ok(Some(result.reads_per_second))
}

/// What was measured, on what.
pub(crate) fn header(
    info: &IndexInfo,
    queries: usize,
    rounds: usize,
    ceiling: Option<f64>,
) -> Pairs {
    let mut pairs = Pairs::default();
    let vectors = format!("{} x {}, {}", grouped(info.n), info.dim, info.metric);
    pairs
        .add("index", format!("{vectors}, {} records, {} lists", info.record, info.nlist))
        .add("measured", format!("{} queries, {rounds} rounds", grouped(queries as u64)));
    machine(&mut pairs, info);
    if let Some(reads) = ceiling {
        let reads = grouped(reads as u64);
        pairs.add("ceiling", format!("{reads} random 4 KiB reads/s, {CEILING_DEPTH} in flight"));
    }
    pairs
}

/// The main columns for people; columns that never change only when they were asked for.
pub(crate) fn grid(rows: &[BenchRow]) -> Grid {
    let pipelines = rows.iter().any(|row| row.pipeline != Pipeline::Full.to_string());
    let mut names = vec!["k", "threads", "nprobe", "alpha"];
    names.extend(pipelines.then_some("pipeline"));
    names.extend([
        "recall",
        "QPS",
        "mean ms",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "pages/query",
        "lists",
    ]);
    let mut grid = Grid::new(&names);
    for row in rows {
        let mut cells = vec![
            row.k.to_string(),
            row.threads.to_string(),
            row.nprobe.to_string(),
            row.alpha.to_string(),
        ];
        cells.extend(pipelines.then(|| row.pipeline.clone()));
        cells.extend([format!("{:.4}", row.recall), format!("{:.0}", row.qps)]);
        cells
            .extend([row.mean_ms, row.p50_ms, row.p95_ms, row.p99_ms].map(|ms| format!("{ms:.2}")));
        cells.extend([row.pages_per_query, row.lists_probed].map(|mean| format!("{mean:.1}")));
        grid.row(cells);
    }
    grid
}
