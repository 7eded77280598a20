#![allow(clippy::unwrap_used)]

use std::error::Error;

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Metric, Neighbours, RowSource, exact_neighbours};
use crate::ClusterError;

const METRICS: [Metric; 3] = [Metric::L2, Metric::Ip, Metric::Cosine];

struct Rows<'a> {
    values: &'a [f32],
    dim: usize,
    fails_from: u64,
}

impl RowSource for Rows<'_> {
    fn n(&self) -> u64 {
        (self.values.len() / self.dim) as u64
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn read_f32(&self, start: u64, out: &mut [f32]) -> Result<(), Box<dyn Error + Send + Sync>> {
        let at = start as usize * self.dim;
        out.copy_from_slice(&self.values[at..at + out.len()]);
        let end = start + (out.len() / self.dim) as u64;
        if end > self.fails_from { Err("the disk is gone".into()) } else { Ok(()) }
    }
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

fn find(base: &[f32], dim: usize, queries: &[f32], k: usize, metric: Metric) -> Neighbours {
    let base = Rows { values: base, dim, fails_from: u64::MAX };
    exact_neighbours(&base, queries, k, metric, None, &pool(2), &|_| {}).unwrap()
}

fn product(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

/// Score of a pair in plain f64, larger is better, zero rows last but for zero queries.
fn naive_score(q: &[f32], x: &[f32], metric: Metric) -> (bool, f64) {
    match metric {
        Metric::L2 => (
            true,
            -q.iter().zip(x).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>(),
        ),
        Metric::Ip => (true, product(q, x)),
        Metric::Cosine => {
            let norms = product(q, q).sqrt() * product(x, x).sqrt();
            let last = product(x, x) == 0.0 && product(q, q) > 0.0;
            (!last, if norms > 0.0 { product(q, x) / norms } else { 0.0 })
        }
    }
}

/// Compares with a brute force in f64. Rows may differ only where the two sums of a pair, added in
/// different orders, cannot be told apart.
fn check(base: &[f32], dim: usize, queries: &[f32], k: usize, metric: Metric) {
    let found = find(base, dim, queries, k, metric);
    let n = base.len() / dim;
    assert_eq!(found.k, k.min(n));
    for (i, q) in queries.chunks(dim).enumerate() {
        let scores: Vec<(bool, f64)> =
            base.chunks(dim).map(|x| naive_score(q, x, metric)).collect();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| {
            let ((za, sa), (zb, sb)) = (scores[a], scores[b]);
            zb.cmp(&za).then(sb.partial_cmp(&sa).unwrap()).then(a.cmp(&b))
        });
        let ids = &found.ids[i * found.k..(i + 1) * found.k];
        let mut distinct = ids.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), ids.len(), "{metric:?}: a row is returned twice");
        for (rank, (&id, &expected)) in ids.iter().zip(&order).enumerate() {
            let ((zero, score), (zero_expected, wanted)) = (scores[id as usize], scores[expected]);
            let close = (score - wanted).abs() <= 1e-13 * wanted.abs().max(f64::MIN_POSITIVE);
            let same_values = base.chunks(dim).nth(id as usize) == base.chunks(dim).nth(expected);
            assert!(
                id as usize == expected || (zero == zero_expected && close && !same_values),
                "{metric:?}, query {i}, rank {rank}: row {id} ({score}), expected {expected} ({wanted})"
            );
            let reported = f64::from(found.scores[i * found.k + rank]);
            let sign = if metric == Metric::L2 { -1.0 } else { 1.0 };
            let overflow = score.abs() > f64::from(f32::MAX)
                && reported == sign * f64::INFINITY * score.signum();
            assert!(overflow || (reported - sign * score).abs() <= 1e-6 * score.abs() + 1e-30);
        }
    }
}

fn random(values: usize, seed: u64) -> Vec<f32> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..values).map(|_| rng.random::<f32>() - 0.5).collect()
}

