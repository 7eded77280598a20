//! `bench --paper`: the experiments of the paper, as far as they concern this system, on any data.
//!
//! ```text
//! PaperArgs ─ Lab (lab.rs): the data, indexes built once and kept, operating points found once
//!         └─ EXPERIMENTS, one file each ─ Exhibits (exhibit.rs): a table, perhaps a figure
//!             ├─ stdout: the tables          DIR/results.jsonl: every measured row
//!             └─ DIR/report.html: all of it (page.rs)
//! ```
//! The paper's configuration is the subject, under `--threshold paper`; the main evaluation and the
//! cost of a build show the default configuration beside it.

mod lab;
mod stages;
mod load;
mod exhibit;
mod page;
mod table1;
mod timelines;
mod coarse;
mod operating_points;
mod conditions;
mod records;
mod building;
mod scaling;
mod knobs;
mod bounds;
mod determinism;
mod repeat;

use std::path::PathBuf;

use anyhow::bail;
use rabitq_ssd::dataset::GroundTruth;
use rabitq_ssd::evaluate::Truth;
use rabitq_ssd::{Metric, OpenOptions, available_threads};

use super::console::Console;
use super::failure::usage;
use super::options::at_least_1;
use super::report;
use super::vectors::{self, Queries};
use exhibit::Exhibit;
use lab::{Conditions, Data, Lab};
use stages::Stages;

/// What `bench --paper` takes instead of an index.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "The paper's experiments")]
pub(crate) struct PaperArgs {
    /// Build indexes of --base in --dir and run the paper's tables and figures on them, in the
    /// paper's configuration and beside it in the default one. Takes --threads
    #[arg(long, requires_all = ["base", "queries", "groundtruth", "dir"],
          conflicts_with_all = ["index", "k", "nprobe", "recall", "alpha", "inflight", "pipeline",
                                "sweep", "csv", "jsonl", "ids"])]
    pub(crate) paper: bool,
    /// Vector files of the base
    #[arg(long, value_name = "BASE", num_args = 1.., requires = "paper")]
    base: Vec<PathBuf>,
    /// Vector file of the queries
    #[arg(long, value_name = "FILE", requires = "paper")]
    queries: Option<PathBuf>,
    /// Ground truth of these queries, of k 100 or 1000 for the experiments at these k
    #[arg(long, value_name = "FILE", requires = "paper")]
    groundtruth: Option<PathBuf>,
    /// Folder of the indexes, of results.jsonl and of report.html; indexes it holds already are
    /// used again
    #[arg(long, value_name = "DIR", requires = "paper")]
    dir: Option<PathBuf>,
    /// l2, ip or cosine [default: l2]
    #[arg(long, value_name = "METRIC", requires = "paper")]
    metric: Option<Metric>,
    /// At most 200 queries and one round: the whole set in minutes
    #[arg(long, requires = "paper")]
    quick: bool,
    /// Only the first N queries
    #[arg(long, value_name = "N", requires = "paper", value_parser = at_least_1,
          allow_negative_numbers = true)]
    max_queries: Option<usize>,
    /// Only these: table1, coarse, operating-points, conditions, records, building, scaling,
    /// inflight, alpha, errors, quantile, determinism
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', requires = "paper")]
    only: Vec<String>,
}

