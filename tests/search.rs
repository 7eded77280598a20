//! What a search must give, whatever the metric, record and settings.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, unreachable_pub)]
mod support;

use rabitq_ssd::dataset::Dtype;
use rabitq_ssd::{
    BuildOptions, CoarseKind, Metric, Pipeline, Prefix, RecordKind, SearchOptions, Threshold,
};
use support::{Fixture, Rng, brute_force, clustered, distance, recall};

const METRICS: [Metric; 3] = [Metric::L2, Metric::Ip, Metric::Cosine];

fn exhaustive(epsilon: f32) -> SearchOptions {
    SearchOptions { nprobe: usize::MAX, alpha: 1.0, epsilon, ..SearchOptions::default() }
}

/// Rows of norms spread over 0.1 to 10.
fn spread(n: usize, dim: usize) -> Vec<Vec<f32>> {
    let mut rng = Rng(9);
    let mut rows = clustered(n, dim, 5);
    for row in &mut rows {
        let norm = row.iter().map(|v| v * v).sum::<f32>().sqrt();
        let scale = 10f32.powf(rng.unit() * 2.0 - 1.0) / norm;
        row.iter_mut().for_each(|v| *v *= scale);
    }
    rows
}

fn queries(rows: &[Vec<f32>], count: usize) -> Vec<Vec<f32>> {
    let mut rng = Rng(77);
    (0..count)
        .map(|i| rows[i * 7 % rows.len()].iter().map(|v| v + 0.2 * rng.bell()).collect())
        .collect()
}

#[test]
fn split_records_find_the_neighbours_at_full_probe_for_every_metric() {
    let f = Fixture::of(spread(11_000, 96), Dtype::F32);
    let qs = queries(&f.rows, 40);
    for metric in METRICS {
        let o = BuildOptions { metric, nlist: Some(20), overwrite: true, ..Default::default() };
        let r = recall(metric, &f.rows, &qs, &f.index(&o), &exhaustive(3.0));
        assert!(r >= 0.99, "{metric}: {r}");
    }
}

#[test]
fn raw_records_are_exact_at_full_probe_for_every_metric_and_prefix() {
    let f = Fixture::of(spread(10_500, 72), Dtype::F32);
    let qs = queries(&f.rows, 100);
    for metric in METRICS {
        for prefix in [Prefix::Full, Prefix::Dims(64)] {
            let o = BuildOptions {
                metric,
                prefix,
                nlist: Some(15),
                record: RecordKind::F32,
                overwrite: true,
                ..Default::default()
            };
            let index = f.index(&o);
            let r = recall(metric, &f.rows, &qs, &index, &exhaustive(4.0));
            assert!(r >= 0.999, "{metric} {prefix:?}: {r}");
        }
    }
}

#[test]
fn scores_are_the_metric_recomputed_and_sorted() {
    let f = Fixture::of(spread(1500, 70), Dtype::F32);
    let qs = queries(&f.rows, 20);
    for metric in METRICS {
        for record in [RecordKind::Split, RecordKind::F32] {
            let o = BuildOptions { metric, record, overwrite: true, ..Default::default() };
            let index = f.index(&o);
            for q in &qs {
                let found = index.search(q, &exhaustive(3.0)).unwrap();
                let signed: Vec<f32> = match metric {
                    Metric::L2 => found.scores.clone(),
                    _ => found.scores.iter().map(|s| -s).collect(),
                };
                assert!(signed.is_sorted(), "{metric}: {:?}", found.scores);
                for (id, s) in found.ids.iter().zip(&signed) {
                    let row = &f.rows[*id as usize];
                    let exact = distance(metric, row, q);
                    let scale = match metric {
                        Metric::Cosine => 1.0,
                        _ => {
                            distance(Metric::L2, row, &vec![0.0; row.len()])
                                + distance(Metric::L2, q, &vec![0.0; q.len()])
                        }
                    };
                    let tolerance = if record == RecordKind::F32 { 2e-6 } else { 5e-3 };
                    let off = (exact - f64::from(*s)).abs();
                    assert!(off <= tolerance * scale, "{metric} {record}: {off} of {scale}");
                }
            }
        }
    }
}

#[test]
fn eight_bit_rows_are_kept_as_they_are() {
    let rows: Vec<Vec<f32>> = clustered(1200, 48, 3)
        .into_iter()
        .map(|r| r.into_iter().map(|v| (v * 30.0 + 128.0).round().clamp(0.0, 255.0)).collect())
        .collect();
    let f = Fixture::of(rows, Dtype::U8);
    let o = BuildOptions { record: RecordKind::U8, nlist: Some(8), ..Default::default() };
    let index = f.index(&o);
    for q in f.rows.iter().step_by(100) {
        let found = index.search(q, &exhaustive(4.0)).unwrap();
        let truth = brute_force(Metric::L2, &f.rows, q, 10);
        let scores: Vec<f64> = found.scores.iter().map(|s| f64::from(*s)).collect();
        assert_eq!(scores, truth.iter().map(|t| t.1).collect::<Vec<_>>());
    }
}

