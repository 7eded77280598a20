//! Table 6: what a build takes and what it leaves (§5.7).

use super::exhibit::{Cell, Exhibit};
use super::lab::Lab;
use crate::cli::options::Preset;

pub(crate) fn run(lab: &mut Lab<'_>) -> anyhow::Result<Vec<Exhibit>> {
    let mut table = Exhibit::new(
        "Table 6: build time and index size",
        "3 stages: training, assignment, encoding; 587 GB on SSD for 1 billion vectors of 512 \
         dims, 7 times less than graph indexes",
        &[
            "preset",
            "n",
            "D",
            "seconds",
            "stages",
            "SSD MB",
            "SSD bytes/vector",
            "RAM MB",
            "RAM bytes/vector",
        ],
    );
    for preset in [Preset::Paper, Preset::Default] {
        let subject = lab.subject("", preset, |_| ())?;
        let info = &subject.info;
        let each = |bytes: u64| Cell::Number(bytes as f64 / info.n.max(1) as f64, 1);
        let stages: Vec<String> =
            subject.seconds.iter().map(|(stage, s)| format!("{stage} {s:.1}")).collect();
        table.row(vec![
            preset.to_string().into(),
            (info.n as f64, 0).into(),
            info.dim.into(),
            (subject.total_seconds, 1).into(),
            stages.join(", ").into(),
            (info.ssd_bytes as f64 / 1e6, 1).into(),
            each(info.ssd_bytes),
            (info.resident_bytes as f64 / 1e6, 1).into(),
            each(info.resident_bytes),
        ]);
        let name = subject.name.clone();
        lab.record(
            "table6",
            &name,
            &serde_json::json!({
                "n": info.n, "dim": info.dim, "seconds": subject.total_seconds,
                "ssd_bytes": info.ssd_bytes, "resident_bytes": info.resident_bytes,
            }),
        )?;
    }
    Ok(vec![table])
}