#[test]
fn random_rows_equal_brute_force() {
    for (n, dim, queries, k) in
        [(3000, 24, 20, 10), (1025, 7, 3, 100), (50, 130, 1, 1), (9, 1, 4, 9)]
    {
        for metric in METRICS {
            check(&random(n * dim, 1), dim, &random(queries * dim, 2), k, metric);
        }
    }
}

#[test]
fn a_large_offset_equals_brute_force() {
    let shift = |v: Vec<f32>| v.into_iter().map(|x| x + 1000.0).collect::<Vec<_>>();
    for metric in METRICS {
        check(&shift(random(2500 * 16, 3)), 16, &shift(random(10 * 16, 4)), 10, metric);
        check(&shift(random(2500 * 16, 3)), 16, &random(10 * 16, 4), 10, metric);
    }
}

#[test]
fn near_ties_equal_brute_force() {
    // Rows that differ from one another in the last bits only, around the query's distance.
    let mut base = Vec::new();
    for i in 0..2000u32 {
        let mut row = [0.7f32; 12];
        row[i as usize % 12] = f32::from_bits(0.7f32.to_bits() + i * 7919 % 97);
        base.extend(row);
    }
    for metric in METRICS {
        check(&base, 12, &[[0.1f32; 12], [0.7; 12], [-3.0; 12]].concat(), 25, metric);
    }
}

#[test]
fn byte_valued_rows_equal_brute_force_with_ties_to_the_lower_row() {
    let bytes =
        |n, seed| random(n, seed).iter().map(|v| ((v + 0.5) * 256.0).floor()).collect::<Vec<_>>();
    for metric in METRICS {
        check(&bytes(4000 * 8, 5), 8, &bytes(10 * 8, 6), 50, metric);
        let coarse: Vec<f32> = bytes(3000 * 3, 7).iter().map(|v| (v / 64.0).floor()).collect();
        check(&coarse, 3, &coarse[..30], 40, metric);
    }
}

