//! Results for the eye: tables, plots and timelines as one HTML file, or as SVG files.
//!
//! ```text
//! Report ── title, machine, sections of plain data
//!  ├─ write_html ─ html.rs: the page, its style and script, the data as a JSON block
//!  │                └─ one <figure> a plot: plot.rs, timeline.rs ─ svg.rs, scale.rs
//!  └─ write_svgs ─ the same figures, one static file each, title and legend drawn inside
//! ```
//! The page needs no network and no script but its own: figures are drawn here, and the script
//! only shows what is under the pointer, hides series and sorts tables.

mod gather;
mod bench;
mod curves;
mod html;
mod lane;
mod machine;
mod plot;
mod scale;
mod svg;
mod timeline;

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::publish;

pub(crate) use gather::{Gathered, ReportArgs};
pub(crate) use machine::machine;

/// What a report shows, in its order.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) title: String,
    /// Names beside values at the head: machine, disk, command line, version.
    pub(crate) machine: Vec<(String, String)>,
    pub(crate) sections: Vec<Section>,
}

/// One part of a report.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Section {
    Table(Table),
    Plot(Plot),
    Timeline(Timeline),
}

/// Rows of cells, sortable by every column.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Table {
    pub(crate) title: String,
    /// A sentence below the title; may be empty.
    pub(crate) note: String,
    pub(crate) columns: Vec<String>,
    /// Strings, numbers, booleans or null; numbers are shown to four digits and kept exactly.
    pub(crate) rows: Vec<Vec<Value>>,
}

/// Lines through points over two axes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Plot {
    pub(crate) title: String,
    /// A sentence below the title; may be empty.
    pub(crate) note: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
}

/// An axis: its label, unit included, and how values are spread along it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) spread: Spread,
}

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Spread {
    Linear,
    Log,
    /// Linear, and on a y axis logarithmic at the press of a button.
    Either,
}

/// Points joined in their order.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<Point>,
}

/// A point; those that are not finite, or not positive on a logarithmic axis, are left out.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// What the pointer shows, line by line; the place on both axes when empty.
    pub(crate) note: String,
}

/// What the CPU did and how many reads were in flight during one query (the paper's Figure 4):
/// one lane a pipeline.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Timeline {
    pub(crate) title: String,
    /// A sentence below the title; may be empty.
    pub(crate) note: String,
    pub(crate) lanes: Vec<Lane>,
}

/// One search over time, in microseconds from its start.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Lane {
    pub(crate) name: String,
    /// When each activity began; it lasts until the next one, or the end.
    pub(crate) activities: Vec<(f64, Activity)>,
    /// Reads in flight from each moment on.
    pub(crate) reads: Vec<(f64, u32)>,
    pub(crate) end: f64,
}

/// What the CPU is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Activity {
    Route,
    Scan,
    Rank,
    Wait,
}

/// Write `report` as one self-contained HTML file, whole or not at all.
pub(crate) fn write_html(report: &Report, path: &Path) -> anyhow::Result<()> {
    publish::whole(path, &html::page(report)?)
}

/// Write each plot and timeline of `report` as an SVG file into `dir`, which is created if
/// need be: `01-recall-against-qps.svg` and so on, numbered in their order.
pub(crate) fn write_svgs(report: &Report, dir: &Path) -> anyhow::Result<()> {
    fs_err::create_dir_all(dir)?;
    let figures = report.sections.iter().filter_map(|section| match section {
        Section::Plot(plot) => Some((&plot.title, plot::file(plot))),
        Section::Timeline(timeline) => Some((&timeline.title, timeline::file(timeline))),
        Section::Table(_) => None,
    });
    for (i, (title, svg)) in figures.enumerate() {
        publish::whole(&dir.join(format!("{:02}-{}.svg", i + 1, slug(title))), &svg)?;
    }
    Ok(())
}

/// A title as part of a file name: its letters and digits, in lower case, joined by dashes.
fn slug(title: &str) -> String {
    let words: Vec<String> = title
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    words.join("-")
}

#[cfg(test)]
mod tests;
