//! Table 5: what records hold (§5.5).

use rabitq_ssd::RecordKind;

use super::exhibit::{Exhibit, columns, cost, joined};
use super::lab::{Lab, Search};
use super::operating_points::target;
use crate::cli::options::Preset;

/// Name in the paper, record kind, bits of split records, bits per dimension on disk.
const RECORDS: [(&str, RecordKind, u32, usize); 5] = [
    ("B = 9", RecordKind::Split, 9, 8),
    ("B = 5", RecordKind::Split, 5, 4),
    ("fp32", RecordKind::F32, 9, 32),
    ("SQ8", RecordKind::Sq8, 9, 8),
    ("SQ4", RecordKind::Sq4, 9, 4),
];

pub(crate) fn run(lab: &mut Lab<'_>) -> anyhow::Result<Vec<Exhibit>> {
    let mut table = Exhibit::new(
        "Table 5 and Figure 13: records on disk, k = 10",
        "B = 5 reads about as many pages as B = 9, SQ8 as well; fp32 more, SQ4 clearly more, and the \
         gap between B = 5 and SQ4 grows with recall",
        &columns(&["variant", "bits/dim", "records/page", "T", "target"]),
    );
    for (name, record, bits, on_disk) in RECORDS {
        let suffix = match (record, bits) {
            (RecordKind::Split, 9) => String::new(),
            (RecordKind::Split, bits) => format!("-b{bits}"),
            (record, _) => format!("-{record}"),
        };
        let subject = lab.subject(&suffix, Preset::Paper, |o| {
            (o.record, o.bits) = (record, bits);
        })?;
        let query = Search::of(Preset::Paper, 10);
        for recall in [0.9, 0.95] {
            for threads in lab.threads.clone() {
                let row = lab.measure_at("table5", &subject, &query, threads, recall)?;
                let names = vec![
                    name.into(),
                    on_disk.into(),
                    subject.info.records_per_page.into(),
                    threads.into(),
                    target(&row, recall),
                ];
                table.row(joined(names, cost(&row)));
            }
        }
    }
    Ok(vec![table])
}
