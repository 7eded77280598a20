//! `estimate`: what an index and its build will take, before anything is built.

use std::path::{Path, PathBuf};

use anyhow::Context;
use rabitq_ssd::dataset::Dtype;
use rabitq_ssd::{BaseShape, BuildSeconds, Estimate};
use serde::Serialize;

use super::choices::{Choices, describe};
use super::console::Console;
use super::failure::usage;
use super::options::at_least_1;
use super::size::Size;
use super::table::Pairs;
use super::vectors;

/// Say what an index would take in RAM and on disk, and what building it would take
///
/// Of vector files, or of vectors that are yet to come (--n and --dim). Sizes are computed, and a
/// build keeps to them. The time is measured: a second of this machine's work on random vectors,
/// and 64 MiB written to --dir and removed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Vector files, as for build; only their headers are read
    #[arg(value_name = "BASE", required_unless_present = "n", conflicts_with_all = ["n", "dim"])]
    base: Vec<PathBuf>,
    /// Use only the first N rows of the base
    #[arg(long, value_name = "N", value_parser = at_least_1, allow_negative_numbers = true,
          requires = "base")]
    rows: Option<usize>,
    /// Number of vectors, instead of files
    #[arg(long, value_name = "N", value_parser = at_least_1, allow_negative_numbers = true,
          requires = "dim")]
    n: Option<usize>,
    /// Values in a vector
    #[arg(long, value_name = "D", value_parser = at_least_1, allow_negative_numbers = true,
          requires = "n")]
    dim: Option<usize>,
    /// Type of the values: f32, f16, u8 or i8
    #[arg(long, value_name = "TYPE", default_value = "f32", requires = "n")]
    dtype: String,
    /// Directory on the disk that the index will be on
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    choices: Choices,
}

const EXAMPLES: &str = "\
Examples:
  rabitq-ssd estimate base.fbin --memory 2GiB
  rabitq-ssd estimate --n 1000000000 --dim 128 --dtype u8 --record u8 --build-memory 16GiB";

/// What is printed.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    estimate: &'a Estimate,
    seconds: BuildSeconds,
    total_seconds: f64,
    available_disk_bytes: Option<u64>,
}

pub(crate) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    let base = args.shape()?;
    let options = args.choices.options(base.n);
    let estimate = Estimate::of(base, &options)?;
    let seconds = estimate
        .seconds(&args.dir, &options)
        .with_context(|| format!("--dir {}", args.dir.display()))?;
    let available = Estimate::available(&args.dir);
    console.object(&Row {
        estimate: &estimate,
        seconds,
        total_seconds: seconds.total(),
        available_disk_bytes: available,
    })?;
    let mut pairs = describe(&estimate.plan, base.dtype);
    add_needs(&mut pairs, &estimate, available, &args.dir);
    pairs.add("build time", time(&seconds));
    console.text(pairs)?;
    Ok(())
}

impl Args {
    fn shape(&self) -> anyhow::Result<BaseShape> {
        let (Some(n), Some(dim)) = (self.n, self.dim) else {
            return Ok((&vectors::open_first(&self.base, self.rows)?).into());
        };
        let dtype = match self.dtype.as_str() {
            "f32" => Dtype::F32,
            "f16" => Dtype::F16,
            "u8" => Dtype::U8,
            "i8" => Dtype::I8,
            other => return Err(usage(format!("--dtype {other}: expected f32, f16, u8 or i8"))),
        };
        Ok(BaseShape { n: n as u64, dim, dtype })
    }
}

/// What the build will take: memory and disk.
pub(crate) fn add_needs(
    pairs: &mut Pairs,
    estimate: &Estimate,
    available: Option<u64>,
    dir: &Path,
) {
    let size = |bytes: u64| Size(bytes).to_string();
    pairs.add(
        "build memory",
        format!(
            "{} at most, of {} allowed; {} would do",
            size(estimate.peak_memory_bytes),
            size(estimate.build_memory_bytes),
            size(estimate.least_memory_bytes),
        ),
    );
    let free = available.map(|free| format!("; {} free on {}", size(free), dir.display()));
    pairs.add(
        "disk",
        format!(
            "{} for the index, {} more while it is built{}",
            size(estimate.plan.disk_bytes),
            size(estimate.scratch_bytes),
            free.unwrap_or_default(),
        ),
    );
}

fn time(seconds: &BuildSeconds) -> String {
    format!(
        "about {} (train {}, assign {}, encode {}, write {})",
        span(seconds.total()),
        span(seconds.train),
        span(seconds.assign),
        span(seconds.encode),
        span(seconds.write),
    )
}

/// `42 s`, `12 min`, `3.5 h`.
fn span(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
