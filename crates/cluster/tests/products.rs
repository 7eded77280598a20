//! Products, assignment and the flat coarse quantizer against plain loops.

#![allow(clippy::unwrap_used, missing_docs)]

use cluster::{AssignMethod, Assigner, dots, select_nearest};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

fn random(values: usize, seed: u64) -> Vec<f32> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..values).map(|_| rng.random::<f32>() - 0.5).collect()
}

fn pool() -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap()
}

fn product(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

/// The nearest centroid by the kernel that defines distances, the lower list on ties.
fn naive_nearest(row: &[f32], centroids: &[f32], dim: usize) -> (u32, f32) {
    let kernels = simd::Kernels::best();
    let mut best = (0, f32::INFINITY);
    for (list, c) in (0..).zip(centroids.chunks(dim)) {
        let d = kernels.l2(row, c);
        if d < best.1 {
            best = (list, d);
        }
    }
    best
}

fn check_flat(rows: &[f32], centroids: &[f32], dim: usize) {
    let assigner = Assigner::new(centroids, dim, AssignMethod::Flat, &pool()).unwrap();
    assert!(assigner.is_exact());
    let n = rows.len() / dim;
    let (mut list, mut dist2) = (vec![9; n], vec![9.0; n]);
    assigner.assign(rows, &mut list, &mut dist2);
    for (i, row) in rows.chunks(dim).enumerate() {
        assert_eq!((list[i], dist2[i]), naive_nearest(row, centroids, dim), "row {i}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn products_stay_within_their_bound_of_f64(
        na in 0usize..40, nb in 0usize..70, dim in 1usize..200, seed: u64,
    ) {
        let (a, b) = (random(na * dim, seed), random(nb * dim, !seed));
        let mut out = vec![f32::NAN; na * nb];
        dots(&a, &b, dim, &mut out);
        for (i, x) in a.chunks(dim).enumerate() {
            for (j, y) in b.chunks(dim).enumerate() {
                let bound = dim as f64 * 2f64.powi(-24) * 1.01
                    * (product(x, x) * product(y, y)).sqrt();
                let error = (f64::from(out[i * nb + j]) - product(x, y)).abs();
                prop_assert!(error <= bound, "{error} of {bound}");
            }
        }
    }

    #[test]
    fn the_least_scores_are_selected_in_order(
        scores in proptest::collection::vec(0u8..20, 0..80), nprobe in 0usize..90,
    ) {
        let scores: Vec<f32> = scores.into_iter().map(f32::from).collect();
        let mut found = vec![(0.0, 7)];
        select_nearest(&scores, nprobe, &mut found);
        let mut all: Vec<(f32, u32)> = scores.iter().copied().zip(0..).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.truncate(nprobe);
        prop_assert_eq!(found, all);
    }
}

#[test]
fn products_larger_than_a_cache_block_stay_within_their_bound() {
    let (na, nb, dim) = (70, 300, 1600);
    let (a, b) = (random(na * dim, 1), random(nb * dim, 2));
    let mut out = vec![f32::NAN; na * nb];
    dots(&a, &b, dim, &mut out);
    for (i, x) in a.chunks(dim).enumerate() {
        for (j, y) in b.chunks(dim).enumerate() {
            let error = (f64::from(out[i * nb + j]) - product(x, y)).abs();
            assert!(error <= 1e-4 * (product(x, x) * product(y, y)).sqrt());
        }
    }
}

#[test]
fn flat_assignment_equals_a_plain_loop() {
    for (n, nlist, dim) in [(600, 37, 20), (300, 2500, 9), (10, 1, 3), (1, 50, 65)] {
        check_flat(&random(n * dim, 3), &random(nlist * dim, 4), dim);
    }
}

#[test]
fn flat_assignment_equals_a_plain_loop_far_from_the_origin_and_among_duplicates() {
    let far = |v: Vec<f32>| v.into_iter().map(|x| x + 1000.0).collect::<Vec<_>>();
    check_flat(&far(random(400 * 12, 5)), &far(random(90 * 12, 6)), 12);
    check_flat(&random(400 * 12, 5), &far(random(90 * 12, 6)), 12);
    check_flat(&random(300 * 4, 7), &random(20, 8).repeat(300), 4);
    let integers: Vec<f32> = random(3000, 9).iter().map(|v| (v * 8.0).round()).collect();
    check_flat(&integers, &integers[..600], 3);
    check_flat(&[1e30; 8], &[1e30, 0.0, 1e30, 1e30, 0.0, 0.0, -1e30, 1e30], 2);
}

#[test]
fn rows_with_non_finite_values_get_list_zero_at_infinity() {
    let centroids = random(30, 10);
    let rows = [f32::NAN, 0.0, 0.1, 0.2, f32::INFINITY, 0.0];
    for method in [AssignMethod::Flat, AssignMethod::Hnsw] {
        let assigner = Assigner::new(&centroids, 2, method, &pool()).unwrap();
        let (mut list, mut dist2) = ([9; 3], [0.0; 3]);
        assigner.assign(&rows, &mut list, &mut dist2);
        assert_eq!((list[0], dist2[0]), (0, f32::INFINITY));
        assert_eq!((list[1], dist2[1]), naive_nearest(&rows[2..4], &centroids, 2));
        assert_eq!((list[2], dist2[2]), (0, f32::INFINITY));
    }
}

#[test]
fn the_graph_assigns_nearly_all_rows_as_flat_does() {
    let (rows, centroids) = (random(1000 * 16, 11), random(3000 * 16, 12));
    let assigner = Assigner::new(&centroids, 16, AssignMethod::Hnsw, &pool()).unwrap();
    assert!(!assigner.is_exact() && assigner.resident_bytes() > 0);
    let (mut list, mut dist2) = (vec![0; 1000], vec![0.0; 1000]);
    assigner.assign(&rows, &mut list, &mut dist2);
    let same = rows.chunks(16).zip(&list).zip(&dist2);
    let same =
        same.filter(|((row, l), d)| (**l, **d) == naive_nearest(row, &centroids, 16)).count();
    assert!(same >= 980, "{same} of 1000 rows agree");
}

#[test]
fn no_centroids_and_ragged_centroids_are_errors() {
    let new = |c: &[f32], dim| Assigner::new(c, dim, AssignMethod::Auto, &pool()).err().unwrap();
    assert_eq!(new(&[], 4).to_string(), "nlist is 0, expected at least 1");
    assert!(new(&[0.0; 9], 4).to_string().contains("9 values, which is not a multiple of dim 4"));
}