#[test]
fn duplicates_come_in_row_order() {
    let row = random(20, 8);
    let base = row.repeat(2100);
    for metric in METRICS {
        let found = find(&base, 20, &random(40, 9), 5, metric);
        assert_eq!(found.ids, [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
    }
}

#[test]
fn zero_rows_and_zero_queries_equal_brute_force() {
    let mut base = random(1500 * 6, 10);
    for row in [0, 3, 700, 1499] {
        base[row * 6..(row + 1) * 6].fill(0.0);
    }
    let mut queries = random(3 * 6, 11);
    queries[6..12].fill(0.0);
    for metric in METRICS {
        check(&base, 6, &queries, 20, metric);
        check(&base, 6, &queries, 1500, metric);
        check(&vec![0.0; 60], 6, &queries, 3, metric);
    }
    let found = find(&base, 6, &queries[..6], 1500, Metric::Cosine);
    assert_eq!(found.ids[1496..], [0, 3, 700, 1499]);
    assert_eq!(found.scores[1496..], [0.0; 4]);
    let found = find(&base, 6, &queries[6..12], 702, Metric::Cosine);
    assert!(found.ids.iter().copied().eq(0..702), "zero rows 0, 3 and 700 among them");
    assert_eq!(found.scores, [0.0; 702]);
}

#[test]
fn extreme_magnitudes_equal_brute_force() {
    for scale in [1e-30, 1e-18, 1e18] {
        let scaled = |v: Vec<f32>| v.into_iter().map(|x| x * scale).collect::<Vec<_>>();
        check(&scaled(random(1200 * 5, 12)), 5, &scaled(random(4 * 5, 13)), 6, Metric::Cosine);
        check(&scaled(random(1200 * 5, 12)), 5, &random(4 * 5, 13), 6, Metric::Ip);
    }
    // Products of opposite signs that overflow f32 while their sum would not.
    let large = |v: Vec<f32>| v.into_iter().map(|x| x * 1e20).collect::<Vec<_>>();
    for metric in METRICS {
        check(&large(random(1200 * 5, 12)), 5, &large(random(4 * 5, 13)), 6, metric);
    }
    let mut base = random(1200 * 5, 14);
    base[5..10].fill(1e30);
    for metric in METRICS {
        check(&base, 5, &random(4 * 5, 13), 6, metric);
    }
}

#[test]
fn the_result_does_not_depend_on_the_threads() {
    let (base, queries) = (random(5000 * 10, 15), random(37 * 10, 16));
    let base = Rows { values: &base, dim: 10, fails_from: u64::MAX };
    let run = |threads| {
        exact_neighbours(&base, &queries, 7, Metric::L2, None, &pool(threads), &|_| {}).unwrap()
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn skipped_and_non_finite_rows_are_not_returned() {
    let mut base = random(200 * 4, 17);
    base[4 * 4] = f32::NAN;
    base[5 * 4] = f32::INFINITY;
    let source = Rows { values: &base, dim: 4, fails_from: u64::MAX };
    for metric in METRICS {
        let skip = |row: u64| row.is_multiple_of(2);
        let found =
            exact_neighbours(&source, &random(8, 18), 150, metric, Some(&skip), &pool(2), &|_| {});
        let found = found.unwrap();
        // 100 odd rows, of which row 5 is infinite.
        assert_eq!((found.k, found.ids.len(), found.scores.len()), (99, 198, 198));
        assert!(found.ids.iter().all(|id| id % 2 == 1 && *id != 5));
    }
}

#[test]
fn bases_of_several_blocks_are_read_to_the_end() {
    // More than one block of 16 MiB, with the answers in the last rows.
    let dim = 1024;
    let mut base = vec![1.0f32; 9000 * dim];
    for row in 8990..9000 {
        base[row * dim] = 0.0;
    }
    let last = std::sync::Mutex::new(0.0);
    let source = Rows { values: &base, dim, fails_from: u64::MAX };
    let progress = |f: f64| *last.lock().unwrap() = f;
    let found =
        exact_neighbours(&source, &vec![0.0; dim], 10, Metric::L2, None, &pool(2), &progress)
            .unwrap();
    assert!(found.ids.iter().copied().eq(8990..9000));
    assert_eq!(*last.lock().unwrap(), 1.0);
}

#[test]
fn errors_say_what_is_wrong() {
    let base = random(9000, 19);
    let failing = Rows { values: &base, dim: 3, fails_from: 100 };
    let run = |source: &Rows<'_>, queries: &[f32], k| {
        exact_neighbours(source, queries, k, Metric::L2, None, &pool(1), &|_| {}).unwrap_err()
    };
    let error = run(&failing, &[0.0; 3], 5).to_string();
    assert!(error.contains("rows 0..3000") && error.contains("disk is gone"), "{error}");
    let good = Rows { fails_from: u64::MAX, ..failing };
    assert!(matches!(run(&good, &[0.0; 4], 5), ClusterError::Shape { len: 4, dim: 3, .. }));
    assert!(matches!(run(&good, &[0.0; 3], 0), ClusterError::Zero { what: "k" }));
    let queries = [0.0, 0.0, 0.0, 0.0, f32::NAN, 0.0];
    let error = run(&good, &queries, 5);
    assert!(matches!(error, ClusterError::NonFiniteQuery { row: 1, column: 1 }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn small_integers_equal_brute_force(
        dim in 1usize..6,
        values in proptest::collection::vec(-3i8..4, 6..400),
        k in 1usize..12,
        offset in prop_oneof![Just(0i32), Just(1000), Just(100_000)],
    ) {
        let values: Vec<f32> = values.iter().map(|&v| (i32::from(v) + offset) as f32).collect();
        let base = &values[..values.len() / dim * dim];
        for metric in METRICS {
            check(base, dim, &base[..dim], k, metric);
        }
    }
}
