//! Figure 3: the coarse quantizers of §4.2, at equal nprobe and at equal recall.

use rabitq_ssd::CoarseKind;
use rabitq_ssd::evaluate::BenchRow;

use super::exhibit::{Cell, Exhibit, columns, cost, joined};
use super::lab::{Lab, Search};
use crate::cli::options::Preset;

const RECALL: f64 = 0.9;

pub(crate) fn run(lab: &mut Lab<'_>) -> anyhow::Result<Vec<Exhibit>> {
    let mut table = Exhibit::new(
        format!("Figure 3: coarse quantizers, k = 10, recall {RECALL}"),
        "irq finds the lists as well as hnsw and in less time; at 100,000 lists and more the coarse \
         step of a flat search dominates the query",
        &columns(&["at equal", "coarse", "lists", "T", "coarse ms", "coarse % of latency"]),
    );
    let query = Search::of(Preset::Paper, 10);
    let mut common = None;
    for kind in [CoarseKind::Flat, CoarseKind::Hnsw, CoarseKind::Irq] {
        let name = if kind == CoarseKind::Irq { String::new() } else { format!("-{kind}") };
        let subject = lab.subject(&name, Preset::Paper, |o| o.coarse = kind)?;
        let own = lab.point(&subject, &query, RECALL)?.nprobe;
        // The flat search goes first: its nprobe is the one the others are given.
        let nprobe = *common.get_or_insert(own);
        for threads in lab.threads.clone() {
            let row = lab.measure("coarse", &subject, &query, threads, nprobe)?;
            table.row(cells("nprobe", &row));
            let row = lab.measure("coarse", &subject, &query, threads, own)?;
            table.row(cells("recall", &row));
        }
    }
    Ok(vec![table])
}

/// The coarse step includes rotating the query and building its tables.
fn cells(equal: &str, row: &BenchRow) -> Vec<Cell> {
    let names = vec![
        equal.into(),
        row.coarse.as_str().into(),
        row.nlist.into(),
        row.threads.into(),
        (row.route_ms, 4).into(),
        (100.0 * row.route_ms / row.mean_ms.max(1e-9), 1).into(),
    ];
    joined(names, cost(row))
}
