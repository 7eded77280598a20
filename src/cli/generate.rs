//! `generate`: synthetic vectors shaped like embeddings.

use std::ops::ControlFlow;
use std::path::PathBuf;

use rabitq_ssd::dataset::{Dtype, synth};
use serde_json::json;

use super::console::Console;
use super::failure::usage;
use super::next;
use super::options::{at_least_1, thread_count, threads};
use super::progress::Reporter;
use super::size::{Size, grouped};
use super::vectors::same_file;
use rabitq_ssd::Progress;

/// Write synthetic vectors shaped like embeddings: clustered, with a power-law spectrum
///
/// The same options and seed give the same file, whatever the number of threads.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Number of vectors
    #[arg(long, value_name = "N", value_parser = at_least_1, allow_negative_numbers = true)]
    n: usize,
    /// Values in each vector
    #[arg(long, value_name = "D", value_parser = at_least_1, allow_negative_numbers = true)]
    dim: usize,
    /// File to write, replaced if it exists; its extension gives the format: .fbin .f16bin .u8bin
    /// .fvecs .bvecs .npy
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Seed of everything random
    #[arg(long, value_name = "S", default_value_t = 42, allow_negative_numbers = true)]
    seed: u64,
    /// Type of the values: f32 or u8 [default: what the extension of --out says, else f32]
    #[arg(long, value_name = "f32|u8", value_parser = dtype)]
    dtype: Option<Dtype>,
    /// power (like embeddings) or flat (every direction alike: the hardest data there is)
    #[arg(long, value_name = "power|flat", default_value = "power", value_parser = ["power", "flat"])]
    spectrum: String,
    /// unit (all 1) or spread (over 0.1 to 10)
    #[arg(long, value_name = "unit|spread", default_value = "unit", value_parser = ["unit", "spread"])]
    norms: String,
    /// Number of queries of the same distribution, none of them in --out
    #[arg(long, value_name = "N", value_parser = at_least_1, default_value_t = 1000,
          requires = "queries_out", allow_negative_numbers = true)]
    queries: usize,
    /// Also write queries, to this file
    #[arg(long, value_name = "FILE")]
    queries_out: Option<PathBuf>,
    /// Threads [default: all]
    #[arg(long, value_name = "T", value_parser = thread_count, allow_negative_numbers = true)]
    threads: Option<usize>,
}

const EXAMPLES: &str = "\
Examples:
  rabitq-ssd generate --n 1000000 --dim 768 --out base.fbin --queries-out queries.fbin
  rabitq-ssd generate --n 1000000 --dim 128 --norms spread --dtype u8 --out base.u8bin";

pub(crate) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    if let Some(queries_out) = &args.queries_out
        && same_file(queries_out, &args.out)
    {
        return Err(usage("--out and --queries-out name the same file"));
    }
    let spec = args.spec();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads(args.threads)).build()?;
    let reporter = Reporter::stoppable(console)?;
    let mut told = |done, total| {
        reporter.update("generate", done, total);
        if reporter.cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let (queries, queries_out) = (args.queries as u64, args.queries_out.as_deref());
    let outcome = synth::generate(&spec, queries, &args.out, queries_out, &pool, &mut told);
    reporter.outcome(outcome)?;
    drop(reporter);
    let bytes = fs_err::metadata(&args.out)?.len();
    let queries = args.queries_out.as_ref().map(|_| args.queries);
    console.object(&json!({
        "out": args.out.to_string_lossy(), "n": args.n, "dim": args.dim,
        "dtype": spec.dtype.to_string(), "seed": args.seed, "bytes": bytes,
        "queries_out": args.queries_out.as_ref().map(|out| out.to_string_lossy()),
        "queries": queries,
    }))?;
    console.text(format_args!(
        "{}: {} x {} {}, {}",
        args.out.display(),
        grouped(spec.n),
        spec.dim,
        spec.dtype,
        Size(bytes)
    ))?;
    if let Some(path) = &args.queries_out {
        console.text(format_args!(
            "{}: {} queries",
            path.display(),
            grouped(args.queries as u64)
        ))?;
    }
    let (program, out) = (next::program(), next::quoted(&args.out));
    console.text(format_args!("\nNext: {program} build {out} --out my.index"))?;
    Ok(())
}

impl Args {
    fn spec(&self) -> synth::Spec {
        let natural =
            rabitq_ssd::dataset::Format::from_path(&self.out).ok().and_then(|f| f.dtype());
        synth::Spec {
            n: self.n as u64,
            dim: self.dim,
            seed: self.seed,
            spectrum: match self.spectrum.as_str() {
                "flat" => synth::Spectrum::Flat,
                _ => synth::Spectrum::Power,
            },
            norms: match self.norms.as_str() {
                "spread" => synth::Norms::Spread,
                _ => synth::Norms::Unit,
            },
            dtype: self.dtype.or(natural).unwrap_or(Dtype::F32),
        }
    }
}

fn dtype(text: &str) -> Result<Dtype, String> {
    match text {
        "f32" => Ok(Dtype::F32),
        "u8" => Ok(Dtype::U8),
        _ => Err("expected f32 or u8".into()),
    }
}
