//! Table 1 and Figure 4: the five pipelines of §4.3 and §4.4, and `scheduled` in order of arrival.

use rabitq_ssd::Pipeline;
use rabitq_ssd::evaluate::BenchRow;

use super::exhibit::{Cell, Exhibit};
use super::lab::{Lab, Search};
use super::timelines;
use crate::cli::options::Preset;

const PIPELINES: [Pipeline; 6] = [
    Pipeline::Naive,
    Pipeline::Coalesced,
    Pipeline::Overlapped,
    Pipeline::Scheduled,
    Pipeline::Full,
    Pipeline::Fifo,
];
const RECALL: f64 = 0.9;

pub(crate) fn run(lab: &mut Lab<'_>) -> anyhow::Result<Vec<Exhibit>> {
    let subject = lab.subject("", Preset::Paper, |_| ())?;
    let mut exhibits = Vec::new();
    for k in lab.ks(&[10, 100]) {
        let query = Search::of(Preset::Paper, k);
        // The same lists for every pipeline, so that only the reads differ.
        let nprobe = lab.point(&subject, &query, RECALL)?.nprobe;
        let mut table = Exhibit::new(
            format!("Table 1, k = {k}: pipelines at nprobe {nprobe} (recall {RECALL} of full)"),
            "naive is slowest, coalesced reads fewer pages, overlapped is faster below saturation \
             and wastes reads, scheduled issues fewer reads than overlapped, full no more than \
             scheduled; in order of arrival about twice as many reads",
            &[
                "T",
                "design",
                "QPS x",
                "QPS",
                "recall",
                "issued",
                "drop",
                "waste",
                "re-rank/surv.",
                "io-wait %",
                "drain %",
                "in flight",
                "rounds",
            ],
        );
        for threads in lab.threads.clone() {
            let mut naive = None;
            for pipeline in PIPELINES {
                // In order of arrival, everything else as scheduled: without the drain's quantile.
                let mut query = query.clone().pipeline(pipeline);
                if pipeline == Pipeline::Fifo {
                    query = query.alpha(1.0);
                }
                let row = lab.measure("table1", &subject, &query, threads, nprobe)?;
                table.row(cells(&row, *naive.get_or_insert(row.qps), pipeline));
            }
        }
        table.timelines = timelines::figure4(lab, &subject, &query, nprobe)?;
        exhibits.push(table);
    }
    Ok(exhibits)
}

fn cells(row: &BenchRow, naive: f64, pipeline: Pipeline) -> Vec<Cell> {
    let blocking = matches!(pipeline, Pipeline::Naive | Pipeline::Coalesced);
    let only = |on: bool, cell: Cell| if on { cell } else { Cell::Nothing };
    // The paper's shares are of the wall of the list search: the scan and the drain.
    let lists_ms = (row.scan_ms + row.drain_ms).max(1e-9);
    vec![
        row.threads.into(),
        row.pipeline.as_str().into(),
        (row.qps / naive, 2).into(),
        (row.qps, 0).into(),
        (row.recall, 4).into(),
        (row.issued, 1).into(),
        only(row.dropped > 0.0, (row.dropped, 1).into()),
        only(!blocking, (row.wasted, 1).into()),
        format!("{:.0}/{:.0}", row.reranked, row.survivors).into(),
        only(blocking, (100.0 * row.wait_share * row.mean_ms / lists_ms, 0).into()),
        only(!blocking, (100.0 * row.drain_ms / lists_ms, 0).into()),
        (row.mean_inflight, 1).into(),
        row.rounds.into(),
    ]
}
