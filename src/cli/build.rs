//! `build`: from vector files to an index directory.

use std::path::{Path, PathBuf};

use rabitq_ssd::dataset::Base;
use rabitq_ssd::{
    BuildOptions, BuildPlan, BuildReport, Estimate, Index, IndexInfo, Metric, OpenOptions,
    unfinished_build,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::choices::{Choices, describe};
use super::console::Console;
use super::estimate::add_needs;
use super::failure::unless_closed;
use super::next;
use super::options::at_least_1;
use super::progress::Reporter;
use super::size::{Size, grouped};
use super::table::Pairs;
use super::{ids, vectors};

/// Build an index from one vector file or several
///
/// Prints the plan with the resident size to the byte, then builds under a temporary name and
/// renames the finished index into place: it either opens or does not exist. The same vectors,
/// options and seed give the same bytes, whatever the number of threads and the memory. Ctrl-C
/// stops it; --resume goes on from the last checkpoint, after Ctrl-C as after a power cut.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Vector files, together one base in the order given: .fbin .u8bin .i8bin .f16bin .fvecs
    /// .bvecs .npy; a quoted pattern as 'part*.fbin' stands for its files, part2 before part10
    #[arg(required = true, value_name = "BASE")]
    base: Vec<PathBuf>,
    /// Use only the first N rows of the base, all its files together, and of --ids
    #[arg(long, value_name = "N", value_parser = at_least_1, allow_negative_numbers = true)]
    rows: Option<usize>,
    /// Directory of the index
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// External ids, one for each row in order: .npy of u64 or i64, or .u64bin (u32 count, u32 1,
    /// then u64s) [default: row numbers from 0]
    #[arg(long, value_name = "FILE")]
    ids: Option<PathBuf>,
    /// Replace an existing index at --out, once the new one is complete
    #[arg(long)]
    overwrite: bool,
    /// Go on from where a build of the same vectors and options to the same --out was stopped
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    choices: Choices,
}

const EXAMPLES: &str = "\
Examples:
  rabitq-ssd build base.fbin --out my.index
  rabitq-ssd build 'part*.fbin' --out my.index --metric cosine --memory 2GiB
  rabitq-ssd build base.u8bin --out my.index --record u8 --nlist 4096";

pub(crate) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    let base = vectors::open_first(&args.base, args.rows)?;
    let options = args.options(&base)?;
    // Before the base's shape is: an empty file is named.
    BuildPlan::new(&base, &options)?;
    let estimate = Estimate::of((&base).into(), &options)?;
    unless_closed(console.object(&Event { event: "plan", body: &estimate }))?;
    let mut plan = describe(&estimate.plan, base.dtype());
    let parent = args.out.ancestors().skip(1).find(|dir| dir.is_dir());
    let parent = parent.unwrap_or(Path::new("."));
    add_needs(&mut plan, &estimate, Estimate::available(parent), parent);
    unless_closed(console.text(format!("plan\n{plan}\n")).map_err(Into::into))?;
    if unfinished_build(&args.out) && !args.resume {
        console.note(format_args!(
            "an unfinished build of {} is there and starts over; --resume would go on from it",
            args.out.display()
        ));
    }

    let reporter = Reporter::stoppable(console)?;
    let report = Index::build(&base, &args.out, &options, &reporter)?;
    drop(reporter);
    warn(&report, &options, console);
    // Not opened: what searches hold in RAM may be more than this build was allowed.
    let info = IndexInfo::read(&args.out, &OpenOptions::default())?;
    if info.centroids != estimate.plan.centroids {
        console.warn(format_args!(
            "the lists are too tight for centroids of a byte a value: they are floats, so {} bytes in \
             RAM instead of {} and {} prefix dims; --centroids i8 keeps bytes, at a loss of recall",
            grouped(info.resident_bytes),
            grouped(estimate.plan.resident_bytes),
            info.prefix_dims
        ));
    }
    console.object(&json!({
        "event": "built", "out": args.out.to_string_lossy(), "info": info,
        "total_seconds": report.total_seconds, "resumed": report.resumed,
        "seconds": Value::from_iter(report.stages.iter().map(|s| (s.stage, s.seconds))),
        "peak_memory_bytes": report.stages.iter().filter_map(|s| s.peak_memory_bytes).max(),
    }))?;
    console.text(summary(args, &report, &info))?;
    Ok(())
}

impl Args {
    fn options(&self, base: &Base) -> anyhow::Result<BuildOptions> {
        let ids = self.ids.as_deref().map(|path| ids::read_first(path, self.rows)).transpose()?;
        let (overwrite, resume) = (self.overwrite, self.resume);
        Ok(BuildOptions { ids, overwrite, resume, ..self.choices.options(base.n()) })
    }
}

fn warn(report: &BuildReport, options: &BuildOptions, console: &Console) {
    if report.zero_rows > 0 && options.metric == Metric::Cosine {
        let rows = grouped(report.zero_rows);
        console.warn(format_args!("{rows} rows are zero: their cosine is 0 and they rank last"));
    }
    if report.skipped_rows > 0 {
        let rows = grouped(report.skipped_rows);
        console.warn(format_args!("{rows} invalid rows were left out"));
    }
}

fn summary(args: &Args, report: &BuildReport, info: &IndexInfo) -> String {
    let stages: Vec<String> =
        report.stages.iter().map(|s| format!("{} {:.1}", s.stage, s.seconds)).collect();
    let lists = &info.list_sizes;
    let mut pairs = Pairs::default();
    pairs
        .add("index", args.out.display())
        .add("vectors", grouped(info.n))
        .add("resident size", Size(info.resident_bytes).exact())
        .add("on SSD", Size(info.ssd_bytes).exact())
        .add("list sizes", format!("mean {:.0}, p99 {}, max {}", lists.mean, lists.p99, lists.max))
        .add("seconds", format!("{:.1} ({})", report.total_seconds, stages.join(", ")));
    let (program, out) = (next::program(), next::quoted(&args.out));
    format!("built\n{pairs}\n\nNext: {program} search {out} QUERIES --k 10")
}

/// A line of JSON that says what it is about.
#[derive(Serialize)]
struct Event<'a, T> {
    event: &'static str,
    #[serde(flatten)]
    body: &'a T,
}
