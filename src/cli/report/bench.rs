//! The report of a `bench` run: which rows make which plot.
//!
//! A plot joins the rows that differ in one thing only, and is left out when nothing varies along
//! its x axis. Its series are told apart by whatever else varies.

use std::path::PathBuf;

use rabitq_ssd::IndexInfo;
use rabitq_ssd::evaluate::BenchRow;
use serde_json::Value;

use super::html::digits;
use super::{Axis, Plot, Point, Report, Section, Series, Spread, Table, Timeline, machine};
use crate::cli::csv;
use crate::cli::size::grouped;

/// What a run of `bench` came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured<'a> {
    /// Directory and description of each index; at least one.
    pub(crate) indexes: &'a [(PathBuf, IndexInfo)],
    pub(crate) queries: usize,
    pub(crate) rows: &'a [BenchRow],
    /// One query each.
    pub(crate) timelines: &'a [Timeline],
}

/// The report of all that was measured.
pub(crate) fn of_bench(measured: &Measured<'_>) -> anyhow::Result<Report> {
    let Measured { indexes, queries, rows, timelines } = *measured;
    let ceiling = rows.first().and_then(|row| row.ceiling_reads_per_s);
    let mut sections: Vec<Section> = plots(rows).into_iter().map(Section::Plot).collect();
    sections.extend(timelines.iter().cloned().map(Section::Timeline));
    sections.extend(row_tables(rows)?.into_iter().map(Section::Table));
    let mut names = Vec::new();
    for (dir, info) in indexes {
        let name = dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy();
        sections.push(Section::Table(index_table(&name, info)?));
        names.push(name);
    }
    let about = indexes.first().map_or_else(String::new, |(_, info)| {
        format!("{} vectors of {} dims, ", grouped(info.n), info.dim)
    });
    let title = format!("{}: {about}{} queries", names.join(", "), grouped(queries as u64));
    let machine = indexes.first().map_or_else(Vec::new, |(dir, info)| machine(dir, info, ceiling));
    Ok(Report { title, machine, sections })
}

