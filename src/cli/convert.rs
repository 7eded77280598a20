//! `convert`: from one vector format or value type to another.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::slice;

use rabitq_ssd::Progress;
use rabitq_ssd::dataset::{self, Dtype, Format, Rounding};
use serde_json::json;

use super::console::Console;
use super::options::at_least_1;
use super::progress::Reporter;
use super::size::{Size, grouped};
use super::vectors::{self, keep_inputs};

/// Convert a vector file to another format or value type
///
/// Formats go by extension: .fbin .u8bin .i8bin .f16bin .fvecs .bvecs .npy. Values that the target
/// type cannot hold are an error unless --rounding allows them.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// File to read, or a quoted pattern as 'part*.fbin' whose files are joined
    src: PathBuf,
    /// File to write; replaced once the new one is complete
    dst: PathBuf,
    /// Type of the values in DST: f32, f16, u8 or i8 [default: what its extension says, for .npy
    /// the type of SRC]
    #[arg(long, value_name = "TYPE")]
    dtype: Option<Dtype>,
    /// Only the first N rows
    #[arg(long, value_name = "N", value_parser = at_least_1, allow_negative_numbers = true)]
    rows: Option<usize>,
    /// Values that do not fit: exact (an error), nearest (round; out of range is an error) or clamp
    #[arg(long, value_name = "exact|nearest|clamp", default_value = "exact",
          value_parser = ["exact", "nearest", "clamp"])]
    rounding: String,
}

const EXAMPLES: &str = "\
Examples:
  rabitq-ssd convert embeddings.npy embeddings.fbin
  rabitq-ssd convert sift.fvecs sift.u8bin
  rabitq-ssd convert base.fbin base.npy --dtype f16 --rounding nearest";

pub(crate) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    let source = vectors::open_first(slice::from_ref(&args.src), args.rows)?;
    keep_inputs(&args.dst, source.paths())?;
    let rounding = match args.rounding.as_str() {
        "nearest" => Rounding::Nearest,
        "clamp" => Rounding::Clamp,
        _ => Rounding::Exact,
    };
    let reporter = Reporter::new(console);
    let mut told = |done, total| {
        reporter.update("convert", done, total);
        ControlFlow::Continue(())
    };
    let n = dataset::convert(&source, &args.dst, args.dtype, rounding, &mut told)?;
    drop(reporter);
    let natural = Format::from_path(&args.dst)?.dtype();
    let dtype = args.dtype.or(natural).unwrap_or(source.raw_dtype()).to_string();
    let bytes = fs_err::metadata(&args.dst)?.len();
    console.object(&json!({
        "src": args.src.to_string_lossy(), "dst": args.dst.to_string_lossy(), "n": n,
        "dim": source.dim(), "dtype": dtype, "bytes": bytes,
    }))?;
    let (dst, rows, dim) = (args.dst.display(), grouped(n), source.dim());
    console.text(format_args!("{dst}: {rows} x {dim} {dtype}, {}", Size(bytes)))?;
    Ok(())
}
