//! `info`: what an index holds and what it takes.

use std::path::PathBuf;

use rabitq_ssd::{Index, IndexInfo, RecordKind};

use super::console::Console;
use super::options::OpenArgs;
use super::search::machine;
use super::size::{Size, grouped};
use super::table::Pairs;

/// Say what an index holds, what it takes in RAM and on disk, and how this machine would read it
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  rabitq-ssd info my.index --json")]
pub(crate) struct Args {
    /// Directory of the index
    index: PathBuf,
    #[command(flatten)]
    open: OpenArgs,
}

pub(crate) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    let info = Index::open(&args.index, &args.open.options())?.info();
    console.object(&info)?;
    console.text(format_args!("{}\n{}", args.index.display(), describe(&info)))?;
    Ok(())
}

fn describe(info: &IndexInfo) -> Pairs {
    let records = match info.record {
        RecordKind::Split => format!("split, {} bits per dim", info.bits),
        kind => kind.to_string(),
    };
    let packing = match info.pages_per_record {
        0 | 1 => format!("{} a page", info.records_per_page),
        pages => format!("{pages} pages each"),
    };
    let lists = &info.list_sizes;
    let mut pairs = Pairs::default();
    pairs
        .add("vectors", format!("{} x {} {}", grouped(info.n), info.dim, info.dtype))
        .add("metric", info.metric)
        .add("ids", ids(info))
        .add("left out", format!("{} invalid rows", grouped(info.skipped_rows)))
        .add("zero rows", grouped(info.zero_rows))
        .add("lists", format!("{}, found by {}", grouped(info.nlist as u64), info.coarse))
        .add(
            "list sizes",
            format!(
                "min {}, mean {:.0}, p99 {}, max {}",
                lists.min, lists.mean, lists.p99, lists.max
            ),
        )
        .add("in RAM", format!("{} of {} sign bits each", info.prefix_dims, info.padded_dim))
        .add("bound", info.bound)
        .add("records", format!("{records}: {} bytes, {packing}", info.record_bytes))
        .add("resident size", Size(info.resident_bytes).exact());
    for (part, bytes) in info.resident.iter().filter(|&(_, &bytes)| bytes > 0) {
        pairs.add("", format!("{part}: {}", Size(*bytes).exact()));
    }
    pairs
        .add("on SSD", Size(info.ssd_bytes).exact())
        .add("seed", info.seed)
        .add("format", format!("{}, uuid {}", info.format, info.uuid));
    machine(&mut pairs, info);
    pairs
}

fn ids(info: &IndexInfo) -> String {
    let kind = if info.external_ids { "external" } else { "row numbers" };
    let place = if info.ids_in_records { "in the records" } else { "in a file of their own" };
    format!("{kind}, {place}")
}
