//! Which rows of a `bench` run make which plot.
//!
//! A line joins the rows that differ in one parameter only; lines are told apart by whatever else
//! varies. A plot is left out when nothing varies along its x axis.

use rabitq_ssd::evaluate::BenchRow;

use super::html::digits;
use super::{Axis, Plot, Point, Series, Spread};

/// A value of a row.
type Measure = fn(&BenchRow) -> f64;

/// What a row was measured with: its name, and its value as a legend says it.
type Parameter = (&'static str, fn(&BenchRow) -> String);

const PARAMETERS: [Parameter; 12] = [
    ("record", |row| row.record.clone()),
    ("bits", |row| format!("{} bits", row.bits)),
    ("prefix", |row| format!("prefix {}", row.prefix_dims)),
    ("lists", |row| format!("{} lists", row.nlist)),
    ("coarse", |row| row.coarse.clone()),
    ("pipeline", |row| row.pipeline.clone()),
    ("k", |row| format!("k {}", row.k)),
    ("threads", |row| format!("{} {}", row.threads, threads(row))),
    ("inflight", |row| format!("in flight {}", inflight(row))),
    ("alpha", |row| format!("alpha {}", row.alpha)),
    ("threshold", |row| row.threshold.clone()),
    // A row found by its recall compares with others of the same target, whatever their nprobe.
    ("effort", |row| match row.target_recall {
        Some(target) => format!("recall {target}"),
        None => format!("nprobe {}", row.nprobe),
    }),
];

/// Lines up to which a plot shows three percentiles of each.
const FEW: usize = 3;

/// The plots that these rows have something to say in.
pub(super) fn plots(rows: &[BenchRow]) -> Vec<Plot> {
    let mut all = vec![
        by_recall(rows, "Recall against QPS", QPS, &[("", |row| row.qps)]),
        by_recall(rows, "Recall against pages read", PAGES, &[("", |row| row.pages_per_query)]),
    ];
    all.extend(latencies(rows));
    all.extend([
        along(rows, "Pages read against alpha", "alpha", ("alpha", Spread::Linear), PAGES),
        along(
            rows,
            "QPS against reads in flight",
            "inflight",
            ("most reads in flight per query", Spread::Log),
            QPS,
        ),
        along(rows, "QPS against threads", "threads", ("threads", Spread::Log), QPS),
    ]);
    all.retain(varies);
    all
}

const QPS: &str = "queries per second";
const PAGES: &str = "4 KiB pages read per query";

fn by_recall(rows: &[BenchRow], title: &str, y: &str, measures: &[(&str, Measure)]) -> Plot {
    let label = match rows.first() {
        Some(first) if rows.iter().all(|row| row.k == first.k) => format!("recall@{}", first.k),
        _ => "recall@k".into(),
    };
    Plot {
        title: title.into(),
        note: if y == QPS {
            "Up and to the right is better."
        } else {
            "Down and to the right is better."
        }
        .into(),
        x: Axis { label, spread: Spread::Linear },
        y: Axis { label: y.into(), spread: Spread::Either },
        series: series(rows, "effort", |row| row.recall, measures),
    }
}

/// One plot of three percentiles, or with many lines one plot for each.
fn latencies(rows: &[BenchRow]) -> Vec<Plot> {
    const LABEL: &str = "latency (ms)";
    let percentiles: [(&str, Measure); 3] =
        [("p50", |row| row.p50_ms), ("p95", |row| row.p95_ms), ("p99", |row| row.p99_ms)];
    if groups(rows, "effort").len() <= FEW {
        return vec![by_recall(rows, "Recall against latency", LABEL, &percentiles)];
    }
    let each = percentiles.map(|(name, of)| {
        by_recall(rows, &format!("Recall against {name} latency"), LABEL, &[("", of)])
    });
    each.into()
}

fn along(
    rows: &[BenchRow],
    title: &str,
    parameter: &str,
    (label, spread): (&str, Spread),
    y: &str,
) -> Plot {
    let x: Measure = match parameter {
        "alpha" => |row| f64::from(row.alpha),
        "threads" => |row| row.threads as f64,
        _ => |row| row.inflight.map_or(f64::NAN, |reads| reads as f64),
    };
    let of: Measure = if y == QPS { |row| row.qps } else { |row| row.pages_per_query };
    Plot {
        title: title.into(),
        note: String::new(),
        x: Axis { label: label.into(), spread },
        y: Axis { label: y.into(), spread: Spread::Either },
        series: series(rows, parameter, x, &[("", of)]),
    }
}

/// Whether some line has points at two places at least.
fn varies(plot: &Plot) -> bool {
    plot.series.iter().any(|series| {
        let mut places = series.points.iter().map(|p| p.x).filter(|x| x.is_finite());
        places.next().is_some_and(|first| places.any(|x| x != first))
    })
}

/// A line for each group of rows and each measure.
fn series(rows: &[BenchRow], along: &str, x: Measure, measures: &[(&str, Measure)]) -> Vec<Series> {
    let mut all = Vec::new();
    for (name, mut members) in groups(rows, along) {
        members.sort_by(|a, b| x(a).total_cmp(&x(b)));
        for (measure, y) in measures {
            let point = |row: &&BenchRow| Point { x: x(row), y: y(row), note: note(row) };
            all.push(Series {
                name: format!("{name} {measure}").trim_end().to_string(),
                points: members.iter().map(point).collect(),
            });
        }
    }
    all
}

/// Rows that agree in everything but `along`, with what tells them from the other groups; the
/// pipeline when nothing does.
fn groups<'a>(rows: &'a [BenchRow], along: &str) -> Vec<(String, Vec<&'a BenchRow>)> {
    let varies = |value: fn(&BenchRow) -> String| {
        rows.first().is_some_and(|first| rows.iter().any(|row| value(row) != value(first)))
    };
    let named: Vec<Parameter> =
        PARAMETERS.into_iter().filter(|&(name, value)| name != along && varies(value)).collect();
    let mut groups: Vec<(String, Vec<&BenchRow>)> = Vec::new();
    for row in rows {
        let words: Vec<String> = named.iter().map(|(_, value)| value(row)).collect();
        let name = if words.is_empty() { row.pipeline.clone() } else { words.join(", ") };
        match groups.iter_mut().find(|(of, _)| *of == name) {
            Some((_, members)) => members.push(row),
            None => groups.push((name, vec![row])),
        }
    }
    groups
}

/// What the pointer shows of a row.
fn note(row: &BenchRow) -> String {
    format!(
        "{}, k {}, nprobe {}, alpha {}\n{} {}, in flight {}\nrecall {:.4}\n{} QPS\n\
         {} pages per query\np50 {}, p95 {}, p99 {} ms",
        row.pipeline,
        row.k,
        row.nprobe,
        row.alpha,
        row.threads,
        threads(row),
        inflight(row),
        row.recall,
        digits(row.qps),
        digits(row.pages_per_query),
        digits(row.p50_ms),
        digits(row.p95_ms),
        digits(row.p99_ms),
    )
}

fn threads(row: &BenchRow) -> &'static str {
    if row.threads == 1 { "thread" } else { "threads" }
}

fn inflight(row: &BenchRow) -> String {
    row.inflight.map_or_else(|| "auto".into(), |reads| reads.to_string())
}
