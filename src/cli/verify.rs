//! `verify`: every byte of an index against its checksums.

use std::path::PathBuf;

use anyhow::bail;
use serde_json::json;

use super::console::Console;
use super::progress::Reporter;
use super::size::Size;
use super::table::Grid;

/// Check every file and page of an index against its checksums
///
/// Reads the whole index once. Names each damaged file and page and ends with exit code 1 if there
/// are any.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  rabitq-ssd verify my.index")]
pub(crate) struct Args {
    /// Directory of the index
    index: PathBuf,
}

/// Damaged pages that are listed for people; --json lists all.
const SHOWN_PAGES: usize = 20;

pub(crate) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    let reporter = Reporter::new(console);
    let report = rabitq_ssd::verify(&args.index, &reporter)?;
    drop(reporter);
    console.object(&json!({
        "index": args.index.to_string_lossy(), "ok": report.ok(), "problem": report.problem,
        "files": report.files,
    }))?;
    let mut grid = Grid::new(&["file", "size", "state"]).with_text();
    for file in &report.files {
        let state = if file.ok { "ok" } else { "DAMAGED" };
        grid.row(vec![file.name.clone(), Size(file.bytes).to_string(), state.into()]);
    }
    console.text(grid)?;
    for file in report.files.iter().filter(|file| !file.ok) {
        let problem = file.problem.as_deref().unwrap_or("does not match its checksum");
        console.text(format_args!("{}: {problem}{}", file.name, pages(&file.bad_pages)))?;
    }
    if report.ok() {
        return Ok(());
    }
    let names = report.files.iter().filter(|file| !file.ok).map(|file| file.name.as_str());
    let what: Vec<&str> = names.chain(report.problem.as_deref()).collect();
    bail!("{} is damaged ({}): rebuild it", args.index.display(), what.join(", "))
}

fn pages(bad: &[u64]) -> String {
    if bad.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = bad.iter().take(SHOWN_PAGES).map(u64::to_string).collect();
    let hidden = bad.len().saturating_sub(SHOWN_PAGES);
    let more = if hidden > 0 { format!(" and {hidden} more") } else { String::new() };
    format!("; pages {}{more}", shown.join(", "))
}
