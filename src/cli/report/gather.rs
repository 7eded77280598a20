//! From a run of `bench` to the files that were asked for: options, rows, and a few traced
//! queries of each pipeline.

use std::path::PathBuf;

use rabitq_ssd::evaluate::BenchRow;
use rabitq_ssd::{Index, IndexInfo, SearchOptions};

use super::bench::{Measured, of_bench};
use super::{Lane, Timeline, write_html, write_svgs};
use crate::cli::vectors::keep_inputs;

/// Where a report goes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Input and output")]
pub(crate) struct ReportArgs {
    /// Also write a report: plots, timelines of a few queries, all rows, the machine; one HTML
    /// file that needs no network
    #[arg(long, value_name = "FILE.html", conflicts_with = "paper")]
    report: Option<PathBuf>,
    /// Also write the plots and timelines as SVG files into this directory
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

impl ReportArgs {
    /// Where the figures go as files, if they do.
    pub(crate) fn svg(&self) -> Option<&PathBuf> {
        self.svg.as_ref()
    }
}

/// What a report will show, index after index.
pub(crate) struct Gathered<'a> {
    args: &'a ReportArgs,
    queries: usize,
    indexes: Vec<(PathBuf, IndexInfo)>,
    rows: Vec<BenchRow>,
    timelines: Vec<Timeline>,
}

/// Queries that are traced on each index.
const TRACED: usize = 3;
/// Traced is the first setting of a pipeline whose recall reaches this, as in the paper.
const TRACED_RECALL: f64 = 0.9;

impl<'a> Gathered<'a> {
    /// Refuses, before anything is measured, a report in no folder or over one of the `inputs`.
    pub(crate) fn new(args: &'a ReportArgs, inputs: &[&PathBuf]) -> anyhow::Result<Self> {
        for out in args.report.iter().chain(&args.svg) {
            keep_inputs(out, inputs.iter().copied())?;
        }
        if let Some(report) = &args.report {
            let folder = report.parent().filter(|folder| !folder.as_os_str().is_empty());
            if folder.is_some_and(|folder| !folder.is_dir()) || report.is_dir() {
                anyhow::bail!(
                    "cannot write the report {}: it is a directory or in none",
                    report.display()
                );
            }
        }
        let (rows, timelines) = (Vec::new(), Vec::new());
        Ok(Self { args, queries: 0, indexes: Vec::new(), rows, timelines })
    }

    /// Add the rows measured on one index; traces some `queries`, of the index's dim, with the
    /// options of the rows and whatever else is in `options`.
    pub(crate) fn add(
        &mut self,
        dir: &std::path::Path,
        index: &Index,
        queries: &[f32],
        options: &SearchOptions,
        rows: &[BenchRow],
    ) -> anyhow::Result<()> {
        if self.args.report.is_none() && self.args.svg.is_none() {
            return Ok(());
        }
        let name = dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy();
        for (i, query) in queries.chunks_exact(index.dim()).take(TRACED).enumerate() {
            let mut lanes = Vec::new();
            for row in traced(rows) {
                let options = options_of(row, options)?;
                // The first search warms up, as those before it did for the rows.
                index.search(query, &options)?;
                let (result, trace) = index.trace(query, &options)?;
                let name = format!("{}, k {}, nprobe {}", row.pipeline, row.k, row.nprobe);
                lanes.push(Lane::of(name, &trace, result.stats.total_ns));
            }
            let title = format!("Timeline of query {i} on {name}");
            let note = note(rows);
            self.timelines.push(Timeline { title, note, lanes });
        }
        self.queries = queries.len() / index.dim();
        self.indexes.push((dir.to_path_buf(), index.info()));
        self.rows.extend_from_slice(rows);
        Ok(())
    }

    /// Write what was asked for.
    pub(crate) fn write(&self) -> anyhow::Result<()> {
        let args = self.args;
        if self.indexes.is_empty() || (args.report.is_none() && args.svg.is_none()) {
            return Ok(());
        }
        let report = of_bench(&Measured {
            indexes: &self.indexes,
            queries: self.queries,
            rows: &self.rows,
            timelines: &self.timelines,
        })?;
        if let Some(path) = &args.report {
            write_html(&report, path)?;
        }
        if let Some(dir) = &args.svg {
            write_svgs(&report, dir)?;
        }
        Ok(())
    }
}

/// One row of each pipeline: the first that reaches the recall, or the best.
fn traced(rows: &[BenchRow]) -> Vec<&BenchRow> {
    let mut chosen: Vec<&BenchRow> = Vec::new();
    for row in rows {
        let better = |old: &BenchRow| old.recall < TRACED_RECALL && row.recall > old.recall;
        match chosen.iter_mut().find(|old| old.pipeline == row.pipeline) {
            Some(old) if better(old) => *old = row,
            Some(_) => {}
            None => chosen.push(row),
        }
    }
    chosen
}

fn note(rows: &[BenchRow]) -> String {
    let chosen = if traced(rows).iter().all(|row| row.recall >= TRACED_RECALL) {
        format!("the first of each pipeline with recall {TRACED_RECALL}")
    } else {
        format!("for each pipeline the first with recall {TRACED_RECALL}, or its best")
    };
    format!("One thread. Settings: {chosen}.")
}

/// The options a row was measured with; what it does not name is from `options`.
fn options_of(row: &BenchRow, options: &SearchOptions) -> anyhow::Result<SearchOptions> {
    let unknown = |what: &str| anyhow::anyhow!("{what} in a row is no option of this version");
    Ok(SearchOptions {
        k: row.k,
        nprobe: row.nprobe,
        alpha: row.alpha,
        epsilon: row.epsilon,
        inflight: row.inflight,
        pipeline: row.pipeline.parse().map_err(|_| unknown(&row.pipeline))?,
        threshold: row.threshold.parse().map_err(|_| unknown(&row.threshold))?,
        ..options.clone()
    })
}