type Experiment = fn(&mut Lab<'_>) -> anyhow::Result<Vec<Exhibit>>;

/// In the order of the paper.
const EXPERIMENTS: [(&str, Experiment); 12] = [
    ("table1", table1::run),
    ("quantile", bounds::quantile),
    ("coarse", coarse::run),
    ("operating-points", operating_points::run),
    ("conditions", conditions::run),
    ("scaling", scaling::run),
    ("records", records::run),
    ("building", building::run),
    ("errors", bounds::errors),
    ("determinism", determinism::run),
    ("inflight", knobs::inflight),
    ("alpha", knobs::alpha),
];

const QUICK_QUERIES: usize = 200;

pub(crate) fn run(
    args: &PaperArgs,
    threads: &[usize],
    open: OpenOptions,
    svg: Option<&PathBuf>,
    console: &Console,
) -> anyhow::Result<()> {
    let names: Vec<&str> = EXPERIMENTS.iter().map(|&(name, _)| name).collect();
    if let Some(unknown) = args.only.iter().find(|name| !names.contains(&name.as_str())) {
        let expected = names.join(", ");
        return Err(usage(format!("--only {unknown:?}: expected some of {expected}")));
    }
    let Some(dir) = &args.dir else {
        return Err(usage("--paper needs --dir"));
    };
    if let Some(svg) = svg {
        let inputs = args.base.iter().chain(&args.queries).chain(&args.groundtruth);
        vectors::keep_inputs(svg, inputs)?;
    }
    let metric = args.metric.unwrap_or_default();
    let data = args.data(metric)?;
    let threads = threads_in_order(threads);
    let conditions = Conditions { metric, quick: args.quick, threads, open };
    let asked = |name: &str| args.only.is_empty() || args.only.iter().any(|only| only == name);
    let chosen: Vec<(&'static str, Experiment)> =
        EXPERIMENTS.into_iter().filter(|&(name, _)| asked(name)).collect();
    let stages = Stages::new(chosen.len());
    let mut lab = Lab::new(console, data, dir, conditions, stages)?;
    let mut sections = Vec::new();
    for (name, experiment) in chosen {
        lab.stages.begin(name, console);
        lab.forget_ceiling();
        for exhibit in experiment(&mut lab)? {
            lab.reporter.pause();
            console.text(&exhibit)?;
            sections.extend(exhibit.sections());
        }
    }
    let page = dir.join("report.html");
    let report = page::report(&lab, sections);
    report::write_html(&report, &page)?;
    if let Some(dir) = svg {
        report::write_svgs(&report, dir)?;
    }
    for (name, value) in lab.conditions() {
        console.text(format_args!("{name:>12}  {value}"))?;
    }
    console.text(format_args!("{:>12}  {}", "report", page.display()))?;
    Ok(())
}

impl PaperArgs {
    fn data(&self, metric: Metric) -> anyhow::Result<Data> {
        let (Some(query_file), Some(truth_file)) = (&self.queries, &self.groundtruth) else {
            return Err(usage("--paper needs --queries and --groundtruth"));
        };
        let base = vectors::open(&self.base)?;
        let mut neighbours = GroundTruth::read(truth_file)?;
        let first = self.base.first().map_or(query_file.as_path(), PathBuf::as_path);
        let mut queries = Queries::read(query_file, base.dim(), first, None)?;
        if neighbours.queries != queries.n || queries.n == 0 {
            bail!(
                "{} is ground truth of {} queries, {} holds {}",
                truth_file.display(),
                neighbours.queries,
                query_file.display(),
                queries.n
            );
        }
        let quick = if self.quick { QUICK_QUERIES } else { usize::MAX };
        let most = self.max_queries.unwrap_or(usize::MAX).min(quick).min(queries.n);
        queries.values.truncate(most * base.dim());
        neighbours.ids.truncate(most * neighbours.k);
        if let Some(distances) = &mut neighbours.distances {
            distances.truncate(most * neighbours.k);
        }
        neighbours.queries = most;
        if let Some(row) = neighbours.ids.iter().find(|&&row| row >= base.n()) {
            bail!("{} names row {row}, the base has {}", truth_file.display(), base.n());
        }
        let truth =
            Truth::new(neighbours.k, metric, neighbours.ids.clone(), neighbours.distances.clone())
                .map_err(|error| anyhow::anyhow!("{}: {error}", truth_file.display()))?;
        let name = first.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Data { name, base, queries: queries.values, neighbours, truth })
    }
}

/// Those asked for, or 1, 2, 4 and so on up to all; ascending, each once.
fn threads_in_order(asked: &[usize]) -> Vec<usize> {
    let mut threads = asked.to_vec();
    if threads.is_empty() {
        let all = available_threads();
        threads =
            std::iter::successors(Some(1), |t| Some(2 * t)).take_while(|&t| t < all).collect();
        threads.push(all);
    }
    threads.sort_unstable();
    threads.dedup();
    threads
}
