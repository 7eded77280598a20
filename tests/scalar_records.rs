//! Scalar records: what they find, what their scores are worth, and the file of their ranges.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, unreachable_pub)]
mod support;

use rabitq_ssd::dataset::Dtype;
use rabitq_ssd::{
    BuildOptions, BuildPlan, Index, Metric, OpenOptions, RecordKind, SearchOptions, Silent, verify,
};
use support::{Fixture, Rng, clustered, distance, recall};

const KINDS: [RecordKind; 2] = [RecordKind::Sq8, RecordKind::Sq4];
const METRICS: [Metric; 3] = [Metric::L2, Metric::Ip, Metric::Cosine];
const SCALES: &str = "scales.bin";

fn exhaustive() -> SearchOptions {
    SearchOptions { nprobe: usize::MAX, alpha: 1.0, epsilon: 3.0, ..SearchOptions::default() }
}

fn queries(rows: &[Vec<f32>], count: usize) -> Vec<Vec<f32>> {
    let mut rng = Rng(77);
    (0..count)
        .map(|i| rows[i * 7 % rows.len()].iter().map(|v| v + 0.2 * rng.bell()).collect())
        .collect()
}

#[test]
fn eight_bits_find_the_neighbours_at_full_probe_and_four_bits_most_of_them() {
    // More rows than a search reads through without pruning.
    let f = Fixture::clustered(11_000, 96, 5);
    let qs = queries(&f.rows, 100);
    for metric in METRICS {
        let found = KINDS.map(|record| {
            let o = BuildOptions {
                metric,
                record,
                nlist: Some(20),
                overwrite: true,
                ..Default::default()
            };
            recall(metric, &f.rows, &qs, &f.index(&o), &exhaustive())
        });
        assert!(found[0] >= 0.97, "{metric}: {found:?}");
        assert!(found[1] >= 0.8 && found[1] < found[0], "{metric}: {found:?}");
    }
}

#[test]
fn scores_are_the_metric_recomputed_within_the_error_of_the_rounding() {
    let f = Fixture::clustered(1500, 70, 6);
    let qs = queries(&f.rows, 20);
    for (record, relative) in [(RecordKind::Sq8, 2e-3), (RecordKind::Sq4, 5e-2)] {
        for metric in METRICS {
            let o = BuildOptions { metric, record, overwrite: true, ..Default::default() };
            let index = f.index(&o);
            for q in &qs {
                let found = index.search(q, &exhaustive()).unwrap();
                let origin = vec![0.0; q.len()];
                for (id, score) in found.ids.iter().zip(&found.scores) {
                    let row = &f.rows[*id as usize];
                    let sign = if metric == Metric::L2 { 1.0 } else { -1.0 };
                    let off = (distance(metric, row, q) - sign * f64::from(*score)).abs();
                    let scale = match metric {
                        Metric::Cosine => 1.0,
                        _ => distance(Metric::L2, row, &origin) + distance(Metric::L2, q, &origin),
                    };
                    assert!(off <= relative * scale, "{metric} {record}: {off} of {scale}");
                }
            }
        }
    }
}

#[test]
fn one_row_equal_rows_and_constant_dims_are_found_at_their_distance() {
    let mut constant = clustered(300, 20, 8);
    constant.iter_mut().for_each(|row| row[3..9].fill(2.5));
    let one = clustered(1, 20, 9);
    for rows in [one.clone(), vec![one[0].clone(); 200], constant] {
        let f = Fixture::of(rows, Dtype::F32);
        for record in KINDS {
            for metric in METRICS {
                let o = BuildOptions { metric, record, overwrite: true, ..Default::default() };
                let index = f.index(&o);
                let found = index.search(&f.rows[0], &SearchOptions { k: 1, ..exhaustive() });
                let found = found.unwrap();
                assert_eq!(found.ids, [0], "{metric} {record}");
                let expected = distance(metric, &f.rows[0], &f.rows[0]).abs();
                let off = (expected - f64::from(found.scores[0])).abs();
                let norm2 = distance(Metric::L2, &f.rows[0], &[0.0; 20]);
                assert!(off <= 0.1 * norm2.max(1.0), "{metric} {record}: {off}");
            }
        }
    }
}

#[test]
fn the_ranges_are_resident_to_the_byte_and_the_same_on_any_number_of_threads() {
    let f = Fixture::clustered(3000, 100, 3);
    for record in KINDS {
        let read = [1, 2, 4].map(|threads| {
            let o = BuildOptions {
                record,
                threads,
                nlist: Some(16),
                overwrite: true,
                ..Default::default()
            };
            let planned = BuildPlan::new(&f.base(), &o).unwrap().resident_bytes;
            let info = f.index(&o).info();
            assert_eq!((info.resident_bytes, info.resident["scales"]), (planned, 8 * 128));
            ["scales.bin", "records.bin", "manifest.json"]
                .map(|name| std::fs::read(f.path("index").join(name)).unwrap())
        });
        assert!(read[0] == read[1] && read[0] == read[2], "{record}");
    }
    let o = BuildOptions { overwrite: true, ..Default::default() };
    f.index(&o);
    assert!(!f.path("index").join(SCALES).exists());
}

#[test]
fn damaged_ranges_are_refused_by_name() {
    let f = Fixture::clustered(500, 64, 4);
    f.index(&BuildOptions { record: RecordKind::Sq8, ..Default::default() });
    let path = f.path("index").join(SCALES);
    let whole = std::fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    flipped[300] ^= 1;
    for bytes in [&flipped[..], &whole[..100], &[]] {
        std::fs::write(&path, bytes).unwrap();
        let error = Index::open(&f.path("index"), &OpenOptions::default()).unwrap_err();
        assert!(error.to_string().contains(SCALES), "{error}");
        let report = verify(&f.path("index"), &Silent).unwrap();
        let bad: Vec<_> = report.files.iter().filter(|f| !f.ok).map(|f| f.name.as_str()).collect();
        assert_eq!(bad, [SCALES]);
    }
    std::fs::remove_file(&path).unwrap();
    let error = Index::open(&f.path("index"), &OpenOptions::default()).unwrap_err();
    assert!(error.to_string().contains(SCALES), "{error}");
}
