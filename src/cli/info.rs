//! `info`: what an index holds and what it takes, and what its build took.

use std::path::{Path, PathBuf};

use rabitq_ssd::{Index, IndexInfo, RecordKind};
use serde::Serialize;
use serde_json::{Map, Value};

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
    let build = build_record(&args.index);
    console.object(&Described { info: &info, build: build.as_ref() })?;
    let mut pairs = describe(&info);
    add_stages(&mut pairs, build.as_ref().unwrap_or(&Map::new()));
    console.text(format_args!("{}\n{pairs}", args.index.display()))?;
    Ok(())
}

#[derive(Serialize)]
struct Described<'a> {
    #[serde(flatten)]
    info: &'a IndexInfo,
    /// As it stands in the index.
    #[serde(skip_serializing_if = "Option::is_none")]
    build: Option<&'a Map<String, Value>>,
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
        .add("list padding", padding(info))
        .add("in RAM", format!("{} of {} sign bits each", info.prefix_dims, info.padded_dim))
        .add("bound", info.bound)
        .add("list order", info.list_order)
        .add("centroids", info.centroids)
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

/// What the build kept about itself. No search needs it, so an index may lack it.
fn build_record(index: &Path) -> Option<Map<String, Value>> {
    let text = fs_err::read(index.join("build.json")).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Seconds and peak memory in all and by stage, as far as the record has them.
fn add_stages(pairs: &mut Pairs, build: &Map<String, Value>) {
    let stages = build.get("stages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let number = |value: Option<&Value>| value.and_then(Value::as_f64);
    let peak = |stage: &Value| number(stage.get("peak_memory_bytes"));
    let most = stages.iter().filter_map(peak).reduce(f64::max);
    if let Some(all) = took(number(build.get("total_seconds")), most) {
        pairs.add("build took", all);
    }
    for stage in stages {
        let name = stage.get("stage").and_then(Value::as_str).unwrap_or_default();
        if let Some(text) = took(number(stage.get("seconds")), peak(stage)) {
            pairs.add("", format!("{name}: {text}"));
        }
    }
}

/// `12.3 s, peak 1.25 GiB`, or one of the two.
fn took(seconds: Option<f64>, peak: Option<f64>) -> Option<String> {
    let seconds = seconds.map(|seconds| format!("{seconds:.1} s"));
    let peak = peak.map(|bytes| format!("peak {}", Size(bytes as u64)));
    let parts: Vec<String> = seconds.into_iter().chain(peak).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn ids(info: &IndexInfo) -> String {
    let kind = if info.external_ids { "external" } else { "row numbers" };
    let place = if info.ids_in_records { "in the records" } else { "in a file of their own" };
    format!("{kind}, {place}")
}

/// Lists follow each other without gaps, in batches of codes as in pages of records: only pages
/// have room left over.
fn padding(info: &IndexInfo) -> String {
    let page = 4096 * info.pages_per_record.max(1);
    let used = info.record_bytes * info.records_per_page.max(1);
    format!("none; pages {:.1} % full", 100.0 * used as f64 / page as f64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn shown(build: &str) -> String {
        let mut pairs = Pairs::default();
        add_stages(&mut pairs, &serde_json::from_str(build).unwrap());
        pairs.to_string()
    }

    #[test]
    fn a_build_is_described_by_what_its_record_has() {
        let record = r#"{"n": 3, "total_seconds": 13.3, "stages": [
            {"stage": "check", "seconds": 1.26, "peak_memory_bytes": null},
            {"stage": "train", "seconds": 12.0, "peak_memory_bytes": 1073741824}]}"#;
        let lines: Vec<String> = shown(record).lines().map(|line| line.trim().to_owned()).collect();
        let train = "train: 12.0 s, peak 1.00 GiB";
        assert_eq!(lines, ["build took  13.3 s, peak 1.00 GiB", "check: 1.3 s", train]);
        assert_eq!(shown("{}"), "");
        assert_eq!(shown(r#"{"stages": [5], "total_seconds": null}"#), "");
    }
}
