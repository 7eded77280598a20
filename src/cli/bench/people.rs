//! Rows as people see them: what was measured on what, above the main columns.

use rabitq_ssd::evaluate::BenchRow;
use rabitq_ssd::{IndexInfo, Pipeline};

use super::ceiling::CEILING_DEPTH;
use crate::cli::search::machine;
use crate::cli::size::grouped;
use crate::cli::table::{Grid, Pairs};

/// What was measured, on what.
pub(crate) fn header(
    info: &IndexInfo,
    queries: usize,
    rounds: usize,
    ceiling: Option<f64>,
) -> Pairs {
    let mut pairs = Pairs::default();
    let vectors = format!("{} x {}, {}", grouped(info.n), info.dim, info.metric);
    pairs
        .add("index", format!("{vectors}, {} records, {} lists", info.record, info.nlist))
        .add("measured", format!("{} queries, {rounds} rounds", grouped(queries as u64)));
    machine(&mut pairs, info);
    if let Some(reads) = ceiling {
        let reads = grouped(reads as u64);
        pairs.add("ceiling", format!("{reads} random 4 KiB reads/s, {CEILING_DEPTH} in flight"));
    }
    pairs
}

/// The main columns for people; columns that never change only when they were asked for. QPS is the
/// median of the rounds, beside the slowest and the fastest.
pub(crate) fn grid(rows: &[BenchRow]) -> Grid {
    let pipelines = rows.iter().any(|row| row.pipeline != Pipeline::Full.to_string());
    let targets = rows.iter().any(|row| row.target_recall.is_some());
    let mut names = vec!["k", "threads"];
    names.extend(targets.then_some("target"));
    names.extend(["nprobe", "alpha"]);
    names.extend(pipelines.then_some("pipeline"));
    names.extend([
        "recall",
        "QPS",
        "min..max",
        "mean ms",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "pages/query",
        "lists",
    ]);
    let mut grid = Grid::new(&names);
    for row in rows {
        let mut cells = vec![row.k.to_string(), row.threads.to_string()];
        let target = |row: &BenchRow| match row.target_recall {
            Some(target) if row.recall < target => format!("{target} missed"),
            Some(target) => target.to_string(),
            None => "-".into(),
        };
        cells.extend(targets.then(|| target(row)));
        cells.extend([row.nprobe.to_string(), row.alpha.to_string()]);
        cells.extend(pipelines.then(|| row.pipeline.clone()));
        cells.extend([format!("{:.4}", row.recall), format!("{:.0}", row.qps)]);
        cells.push(format!("{:.0}..{:.0}", row.qps_min, row.qps_max));
        cells
            .extend([row.mean_ms, row.p50_ms, row.p95_ms, row.p99_ms].map(|ms| format!("{ms:.2}")));
        cells.extend([row.pages_per_query, row.lists_probed].map(|mean| format!("{mean:.1}")));
        grid.row(cells);
    }
    grid
}
