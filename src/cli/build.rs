//! `build`: from vector files to an index directory.

use std::path::PathBuf;

use rabitq_ssd::{
    Bound, BuildOptions, BuildPlan, BuildReport, CoarseKind, Index, IndexInfo, Metric, OnInvalid,
    OpenOptions, Prefix, RecordKind,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::console::Console;
use super::failure::unless_closed;
use super::next;
use super::options::{Preset, at_least_1, thread_count, threads};
use super::progress::Reporter;
use super::size::{Size, grouped};
use super::table::Pairs;
use super::{ids, vectors};

/// Build an index from one vector file or several
///
/// Prints the plan with the resident size to the byte, then builds under a temporary name and
/// renames the finished index into place: it either opens or does not exist. The same vectors,
/// options and seed give the same bytes, whatever the number of threads.
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
    /// What options that are not given stand for: default, or paper (the paper's index: its own
    /// bound, split records of 9 bits, vectors / 1024 lists found by irq)
    #[arg(long, value_name = "default|paper", default_value_t = Preset::Default)]
    preset: Preset,
    /// l2 (squared Euclidean), ip (inner product) or cosine
    #[arg(long, value_name = "l2|ip|cosine", default_value_t = Metric::L2)]
    metric: Metric,
    /// Inverted lists [default: vectors / 1024, at least 1]
    #[arg(long, value_name = "N", value_parser = at_least_1, allow_negative_numbers = true)]
    nlist: Option<usize>,
    /// Bits per dimension of split records, 2 to 9: more bits, better re-ranking, larger records
    /// [default: 9]
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u32).range(2..=9),
          allow_negative_numbers = true)]
    bits: Option<u32>,
    /// What a record on disk holds: split (codes), f32 or u8 (the raw vector, exact re-ranking),
    /// sq8 or sq4 (each dim rounded to 8 or 4 bits, for comparison) [default: split]
    #[arg(long, value_name = "split|f32|u8|sq8|sq4")]
    record: Option<RecordKind>,
    /// Sign bits of each vector kept in RAM, a multiple of 64
    /// [default: all dims, rounded up to a multiple of 64]
    #[arg(long, value_name = "M", value_parser = at_least_1, conflicts_with = "memory",
          allow_negative_numbers = true)]
    prefix_dims: Option<usize>,
    /// Choose the most prefix dims whose resident size stays within this: 2GiB, 512MiB, 1.5GB, or
    /// bytes
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    memory: Option<Size>,
    /// How the lists near a query are found: auto, irq (codes), hnsw (graph) or flat (all, exactly)
    /// [default: auto]
    #[arg(long, value_name = "NAME")]
    coarse: Option<CoarseKind>,
    /// Error bound of the codes: per-vector, or paper (one width for all) [default: per-vector]
    #[arg(long, value_name = "per-vector|paper")]
    bound: Option<Bound>,
    /// Seed of the rotation, the sample and the clustering
    #[arg(long, value_name = "S", default_value_t = 42, allow_negative_numbers = true)]
    seed: u64,
    /// Threads [default: all]
    #[arg(long, value_name = "T", value_parser = thread_count, allow_negative_numbers = true)]
    threads: Option<usize>,
    /// External ids, one for each row in order: .npy of u64 or i64, or .u64bin (u32 count, u32 1,
    /// then u64s) [default: row numbers from 0]
    #[arg(long, value_name = "FILE")]
    ids: Option<PathBuf>,
    /// Rows with NaN, infinities or overflowing norms: error, or skip (leave them out; the ids of
    /// the others do not change)
    #[arg(long, value_name = "error|skip", default_value_t = OnInvalid::Error)]
    on_invalid: OnInvalid,
    /// Replace an existing index at --out, once the new one is complete
    #[arg(long)]
    overwrite: bool,
}

const EXAMPLES: &str = "\
Examples:
  rabitq-ssd build base.fbin --out my.index
  rabitq-ssd build 'part*.fbin' --out my.index --metric cosine --memory 2GiB
  rabitq-ssd build base.u8bin --out my.index --record u8 --nlist 4096";

pub(crate) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    let base = vectors::open_first(&args.base, args.rows)?;
    let options = args.options(base.n())?;
    let plan = BuildPlan::new(&base, &options)?;
    unless_closed(console.object(&Event { event: "plan", body: &plan }))?;
    let described = format!("plan\n{}\n", describe(&plan, &options, base.dtype()));
    unless_closed(console.text(described).map_err(Into::into))?;

    let reporter = Reporter::new(console);
    let report = Index::build(&base, &args.out, &options, &reporter)?;
    drop(reporter);
    warn(&report, &options, console);
    let info = Index::open(&args.out, &OpenOptions::default())?.info();
    console.object(&json!({
        "event": "built", "out": args.out.to_string_lossy(), "info": info, "total_seconds": report.total_seconds,
        "seconds": Value::from_iter(report.seconds.iter().map(|&(stage, s)| (stage, s))),
    }))?;
    console.text(summary(args, &report, &info))?;
    Ok(())
}

impl Args {
    /// The options given, and the preset's for a base of `rows` rows where none was.
    fn options(&self, rows: u64) -> anyhow::Result<BuildOptions> {
        let preset = self.preset.build(rows);
        let prefix = match (self.prefix_dims, self.memory) {
            (Some(dims), _) => Prefix::Dims(dims),
            (None, Some(memory)) => Prefix::Memory(memory.0),
            (None, None) => preset.prefix,
        };
        Ok(BuildOptions {
            metric: self.metric,
            nlist: self.nlist.or(preset.nlist),
            bits: self.bits.unwrap_or(preset.bits),
            record: self.record.unwrap_or(preset.record),
            prefix,
            coarse: self.coarse.unwrap_or(preset.coarse),
            bound: self.bound.unwrap_or(preset.bound),
            seed: self.seed,
            threads: threads(self.threads),
            ids: self.ids.as_deref().map(|path| ids::read_first(path, self.rows)).transpose()?,
            on_invalid: self.on_invalid,
            overwrite: self.overwrite,
        })
    }
}

fn describe(plan: &BuildPlan, options: &BuildOptions, dtype: impl std::fmt::Display) -> Pairs {
    let mut pairs = Pairs::default();
    pairs
        .add("vectors", format!("{} x {} {dtype}, {}", grouped(plan.n), plan.dim, options.metric))
        .add("lists", format!("{}, found by {}", grouped(plan.nlist as u64), plan.coarse))
        .add("in RAM", format!("{} of {} sign bits each", plan.prefix_dims, plan.padded_dim))
        .add("records", records(plan, options))
        .add("resident size", Size(plan.resident_bytes).exact())
        .add("on SSD", Size(plan.ssd_bytes).exact());
    pairs
}

fn records(plan: &BuildPlan, options: &BuildOptions) -> String {
    let kind = match options.record {
        RecordKind::Split => format!("split, {} bits per dim", options.bits),
        kind => kind.to_string(),
    };
    let packing = match plan.pages_per_record {
        0 | 1 => format!("{} a page", plan.records_per_page),
        pages => format!("{pages} pages each"),
    };
    format!("{kind}: {} bytes, {packing}", plan.record_bytes)
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
        report.seconds.iter().map(|(stage, seconds)| format!("{stage} {seconds:.1}")).collect();
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
