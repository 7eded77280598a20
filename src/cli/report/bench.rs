//! The report of a `bench` run: plots, timelines, every row, every parameter of the indexes.

use std::path::PathBuf;

use rabitq_ssd::IndexInfo;
use rabitq_ssd::evaluate::BenchRow;
use serde_json::Value;

use super::{Report, Section, Table, Timeline, curves, machine};
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
    let mut sections: Vec<Section> = curves::plots(rows).into_iter().map(Section::Plot).collect();
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

/// What a row was measured with stands before what came of it.
const SETTINGS: [&str; 10] = [
    "record",
    "bits",
    "prefix_dims",
    "pipeline",
    "k",
    "threads",
    "inflight",
    "alpha",
    "nprobe",
    "target_recall",
];

/// All rows, and beside them what is the same in every row.
fn row_tables(rows: &[BenchRow]) -> anyhow::Result<Vec<Table>> {
    let rows: Vec<Vec<(String, Value)>> =
        rows.iter().map(csv::fields).collect::<anyhow::Result<_>>()?;
    let Some(first) = rows.first() else {
        return Ok(Vec::new());
    };
    let same =
        |column: usize| rows.len() > 1 && rows.iter().all(|row| row[column] == first[column]);
    let (constant, mut varying): (Vec<usize>, Vec<usize>) =
        (0..first.len()).partition(|&column| same(column));
    varying.sort_by_key(|&column| !SETTINGS.contains(&first[column].0.as_str()));
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
