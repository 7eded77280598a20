//! Figure 7: throughput against the read rate as threads are added, and against the prefix in RAM.

use rabitq_ssd::Prefix;

use super::exhibit::{Exhibit, Line, columns, cost, joined};
use super::lab::{Lab, Search};
use super::operating_points::target;
use crate::cli::options::Preset;

const RECALL: f64 = 0.9;

pub(crate) fn run(lab: &mut Lab<'_>) -> anyhow::Result<Vec<Exhibit>> {
    Ok(vec![threads(lab)?, prefixes(lab)?])
}

fn threads(lab: &mut Lab<'_>) -> anyhow::Result<Exhibit> {
    let mut table = Exhibit::new(
        "Figure 7(a): query concurrency, recall 0.90",
        "QPS grows with the read rate until the disk is saturated, then only latency grows",
        &columns(&["k", "T", "target", "reads/s", "mean ms"]),
    );
    let subject = lab.subject("", Preset::Paper, |_| ())?;
    let mut most = lab.threads.clone();
    // Beyond the processors: more queries wait for reads at the same time.
    most.extend([2, 4].map(|times| times * lab.most_threads()));
    let mut lines = Vec::new();
    for k in lab.ks(&[10, 100]) {
        let query = Search::of(Preset::Paper, k);
        let mut points = Vec::new();
        for &threads in &most {
            let row = lab.measure_at("figure7a", &subject, &query, threads, RECALL)?;
            let reads = row.qps * row.pages_per_query;
            points.push((reads, row.qps));
            let names = vec![
                k.into(),
                threads.into(),
                target(&row, RECALL),
                (reads, 0).into(),
                (row.mean_ms, 2).into(),
            ];
            table.row(joined(names, cost(&row)));
        }
        lines.push(Line { name: format!("k {k}"), points });
    }
    table.plot("reads per second", "QPS", lines);
    Ok(table)
}

fn prefixes(lab: &mut Lab<'_>) -> anyhow::Result<Exhibit> {
    let mut table = Exhibit::new(
        "Figure 7(b): prefix dims, k = 10, recall 0.90",
        "a shorter prefix reads more pages: 113 at D, 195 at D/2, 769 at D/4 on DPR-100M, where QPS \
         is best at D/2",
        &columns(&["prefix", "RAM bytes/vector", "T", "target"]),
    );
    let mut lines = Vec::new();
    for threads in lab.threads.clone() {
        lines.push(Line { name: format!("T {threads}"), points: Vec::new() });
    }
    let mut dims: Vec<usize> = [1, 2, 3, 4].map(|quarters| lab.prefix_dims(quarters)).into();
    dims.dedup();
    for dims in dims {
        let name = if dims == lab.prefix_dims(4) { String::new() } else { format!("-m{dims}") };
        let subject = lab.subject(&name, Preset::Paper, |o| o.prefix = Prefix::Dims(dims))?;
        for (line, threads) in lab.threads.clone().into_iter().enumerate() {
            let query = Search::of(Preset::Paper, 10);
            let row = lab.measure_at("figure7b", &subject, &query, threads, RECALL)?;
            lines[line].points.push((dims as f64, row.qps));
            let bytes = row.resident_bytes as f64 / row.n.max(1) as f64;
            let names = vec![dims.into(), (bytes, 1).into(), threads.into(), target(&row, RECALL)];
            table.row(joined(names, cost(&row)));
        }
    }
    table.plot("prefix dims", "QPS", lines);
    Ok(table)
}
