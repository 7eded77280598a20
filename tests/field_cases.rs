//! Shapes and settings that other systems of this kind got wrong. docs/reliability.md
//! has the table of all of them; here are those that no other scenario covers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, unreachable_pub)]
mod support;

use rabitq_ssd::dataset::Dtype;
use rabitq_ssd::{BuildOptions, Metric, RecordKind, SearchOptions};
use support::{Fixture, Rng, brute_force, clustered, distance, recall};

fn exhaustive() -> SearchOptions {
    SearchOptions { nprobe: usize::MAX, alpha: 1.0, epsilon: 4.0, ..Default::default() }
}

/// Fewer dims than any kernel takes at once, with more rows than a list holds.
#[test]
fn ten_thousand_rows_of_1_to_8_dims_are_searched_exactly() {
    for dim in 1..=8 {
        let f = Fixture::clustered(10_000, dim, 40 + dim as u64);
        let index = f.index(&BuildOptions { record: RecordKind::F32, ..Default::default() });
        for q in f.rows.iter().step_by(2500) {
            let found = index.search(q, &exhaustive()).unwrap();
            let truth = brute_force(Metric::L2, &f.rows, q, 10);
            for (rank, (score, (_, exact))) in found.scores.iter().zip(&truth).enumerate() {
                let off = (f64::from(*score) - exact).abs();
                assert!(off <= 1e-5 * (1.0 + exact), "dim {dim} rank {rank}: {score} {exact}");
            }
        }
    }
}

/// A zero row has no direction: it must disturb no row that has one.
#[test]
fn zero_rows_under_cosine_leave_every_other_result_as_it_was() {
    let mut rows = clustered(1000, 32, 41);
    rows.iter_mut().step_by(100).for_each(|row| row.fill(0.0));
    let f = Fixture::of(rows, Dtype::F32);
    let o = BuildOptions { metric: Metric::Cosine, record: RecordKind::F32, ..Default::default() };
    let index = f.index(&o);
    for q in f.rows.iter().skip(1).step_by(300) {
        let found = index.search(q, &SearchOptions { k: 990, ..exhaustive() }).unwrap();
        assert!(found.ids.iter().all(|id| id % 100 != 0));
        let others = (0..1000).filter(|row| row % 100 != 0);
        let mut exact: Vec<f64> =
            others.map(|row| -distance(Metric::Cosine, &f.rows[row], q)).collect();
        exact.sort_by(|a, b| b.total_cmp(a));
        for (score, exact) in found.scores.iter().zip(exact) {
            assert!((f64::from(*score) - exact).abs() < 1e-5, "{score} {exact}");
        }
    }
}

/// Squares of such values are nothing in f32.
#[test]
fn short_rows_and_short_queries_under_cosine_compare_as_long_ones() {
    let mut rows = clustered(1000, 32, 44);
    for (i, row) in rows.iter_mut().enumerate() {
        let length = [1.0, 1e-21, 1e-30][i % 3];
        row.iter_mut().for_each(|v| *v *= length);
    }
    let f = Fixture::of(rows, Dtype::F32);
    for record in [RecordKind::F32, RecordKind::Split] {
        let o =
            BuildOptions { metric: Metric::Cosine, record, overwrite: true, ..Default::default() };
        let index = f.index(&o);
        assert_eq!(index.info().zero_rows, 0);
        for (row, q) in f.rows.iter().enumerate().step_by(70) {
            for shorter in [1.0, 1e-5] {
                let q: Vec<f32> = q.iter().map(|v| v * shorter).collect();
                let found = index.search(&q, &SearchOptions { k: 1, ..exhaustive() }).unwrap();
                assert_eq!(found.ids, [row as u64], "{record} {shorter}");
                assert!((found.scores[0] - 1.0).abs() < 1e-3, "{}", found.scores[0]);
            }
        }
    }
}

/// More bits must never make it worse, whatever the lengths of the rows under inner product.
#[test]
fn recall_under_inner_product_rises_with_each_bit_from_2_to_9() {
    let mut rng = Rng(42);
    let mut rows = clustered(2500, 64, 43);
    for row in &mut rows {
        let length = 10f32.powf(rng.unit() * 2.0 - 1.0);
        row.iter_mut().for_each(|v| *v *= length);
    }
    let f = Fixture::of(rows, Dtype::F32);
    let queries: Vec<Vec<f32>> = (0..40).map(|_| rng.row(64)).collect();
    let recalls: Vec<f64> = (2..=9)
        .map(|bits| {
            let metric = Metric::Ip;
            let o = BuildOptions {
                bits,
                metric,
                nlist: Some(8),
                overwrite: true,
                ..Default::default()
            };
            recall(metric, &f.rows, &queries, &f.index(&o), &exhaustive())
        })
        .collect();
    // Two results of 400 that swap at the border of the tenth are no regression.
    assert!(recalls.windows(2).all(|pair| pair[1] >= pair[0] - 0.005), "{recalls:?}");
    assert!(recalls[7] >= 0.99 && recalls[7] > recalls[0], "{recalls:?}");
}

/// A row within the bound must be read, whatever the seed, the heap and the pages make of it.
#[test]
fn nothing_within_the_bound_is_pruned_under_any_metric() {
    let rows = clustered(12_000, 48, 44);
    let f = Fixture::of(rows, Dtype::F32);
    for metric in [Metric::L2, Metric::Ip, Metric::Cosine] {
        let record = RecordKind::F32;
        let nlist = Some(12);
        let o = BuildOptions { metric, record, nlist, overwrite: true, ..Default::default() };
        let index = f.index(&o);
        for q in f.rows.iter().step_by(1500) {
            let truth = brute_force(metric, &f.rows, q, 10);
            let found = index.search(q, &exhaustive()).unwrap();
            assert!(found.stats.reranked < 12_000, "{metric}: nothing was pruned at all");
            let worst = truth[9].1 + 1e-5 * (1.0 + truth[9].1.abs());
            let found: Vec<f64> =
                found.ids.iter().map(|id| distance(metric, &f.rows[*id as usize], q)).collect();
            assert!(found.iter().all(|d| *d <= worst), "{metric}: {found:?} beyond {worst}");
        }
    }
}
