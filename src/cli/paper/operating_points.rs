//! The main evaluation (§5.2, §5.3, Appendix C.1): QPS and latency at recalls, k and prefix
//! lengths, of the paper's configuration and the default one.

use rabitq_ssd::Prefix;
use rabitq_ssd::evaluate::BenchRow;

use super::exhibit::{Cell, Exhibit, Line, columns, cost, joined};
use super::lab::{Lab, Search};
use crate::cli::options::Preset;

const RECALLS: [f64; 3] = [0.9, 0.95, 0.98];
/// From which recall curves are drawn.
const CURVE_FROM: f64 = 0.6;

pub(crate) fn run(lab: &mut Lab<'_>) -> anyhow::Result<Vec<Exhibit>> {
    let names = ["preset", "prefix", "k", "T", "target"];
    let mut speed = Exhibit::new(
        "Tables 3 and 8, Figures 5 and 6: throughput at recalls 0.90, 0.95 and 0.98",
        "at D/2 reads per query rise by 1.7 and more, scans get cheaper; a larger k reads more; at \
         high recall the scan of full codes becomes the bottleneck",
        &columns(&names),
    );
    let mut latency = Exhibit::new(
        "Table 4: latency of a query at T = 1",
        "P99 is within 2 to 3 times of P50 at either prefix length",
        &["preset", "prefix", "k", "target", "recall", "mean ms", "P50 ms", "P95 ms", "P99 ms"],
    );
    let mut lines = Vec::new();
    for preset in [Preset::Paper, Preset::Default] {
        for quarters in [4, 2] {
            let dims = lab.prefix_dims(quarters);
            let name = if quarters == 4 { String::new() } else { format!("-m{dims}") };
            let subject = lab.subject(&name, preset, |o| o.prefix = Prefix::Dims(dims))?;
            for k in lab.ks(&[10, 100, 1000]) {
                let query = Search::of(preset, k);
                for recall in RECALLS {
                    for threads in lab.threads.clone() {
                        let row =
                            lab.measure_at("operating_points", &subject, &query, threads, recall)?;
                        let target = target(&row, recall);
                        if threads == 1 {
                            latency.row(percentiles(preset, &row, target.clone()));
                        }
                        let names = vec![
                            preset.to_string().into(),
                            dims.into(),
                            k.into(),
                            threads.into(),
                            target,
                        ];
                        speed.row(joined(names, cost(&row)));
                    }
                }
                let threads = lab.most_threads();
                let rows = lab.curve("operating_points", &subject, &query, threads, CURVE_FROM)?;
                lines.push(Line {
                    name: format!("{preset}, {dims} dims, k {k}"),
                    points: rows.iter().map(|row| (row.recall, row.qps)).collect(),
                });
            }
        }
    }
    speed.plot("recall", "QPS", lines);
    Ok(vec![speed, latency])
}

/// The recall asked for; marked where no nprobe reaches it.
pub(super) fn target(row: &BenchRow, recall: f64) -> Cell {
    match row.target_recall {
        Some(_) => (recall, 2).into(),
        None => format!("{recall:.2} out of reach").into(),
    }
}

fn percentiles(preset: Preset, row: &BenchRow, target: Cell) -> Vec<Cell> {
    vec![
        preset.to_string().into(),
        row.prefix_dims.into(),
        row.k.into(),
        target,
        (row.recall, 4).into(),
        (row.mean_ms, 2).into(),
        (row.p50_ms, 2).into(),
        (row.p95_ms, 2).into(),
        (row.p99_ms, 2).into(),
    ]
}