/// What a row was measured with; two rows are comparable along one of these when the others agree.
type Parameter = (&'static str, fn(&BenchRow) -> String);

const PIPELINE: Parameter = ("", |row| row.pipeline.clone());
const K: Parameter = ("k", |row| row.k.to_string());
const THREADS: Parameter = ("threads", |row| row.threads.to_string());
const INFLIGHT: Parameter =
    ("in flight", |row| row.inflight.map_or("auto".into(), |q| q.to_string()));
const ALPHA: Parameter = ("alpha", |row| row.alpha.to_string());
const THRESHOLD: Parameter = ("threshold", |row| row.threshold.clone());
/// A row found by its recall is comparable with others of the same target, whatever their nprobe.
const EFFORT: Parameter = ("", |row| match row.target_recall {
    Some(target) => format!("recall {target}"),
    None => format!("nprobe {}", row.nprobe),
});
const RECORD: Parameter = ("", |row| row.record.clone());
const BITS: Parameter = ("bits", |row| row.bits.to_string());
const PREFIX: Parameter = ("prefix", |row| row.prefix_dims.to_string());
const LISTS: Parameter = ("lists", |row| row.nlist.to_string());
const COARSE: Parameter = ("", |row| row.coarse.clone());
const PARAMETERS: [Parameter; 12] =
    [RECORD, BITS, PREFIX, LISTS, COARSE, PIPELINE, K, THREADS, INFLIGHT, ALPHA, THRESHOLD, EFFORT];

/// A value of a row.
type Measure = fn(&BenchRow) -> f64;

fn plots(rows: &[BenchRow]) -> Vec<Plot> {
    let recall = recall_label(rows);
    let axis = |label: &str, spread| Axis { label: label.into(), spread };
    let qps = || axis("queries per second", Spread::Either);
    let pages = || axis("4 KiB pages read per query", Spread::Either);
    let by_recall = |title: &str, note: &str, y: Axis, measures: &[(&str, Measure)]| Plot {
        title: title.into(),
        note: note.into(),
        x: axis(&recall, Spread::Linear),
        y,
        series: series(rows, EFFORT, |row| row.recall, measures),
    };
    let along = |title: &str, along: Parameter, x: Axis, y: Axis, at: Measure, of: Measure| Plot {
        title: title.into(),
        note: String::new(),
        x,
        y,
        series: series(rows, along, at, &[("", of)]),
    };
    let all = [
        by_recall(
            "Recall against QPS",
            "Up and to the right is better.",
            qps(),
            &[("", |r| r.qps)],
        ),
        by_recall(
            "Recall against pages read",
            "Down and to the right is better.",
            pages(),
            &[("", |r| r.pages_per_query)],
        ),
        by_recall(
            "Recall against latency",
            "Half, 95 and 99 of 100 queries took at most this long.",
            axis("latency (ms)", Spread::Either),
            &[("p50", |r| r.p50_ms), ("p95", |r| r.p95_ms), ("p99", |r| r.p99_ms)],
        ),
        along(
            "Pages read against alpha",
            ALPHA,
            axis("alpha", Spread::Linear),
            pages(),
            |r| f64::from(r.alpha),
            |r| r.pages_per_query,
        ),
        along(
            "QPS against reads in flight",
            INFLIGHT,
            axis("most reads in flight per query", Spread::Log),
            qps(),
            |r| r.inflight.map_or(f64::NAN, |q| q as f64),
            |r| r.qps,
        ),
        along(
            "QPS against threads",
            THREADS,
            axis("threads", Spread::Linear),
            qps(),
            |r| r.threads as f64,
            |r| r.qps,
        ),
    ];
    all.into_iter().filter(varies).collect()
}

/// Whether some series has points at two places at least.
fn varies(plot: &Plot) -> bool {
    plot.series.iter().any(|series| {
        let mut places = series.points.iter().map(|p| p.x).filter(|x| x.is_finite());
        places.next().is_some_and(|first| places.any(|x| x != first))
    })
}

fn recall_label(rows: &[BenchRow]) -> String {
    match rows.first() {
        Some(first) if rows.iter().all(|row| row.k == first.k) => format!("recall@{}", first.k),
        _ => "recall@k".into(),
    }
}

/// One series for each combination of the parameters other than `along`, and each measure.
fn series(
    rows: &[BenchRow],
    along: Parameter,
    x: Measure,
    measures: &[(&str, Measure)],
) -> Vec<Series> {
    let others = PARAMETERS.iter().filter(|(_, value)| !std::ptr::fn_addr_eq(*value, along.1));
    let named: Vec<Parameter> = others
        .filter(|(_, value)| rows.iter().any(|row| value(row) != value(&rows[0])))
        .copied()
        .collect();
    let mut groups: Vec<(String, Vec<&BenchRow>)> = Vec::new();
    for row in rows {
        let words = named.iter().map(|(name, value)| format!("{name} {}", value(row)));
        let name = words.map(|word| word.trim().to_string()).collect::<Vec<_>>().join(", ");
        match groups.iter_mut().find(|(of, _)| *of == name) {
            Some((_, members)) => members.push(row),
            None => groups.push((name, vec![row])),
        }
    }
    let mut all = Vec::new();
    for (name, mut members) in groups {
        members.sort_by(|a, b| x(a).total_cmp(&x(b)));
        for (measure, y) in measures {
            let words = [name.as_str(), measure].into_iter().filter(|word| !word.is_empty());
            let label = words.collect::<Vec<_>>().join(" ");
            let label = if label.is_empty() { members[0].pipeline.clone() } else { label };
            let points =
                members.iter().map(|row| Point { x: x(row), y: y(row), note: note(row) }).collect();
            all.push(Series { name: label, points });
        }
    }
    all
}

/// What the pointer shows of a row.
fn note(row: &BenchRow) -> String {
    let inflight = row.inflight.map_or("auto".into(), |q| q.to_string());
    format!(
        "{}, k {}, nprobe {}, alpha {}\n{} threads, in flight {inflight}\n\
         recall {:.4}\n{} QPS\n{} pages per query\np50 {}, p95 {}, p99 {} ms",
        row.pipeline,
        row.k,
        row.nprobe,
        row.alpha,
        row.threads,
        row.recall,
        digits(row.qps),
        digits(row.pages_per_query),
        digits(row.p50_ms),
        digits(row.p95_ms),
        digits(row.p99_ms),
    )
}

/// All rows, and beside them what is the same in every row.
fn row_tables(rows: &[BenchRow]) -> anyhow::Result<Vec<Table>> {
    let rows: Vec<Vec<(String, Value)>> =
        rows.iter().map(csv::fields).collect::<anyhow::Result<_>>()?;
    let Some(first) = rows.first() else {
        return Ok(Vec::new());
    };
    let same =
        |column: usize| rows.len() > 1 && rows.iter().all(|row| row[column] == first[column]);
    let (constant, varying): (Vec<usize>, Vec<usize>) =
        (0..first.len()).partition(|&column| same(column));
    let all = Table {
        title: "All rows".into(),
        note: "Counters are means per query. A click on a name sorts.".into(),
        columns: varying.iter().map(|&column| first[column].0.clone()).collect(),
        rows: rows
            .iter()
            .map(|row| varying.iter().map(|&column| row[column].1.clone()).collect())
            .collect(),
    };
    let shared = pairs_table(
        "The same in every row",
        constant.into_iter().map(|column| first[column].clone()).collect(),
    );
    Ok(std::iter::once(all).chain((!shared.rows.is_empty()).then_some(shared)).collect())
}

fn index_table(name: &str, info: &IndexInfo) -> anyhow::Result<Table> {
    let mut pairs = Vec::new();
    for (name, value) in csv::fields(info)? {
        match value {
            Value::Object(parts) => {
                pairs.extend(
                    parts.into_iter().map(|(part, value)| (format!("{name}.{part}"), value)),
                );
            }
            Value::Array(notes) => pairs.extend(notes.into_iter().map(|note| (name.clone(), note))),
            value => pairs.push((name, value)),
        }
    }
    Ok(pairs_table(&format!("Parameters of {name}"), pairs))
}

fn pairs_table(title: &str, pairs: Vec<(String, Value)>) -> Table {
    Table {
        title: title.into(),
        note: String::new(),
        columns: vec!["name".into(), "value".into()],
        rows: pairs.into_iter().map(|(name, value)| vec![Value::from(name), value]).collect(),
    }
}