#[test]
fn every_pipeline_and_threshold_finds_the_same_neighbours() {
    let f = Fixture::clustered(11_000, 128, 1);
    let index = f.index(&BuildOptions { nlist: Some(30), ..Default::default() });
    let qs = queries(&f.rows, 30);
    for threshold in [Threshold::Seeded, Threshold::Paper] {
        for pipeline in [
            Pipeline::Naive,
            Pipeline::Coalesced,
            Pipeline::Overlapped,
            Pipeline::Scheduled,
            Pipeline::Full,
            Pipeline::Fifo,
        ] {
            let o = SearchOptions { pipeline, threshold, ..exhaustive(3.0) };
            let r = recall(Metric::L2, &f.rows, &qs, &index, &o);
            assert!(r >= 0.99, "{pipeline} {threshold}: {r}");
        }
    }
}

#[test]
fn every_coarse_quantizer_returns_the_lists_asked_for() {
    let f = Fixture::clustered(6000, 64, 2);
    let qs = queries(&f.rows, 20);
    for coarse in [CoarseKind::Flat, CoarseKind::Irq, CoarseKind::Hnsw] {
        for metric in METRICS {
            let o = BuildOptions {
                coarse,
                metric,
                nlist: Some(300),
                overwrite: true,
                ..Default::default()
            };
            let index = f.index(&o);
            for nprobe in [1, 5, 11, 149, 300, 10_000] {
                let o = SearchOptions { k: 1, nprobe, ..Default::default() };
                for q in &qs {
                    let visited = index.search(q, &o).unwrap().stats.lists_probed;
                    assert_eq!(visited, nprobe.min(300) as u64, "{coarse} {metric}");
                }
            }
        }
    }
}

#[test]
fn probing_goes_on_until_k_rows_are_in_reach() {
    let f = Fixture::clustered(60, 100, 4);
    let index = f.index(&BuildOptions { nlist: Some(45), ..Default::default() });
    let o = SearchOptions { k: 11, nprobe: 1, ..exhaustive(4.0) };
    for q in f.rows.iter().take(10) {
        let found = index.search(q, &SearchOptions { nprobe: 1, ..o.clone() }).unwrap();
        assert_eq!(found.ids.len(), 11);
    }
    let all = index.search(&f.rows[0], &SearchOptions { k: 100, ..o }).unwrap();
    let mut ids = all.ids.clone();
    ids.sort_unstable();
    assert_eq!(ids, (0..60).collect::<Vec<u64>>(), "k beyond n returns each row once");
}

#[test]
fn equal_rows_come_back_by_id_with_and_without_ids_in_their_records() {
    // 1024 bytes a record leave a page no room for ids.
    for dim in [300, 1024] {
        let f = Fixture::of(vec![vec![7.0; dim]; 1000], Dtype::U8);
        let o = BuildOptions { record: RecordKind::U8, ..Default::default() };
        let index = f.index(&o);
        assert_eq!(index.info().ids_in_records, dim == 300);
        let found = index.search(&f.rows[0], &exhaustive(4.0)).unwrap();
        assert_eq!(found.ids, (0..10).collect::<Vec<u64>>());
        assert_eq!(found.scores, [0.0; 10]);
    }
}

#[test]
fn a_deterministic_search_repeats_itself_on_any_number_of_threads() {
    let f = Fixture::clustered(5000, 128, 8);
    let index = f.index(&BuildOptions { nlist: Some(40), ..Default::default() });
    let flat: Vec<f32> = queries(&f.rows, 50).concat();
    for threshold in [Threshold::Seeded, Threshold::Paper] {
        let o = SearchOptions { nprobe: 10, deterministic: true, threshold, ..Default::default() };
        let answer = |threads| -> Vec<(Vec<u64>, Vec<f32>)> {
            let found = index.search_batch(&flat, &o, threads).unwrap();
            found.into_iter().map(|r| (r.ids, r.scores)).collect()
        };
        let first = answer(1);
        for threads in [1, 2, 8, 1] {
            assert_eq!(answer(threads), first, "{threshold}, {threads} threads");
        }
    }
}

