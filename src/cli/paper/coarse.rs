//! Figure 3: the coarse quantizers of §4.2, at equal nprobe and at equal recall, with the paper's
//! lists and with more of them, where the coarse step takes a larger share.

use rabitq_ssd::CoarseKind;
use rabitq_ssd::evaluate::BenchRow;

use super::exhibit::{Cell, Exhibit, columns, cost, joined};
use super::lab::{Lab, Point, Search, Subject};
use crate::cli::options::Preset;

const RECALLS: [f64; 2] = [0.9, 0.95];
/// Rows of a list where lists are many, and how many lists that may give.
const ROWS_PER_LIST: u64 = 64;
const MOST_LISTS: u64 = 100_000;
const KINDS: [CoarseKind; 3] = [CoarseKind::Flat, CoarseKind::Hnsw, CoarseKind::Irq];

pub(crate) fn run(lab: &mut Lab<'_>) -> anyhow::Result<Vec<Exhibit>> {
    let many = (lab.data.base.n() / ROWS_PER_LIST).clamp(1, MOST_LISTS) as usize;
    Ok(vec![compare(lab, None)?, compare(lab, Some(many))?])
}

fn compare(lab: &mut Lab<'_>, nlist: Option<usize>) -> anyhow::Result<Exhibit> {
    let lists = nlist.map_or("n/1024 lists".into(), |nlist| format!("{nlist} lists"));
    let mut table = Exhibit::new(
        format!("Figure 3: coarse quantizers, k = 10, {lists}"),
        "irq finds the lists as well as hnsw and in less time; at 100,000 lists and more the coarse \
         step of a flat search dominates the query",
        &columns(&["target", "at equal", "coarse", "T", "lists found %", "coarse ms", "coarse %"]),
    );
    let query = Search::of(Preset::Paper, 10);
    let mut subjects = Vec::new();
    for kind in KINDS {
        let lists = nlist.map_or(String::new(), |nlist| format!("-lists{nlist}"));
        let coarse = if kind == CoarseKind::Irq { String::new() } else { format!("-{kind}") };
        subjects.push(lab.subject(&format!("{lists}{coarse}"), Preset::Paper, |o| {
            o.coarse = kind;
            o.nlist = nlist.or(o.nlist);
        })?);
    }
    for recall in RECALLS {
        let mut common = None;
        for subject in &subjects {
            let Point { nprobe: own, reached } = lab.point(subject, &query, recall)?;
            let target: Cell = if reached {
                (recall, 2).into()
            } else {
                format!("{recall:.2} out of reach").into()
            };
            // The flat search goes first: its nprobe is the one the others are given.
            let nprobe = *common.get_or_insert(own);
            let mut wanted = vec![("nprobe", nprobe), ("recall", own)];
            if own == nprobe {
                wanted = vec![("both", own)];
            }
            for (equal, nprobe) in wanted {
                let found = subject.trial().list_recall(nprobe)?;
                for threads in lab.threads.clone() {
                    let row = measure(lab, subject, &query, threads, nprobe, found)?;
                    table.row(cells(&target, equal, found, &row));
                }
            }
        }
    }
    Ok(table)
}

/// A row as other experiments record it, and how well it found its lists.
#[derive(serde::Serialize)]
struct Found<'a> {
    #[serde(flatten)]
    row: &'a BenchRow,
    lists_found: f64,
}

fn measure(
    lab: &mut Lab<'_>,
    subject: &Subject,
    query: &Search,
    threads: usize,
    nprobe: usize,
    lists_found: f64,
) -> anyhow::Result<BenchRow> {
    let row = lab.unrecorded(subject, query, threads, nprobe)?;
    lab.record("coarse", &subject.name, &Found { row: &row, lists_found })?;
    Ok(row)
}

/// The coarse step includes rotating the query and building its tables; its share is of the mean
/// latency.
fn cells(target: &Cell, equal: &str, found: f64, row: &BenchRow) -> Vec<Cell> {
    let names = vec![
        target.clone(),
        equal.into(),
        row.coarse.as_str().into(),
        row.threads.into(),
        Cell::percent(found),
        (row.route_ms, 4).into(),
        (100.0 * row.route_ms / row.mean_ms.max(1e-9), 1).into(),
    ];
    joined(names, cost(row))
}
