//! `bench`: recall, speed and cost of one setting or many.

mod ceiling;
mod people;
pub(super) mod truth;

use std::path::{Path, PathBuf};

use rabitq_ssd::evaluate::{BenchRow, OperatingPoint, RecallCurve, Repeat, Setting, Trial};
use rabitq_ssd::{Index, IndexInfo, Pipeline, Progress};

use super::console::Console;
use super::failure::usage;
use super::options::{self, SearchArgs, at_least_1, share, thread_count};
use super::progress::Reporter;
use super::report::{Gathered, ReportArgs};
use super::rows::{self, Journal, NamedRow};
use super::sweep::Sweep;
use super::vectors::{Queries, keep_inputs};
use super::{csv, paper};
use truth::Asked;

pub(crate) use ceiling::read_ceiling;
pub(crate) use people::{grid, header};

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
    /// Lists to visit; one or several [default: 128; 32 with --preset paper]
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
    /// Reads in flight for each query, up to 16384; one or several
    /// [default: 16 up to 16 threads, 8 above]
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
    /// Name of the data in the rows [default: that of the query file]
    #[arg(long, value_name = "NAME", help_heading = "Input and output")]
    dataset: Option<String>,
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
        let (open, svg) = (args.search.open(), args.report.svg());
        return paper::run(&args.experiments, &args.threads, open, svg, console);
    }
    let (Some(index), Some(queries), Some(truth)) = (&args.index, &args.query_file, &args.truth)
    else {
        return Err(usage("INDEX, QUERIES and GT are needed"));
    };
    let sweep = args.sweep()?;
    let mut inputs = vec![index, queries, truth];
    inputs.extend(args.sweep.iter().chain(&args.ids).chain(&sweep.index));
    for out in args.csv.iter().chain(&args.jsonl) {
        keep_inputs(out, inputs.iter().copied())?;
    }
    let mut run = Run {
        args,
        console,
        sweep: &sweep,
        queries,
        truth,
        journal: Journal::open(args.jsonl.as_deref())?,
        rows: Vec::new(),
        report: Gathered::new(&args.report, &inputs)?,
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
        let asked = Asked { file: self.queries, n: queries.n };
        let ids = args.ids.as_deref();
        let truth = truth::read(console, &info, &asked, self.truth, ids, &self.sweep.k)?;
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
        let stem = self.queries.file_stem().unwrap_or_default().to_string_lossy();
        let dataset = self.args.dataset.clone().unwrap_or_else(|| stem.into_owned());
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
        let row = NamedRow::new(id, dataset, row.under_ceiling(ceiling));
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
        given.or(file.unwrap_or_default()).bounded()
    }

    fn settings(&self, sweep: &Sweep) -> anyhow::Result<Vec<Setting>> {
        let resolve = |setting: options::Setting| {
            let options = self.search.options(&setting)?;
            Ok(Setting { options, threads: setting.threads() })
        };
        sweep.settings().into_iter().map(resolve).collect()
    }
}