#[test]
fn zero_rows_under_cosine_score_zero_and_rank_last() {
    let mut rows = clustered(500, 32, 6);
    for i in (0..500).step_by(50) {
        rows[i] = vec![0.0; 32];
    }
    let f = Fixture::of(rows, Dtype::F32);
    let o = BuildOptions { metric: Metric::Cosine, record: RecordKind::F32, ..Default::default() };
    let index = f.index(&o);
    assert_eq!(index.info().zero_rows, 10);
    let o = SearchOptions { k: 500, ..exhaustive(4.0) };
    let found = index.search(&f.rows[1], &o).unwrap();
    assert_eq!(found.ids.len(), 500);
    assert_eq!(found.ids[490..], (0..500).step_by(50).collect::<Vec<u64>>());
    assert_eq!(found.scores[490..], [0.0; 10]);
    assert!(found.scores[489] < 0.0, "rows that point away still rank before zero rows");

    let zero = index.search(&[0.0; 32], &SearchOptions { k: 5, ..o }).unwrap();
    assert_eq!((zero.ids, zero.scores), (vec![0, 1, 2, 3, 4], vec![0.0; 5]));
}

#[test]
fn odd_dims_and_tiny_bases_are_exact() {
    for dim in [1, 2, 3, 7, 13, 65, 100, 127] {
        for n in [1, 2, 10, 100] {
            let f = Fixture::clustered(n, dim, (dim * 1000 + n) as u64);
            let o = BuildOptions { record: RecordKind::F32, ..Default::default() };
            let index = f.index(&o);
            let q = &f.rows[n / 2];
            let found = index.search(q, &exhaustive(4.0)).unwrap();
            let truth = brute_force(Metric::L2, &f.rows, q, 10);
            assert_eq!(found.ids, truth.iter().map(|t| t.0).collect::<Vec<_>>(), "{dim} {n}");
        }
    }
}

#[test]
fn records_of_several_pages_give_the_same_neighbours() {
    let f = Fixture::clustered(300, 1536, 11);
    let o = BuildOptions { record: RecordKind::F32, nlist: Some(3), ..Default::default() };
    let index = f.index(&o);
    assert_eq!(index.info().pages_per_record, 2);
    let qs = queries(&f.rows, 10);
    assert_eq!(recall(Metric::L2, &f.rows, &qs, &index, &exhaustive(4.0)), 1.0);
    let found = index.search(&qs[0], &exhaustive(4.0)).unwrap();
    assert_eq!(found.stats.pages, 2 * found.stats.issued);
    assert_eq!(found.stats.bytes, found.stats.pages * 4096);
}

#[test]
fn options_out_of_range_are_named() {
    let f = Fixture::clustered(50, 8, 1);
    let index = f.index(&BuildOptions::default());
    let ok = SearchOptions::default();
    for (o, name) in [
        (SearchOptions { k: 0, ..ok.clone() }, "--k"),
        (SearchOptions { nprobe: 0, ..ok.clone() }, "--nprobe"),
        (SearchOptions { alpha: 0.0, ..ok.clone() }, "--alpha"),
        (SearchOptions { alpha: 1.5, ..ok.clone() }, "--alpha"),
        (SearchOptions { epsilon: f32::NAN, ..ok.clone() }, "--epsilon"),
        (SearchOptions { inflight: Some(0), ..ok.clone() }, "--inflight"),
    ] {
        let error = index.search(&f.rows[0], &o).unwrap_err().to_string();
        assert!(error.starts_with(name), "{error}");
    }
    assert!(index.search(&[0.0; 9], &ok).unwrap_err().to_string().contains("9 dims"));
    let nan = index.search(&[f32::NAN; 8], &ok).unwrap_err().to_string();
    assert!(nan.contains("NaN"), "{nan}");
}

#[test]
fn a_small_index_searched_whole_is_exact_with_default_bounds() {
    let f = Fixture::clustered(5000, 40, 12);
    let o = BuildOptions { record: RecordKind::F32, nlist: Some(12), ..Default::default() };
    let index = f.index(&o);
    for q in queries(&f.rows, 20) {
        let o = SearchOptions { k: 50, nprobe: 12, ..Default::default() };
        let found = index.search(&q, &o).unwrap();
        let truth = brute_force(Metric::L2, &f.rows, &q, 50);
        assert_eq!(found.ids, truth.iter().map(|t| t.0).collect::<Vec<_>>());
        assert_eq!(found.stats.reranked, 5000);
    }
}

#[test]
fn inner_products_do_not_depend_on_the_length_of_the_query() {
    let f = Fixture::of(spread(12_000, 64), Dtype::F32);
    let o = BuildOptions { metric: Metric::Ip, nlist: Some(24), ..Default::default() };
    let index = f.index(&o);
    let o = SearchOptions { nprobe: 12, deterministic: true, ..Default::default() };
    for q in queries(&f.rows, 20) {
        let found = index.search(&q, &o).unwrap();
        for length in [1.0 / 256.0, 256.0] {
            let scaled: Vec<f32> = q.iter().map(|v| v * length).collect();
            let other = index.search(&scaled, &o).unwrap();
            assert_eq!(other.ids, found.ids);
            let back: Vec<f32> = other.scores.iter().map(|s| s / length).collect();
            assert_eq!(back, found.scores);
        }
    }
}
