//! `bench`: recall, speed and cost of one setting or many.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rabitq_ssd::dataset::GroundTruth;
use rabitq_ssd::evaluate::{BenchRow, OperatingPoint, Repeat, Setting, Trial, Truth};
use rabitq_ssd::{Backend, Index, IndexInfo, Pipeline, Progress, SearchOptions};

use super::console::Console;
use super::failure::usage;
use super::options::{self, SearchArgs, at_least_1, share};
use super::progress::Reporter;
use super::search::machine;
use super::size::grouped;
use super::table::{Grid, Pairs};
use super::vectors::Queries;
use super::{csv, ids};

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
    index: PathBuf,
    /// Vector file of the queries
    queries: PathBuf,
    /// Ground truth of these queries, as `groundtruth` writes it (or .ivecs)
    #[arg(value_name = "GT")]
    truth: PathBuf,
    /// Neighbours wanted; one or several, comma separated, up to the k of the ground truth
    #[arg(long, value_name = "K,...", value_delimiter = ',', value_parser = at_least_1,
          default_values_t = [SearchOptions::default().k], allow_negative_numbers = true)]
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
    #[arg(long, value_name = "NAME,...", value_delimiter = ',',
          default_values_t = [Pipeline::Full])]
    pipeline: Vec<Pipeline>,
    /// Threads the queries are spread over; one or several [default: all]
    #[arg(long, value_name = "T,...", value_delimiter = ',', value_parser = at_least_1,
          allow_negative_numbers = true)]
    threads: Vec<usize>,
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
    /// Also write the rows to a CSV file, with the names of --json
    #[arg(long, value_name = "FILE", help_heading = "Input and output")]
    csv: Option<PathBuf>,
    /// The external ids the index was built with: ground truth holds row numbers
    #[arg(long, value_name = "FILE", help_heading = "Input and output")]
    ids: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  rabitq-ssd bench my.index queries.fbin gt.bin --nprobe 8,16,32,64 --threads 1,2
  rabitq-ssd bench my.index queries.fbin gt.bin --recall 0.9,0.95,0.99 --csv rows.csv
  rabitq-ssd bench my.index queries.fbin gt.bin --pipeline naive,full --k 10,100 --json";

pub(crate) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    let mut settings = args.settings()?;
    let index = Index::open(&args.index, &args.search.open())?;
    let info = index.info();
    if args.nprobe.is_empty() {
        settings.iter_mut().for_each(|s| s.options.nprobe = s.options.nprobe.min(info.nlist));
    }
    let queries = Queries::read(&args.queries, info.dim, &args.index, None)?;
    let truth = args.truth(&info, &queries, console)?;
    for warning in settings.iter().flat_map(|setting| index.warnings(&setting.options)) {
        console.warn(warning);
    }
    let trial = Trial::new(&index, &info, &queries.values, &truth);
    let reporter = Reporter::new(console);
    reporter.update("bench", 0, args.rows(&settings));
    let ceiling = if args.no_probe { None } else { read_ceiling(&index, &info)? };
    let mut rows = Vec::new();
    for setting in &settings {
        for mut row in args.measure(&trial, setting, console, &reporter)? {
            row.ceiling_reads_per_s = ceiling;
            console.object(&row)?;
            rows.push(row);
            reporter.update("bench", rows.len() as u64, args.rows(&settings));
        }
    }
    drop(reporter);
    if let Some(path) = &args.csv {
        csv::write(path, &rows)?;
    }
    let header = header(&info, queries.n, args.rounds, ceiling);
    console.text(format_args!("{header}\n\n{}", grid(&rows)))?;
    Ok(())
}

impl Args {
    /// Every combination of the lists; nprobe changes fastest.
    fn settings(&self) -> anyhow::Result<Vec<Setting>> {
        let mut all = vec![options::Setting {
            k: 0,
            nprobe: None,
            alpha: None,
            inflight: None,
            pipeline: Pipeline::Full,
            threads: None,
        }];
        all = cross(all, &self.k, |setting, &k| setting.k = k);
        all = cross(all, &self.threads, |setting, &threads| setting.threads = Some(threads));
        all = cross(all, &self.pipeline, |setting, &pipeline| setting.pipeline = pipeline);
        all = cross(all, &self.inflight, |setting, &reads| setting.inflight = Some(reads));
        all = cross(all, &self.alpha, |setting, &alpha| setting.alpha = Some(alpha));
        all = cross(all, &self.nprobe, |setting, &nprobe| setting.nprobe = Some(nprobe));
        all.iter()
            .map(|setting| {
                let options = self.search.options(setting)?;
                Ok(Setting { options, threads: setting.threads() })
            })
            .collect()
    }

    /// Rows there will be.
    fn rows(&self, settings: &[Setting]) -> u64 {
        (settings.len() * self.recall.len().max(1)) as u64
    }

    fn measure(
        &self,
        trial: &Trial<'_>,
        setting: &Setting,
        console: &Console,
        reporter: &Reporter,
    ) -> anyhow::Result<Vec<BenchRow>> {
        let repeat = Repeat { rounds: self.rounds, warmup: self.warmup };
        if self.recall.is_empty() {
            return Ok(vec![trial.measure(setting, repeat)?]);
        }
        let mut rows = Vec::new();
        for &target in &self.recall {
            let point = trial.operating_point(target, setting, repeat)?;
            if let OperatingPoint::OutOfReach(row) = &point {
                reporter.pause();
                console.warn(format_args!(
                    "recall {target} is out of reach: all {} lists give {:.4}; try a larger \
                     --epsilon, --alpha 1 or more bits",
                    row.nprobe, row.recall
                ));
            }
            rows.push(point.into_row());
        }
        Ok(rows)
    }

    fn truth(
        &self,
        info: &IndexInfo,
        queries: &Queries,
        console: &Console,
    ) -> anyhow::Result<Truth> {
        let file = self.truth.display();
        let mut truth = GroundTruth::read(&self.truth)?;
        if truth.queries != queries.n {
            anyhow::bail!(
                "{file} is ground truth of {} queries, {} holds {}",
                truth.queries,
                self.queries.display(),
                queries.n
            );
        }
        if queries.n == 0 {
            anyhow::bail!("{} holds no queries", self.queries.display());
        }
        if let Some(k) = self.k.iter().find(|&&k| k > truth.k) {
            return Err(usage(format!(
                "--k {k} is beyond the ground truth, which holds {} neighbours of each query: \
                 run `groundtruth --k {k}`",
                truth.k
            )));
        }
        match &self.ids {
            Some(path) => rename_rows(&mut truth, path)?,
            None if info.external_ids => console.warn(format_args!(
                "the index returns external ids: without --ids, {file} must hold those as well"
            )),
            None => check_rows(&truth, info, &self.truth)?,
        }
        Truth::new(truth.k, info.metric, truth.ids, truth.distances)
            .map_err(|error| anyhow::anyhow!("{file}: {error}"))
    }
}

/// Every setting with every value; an empty list leaves the default.
fn cross<T>(
    settings: Vec<options::Setting>,
    values: &[T],
    set: impl Fn(&mut options::Setting, &T),
) -> Vec<options::Setting> {
    if values.is_empty() {
        return settings;
    }
    let mut all = Vec::with_capacity(settings.len() * values.len());
    for setting in settings {
        for value in values {
            let mut setting = setting;
            set(&mut setting, value);
            all.push(setting);
        }
    }
    all
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
