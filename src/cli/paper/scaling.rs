//! Figures 1, 8 and 9: throughput as the base grows (§5.4), on prefixes of the base.

use std::path::Path;
use std::rc::Rc;

use rabitq_ssd::dataset::{Base, Dtype, VectorWriter};
use rabitq_ssd::evaluate::{Truth, ground_truth};
use rabitq_ssd::{Prefix, RecordKind};

use super::exhibit::{Exhibit, Line, columns, cost, joined};
use super::lab::{Data, Lab, Search};
use super::operating_points::target;
use crate::cli::options::Preset;

/// Fewer rows say nothing about scale.
const LEAST_ROWS: u64 = 1000;
const ROWS_PER_LIST: u64 = 4096;

pub(crate) fn run(lab: &mut Lab<'_>) -> anyhow::Result<Vec<Exhibit>> {
    let mut table = Exhibit::new(
        "Figures 1, 8 and 9: scale, prefix D/4, n/4096 lists, k = 10",
        "from 100 thousand to 10 billion vectors QPS falls by 4.2 at recall 0.90 and by 4.9 at 0.95",
        &columns(&["n", "lists", "RAM MB", "T", "target"]),
    );
    let all = lab.data.base.n();
    let mut sizes: Vec<u64> = [8, 4, 2, 1].map(|part| all / part).into();
    sizes.retain(|&n| n >= LEAST_ROWS.min(all));
    let mut lines: Vec<Line> = [0.9, 0.95]
        .map(|recall| Line { name: format!("recall {recall}"), points: Vec::new() })
        .into();
    for n in sizes {
        let data = if n == all { Rc::clone(&lab.data) } else { Rc::new(prefix(lab, n)?) };
        let dims = lab.prefix_dims(1);
        let raw = matches!(data.base.dtype(), Dtype::U8 | Dtype::I8);
        let subject = lab.subject_of(&data, "-scale", Preset::Paper, |o| {
            o.prefix = Prefix::Dims(dims);
            o.nlist = Some((n / ROWS_PER_LIST).max(1) as usize);
            o.record = if raw { RecordKind::U8 } else { RecordKind::Split };
        })?;
        let query = Search::of(Preset::Paper, 10);
        for (line, recall) in [0.9, 0.95].into_iter().enumerate() {
            let threads = lab.most_threads();
            let row = lab.measure_at("scaling", &subject, &query, threads, recall)?;
            lines[line].points.push((n as f64, row.qps));
            let names = vec![
                (n as f64, 0).into(),
                row.nlist.into(),
                (row.resident_bytes as f64 / 1e6, 1).into(),
                threads.into(),
                target(&row, recall),
            ];
            table.row(joined(names, cost(&row)));
        }
    }
    table.plot("vectors", "QPS", lines);
    Ok(vec![table])
}

/// The first n rows as data of their own, with their own ground truth.
fn prefix(lab: &Lab<'_>, n: u64) -> anyhow::Result<Data> {
    let whole = &lab.data;
    let extension = whole.base.paths().first().and_then(|p| p.extension()).unwrap_or_default();
    let path = lab.dir.join(format!("{}-first{n}", whole.name)).with_extension(extension);
    if Base::open(&[&path]).map_or(true, |base| base.n() != n) {
        copy_rows(&whole.base, n, &path)?;
    }
    let base = Base::open(&[&path])?;
    let k = 10.min(whole.truth.k());
    let threads = lab.most_threads();
    let exact = ground_truth(&base, &whole.queries, k, lab.metric, threads, &lab.reporter)?;
    lab.reporter.pause();
    let neighbours = exact.truth;
    let truth =
        Truth::new(neighbours.k, lab.metric, neighbours.ids.clone(), neighbours.distances.clone())?;
    let name = format!("{}-first{n}", whole.name);
    Ok(Data { name, base, queries: whole.queries.clone(), neighbours, truth })
}

fn copy_rows(base: &Base, n: u64, path: &Path) -> anyhow::Result<()> {
    const CHUNK: u64 = 4096;
    let mut writer = VectorWriter::create(path, base.dim(), base.dtype())?;
    let mut rows = Vec::new();
    let mut start = 0;
    while start < n {
        let count = CHUNK.min(n - start);
        rows.resize(count as usize * base.dim(), 0.0);
        base.read_f32(start, &mut rows)?;
        writer.write_f32(&rows)?;
        start += count;
    }
    writer.finish()?;
    Ok(())
}
