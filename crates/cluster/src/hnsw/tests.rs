#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::GraphMetric::{Ip, L2};
use super::{BASE_LINKS, Hnsw, HnswScratch};

const DIM: usize = 16;

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

fn random_rows(rows: usize, seed: u64) -> Vec<f32> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..rows * DIM).map(|_| rng.random::<f32>()).collect()
}

fn search(graph: &Hnsw, rows: &[f32], query: &[f32], ef: usize) -> Vec<(f32, u32)> {
    let mut found = Vec::new();
    graph.search(rows, query, ef, &mut HnswScratch::default(), &mut found);
    found
}

fn brute_force(rows: &[f32], query: &[f32], k: usize) -> Vec<u32> {
    let l2 = |row: &[f32]| -> f64 {
        row.iter().zip(query).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum()
    };
    let mut all: Vec<(f64, u32)> = rows.chunks(DIM).map(l2).zip(0..).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all.iter().take(k).map(|a| a.1).collect()
}

#[test]
fn nearly_all_true_neighbours_are_found() {
    let rows = random_rows(4000, 1);
    let graph = Hnsw::build(&rows, DIM, L2, 5, &pool(2)).unwrap();
    let queries = random_rows(100, 2);
    let mut hits = 0;
    for query in queries.chunks(DIM) {
        let found = search(&graph, &rows, query, 64);
        assert_eq!(found.len(), 64);
        assert!(found.is_sorted_by_key(|&(d, row)| (d.to_bits(), row)));
        let found: Vec<u32> = found.iter().take(10).map(|f| f.1).collect();
        hits += brute_force(&rows, query, 10).iter().filter(|t| found.contains(t)).count();
    }
    assert!(hits >= 970, "{hits} of 1000 true neighbours found");
}

/// Rows of norms from 0.1 to 10, evenly spread over the orders of magnitude.
fn rows_of_all_lengths(rows: usize, seed: u64) -> Vec<f32> {
    let mut values = random_rows(rows, seed);
    for (i, row) in values.chunks_mut(DIM).enumerate() {
        row.iter_mut().for_each(|v| *v -= 0.5);
        let norm = row.iter().map(|v| v * v).sum::<f32>().sqrt();
        let wanted = 10f32.powf((i % 100) as f32 / 50.0 - 1.0);
        row.iter_mut().for_each(|v| *v *= wanted / norm);
    }
    values
}

#[test]
fn nearly_all_largest_products_are_found_among_rows_of_all_lengths() {
    let rows = rows_of_all_lengths(2000, 1);
    let graph = Hnsw::build(&rows, DIM, Ip, 5, &pool(2)).unwrap();
    let mut hits = 0;
    // The order of products does not depend on the length of the query: nor must what is found.
    let queries = rows_of_all_lengths(100, 2);
    for query in queries.chunks(DIM) {
        let product = |row: &[f32]| -> f64 {
            row.iter().zip(query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        let mut truth: Vec<(f64, u32)> = rows.chunks(DIM).map(|r| -product(r)).zip(0..).collect();
        truth.sort_by(|a, b| a.0.total_cmp(&b.0));
        let found = search(&graph, &rows, query, 16 + 64);
        assert_eq!(found.len(), 80);
        for pair in found.windows(2) {
            assert!(pair[0].0 <= pair[1].0, "{pair:?} in this order");
        }
        for &(term, row) in &found {
            let exact = -product(&rows[row as usize * DIM..(row as usize + 1) * DIM]);
            assert!((f64::from(term) - exact).abs() <= 1e-5 * (1.0 + exact.abs()));
        }
        hits += truth[..16].iter().filter(|t| found[..16].iter().any(|f| f.1 == t.1)).count();
    }
    assert!(hits >= 1520, "{hits} of 1600 largest products found");
}

#[test]
fn the_graph_depends_on_the_seed_and_not_on_the_threads() {
    let rows = random_rows(1500, 3);
    let build = |seed, threads| Hnsw::build(&rows, DIM, L2, seed, &pool(threads)).unwrap();
    assert_eq!(build(1, 1), build(1, 2));
    assert_eq!(build(1, 1), build(1, 4));
    assert_ne!(build(1, 1), build(2, 1));
}

#[test]
fn a_search_as_wide_as_the_graph_returns_every_row() {
    // Two far clusters and heaps of duplicates: what a pruned graph falls apart on.
    let mut rows = random_rows(300, 4);
    rows.extend(random_rows(300, 5).iter().map(|v| v + 1e4));
    for i in 0..400 {
        let from = i % 4 * DIM;
        rows.extend_from_within(from..from + DIM);
    }
    let graph = Hnsw::build(&rows, DIM, L2, 1, &pool(2)).unwrap();
    for query in [&rows[..DIM], &rows[400 * DIM..401 * DIM], &[5e3; DIM]] {
        let mut found: Vec<u32> = search(&graph, &rows, query, 1000).iter().map(|f| f.1).collect();
        found.sort_unstable();
        assert!(found.iter().copied().eq(0..1000), "{} of 1000 rows reached", found.len());
    }
}

#[test]
fn tiny_graphs_answer_with_all_rows_in_order() {
    for n in 1..=5 {
        let rows = random_rows(n, 6);
        let graph = Hnsw::build(&rows, DIM, L2, 1, &pool(1)).unwrap();
        let found: Vec<u32> = search(&graph, &rows, &[0.3; DIM], 10).iter().map(|f| f.1).collect();
        assert_eq!(found, brute_force(&rows, &[0.3; DIM], n));
        assert!(search(&graph, &rows, &[0.3; DIM], 0).is_empty());
    }
    assert!(Hnsw::build(&[], DIM, L2, 1, &pool(1)).is_err());
}

#[test]
fn a_scratch_may_be_used_for_graphs_of_different_sizes() {
    let mut scratch = HnswScratch::default();
    for n in [50, 500, 20, 300] {
        let rows = random_rows(n, 7);
        let graph = Hnsw::build(&rows, DIM, L2, 1, &pool(1)).unwrap();
        let mut found = vec![(1.0, 1)];
        graph.search(&rows, &rows[..DIM], n, &mut scratch, &mut found);
        assert_eq!((found.len(), found[0]), (n, (0.0, 0)));
    }
}

#[test]
fn stored_graphs_come_back_equal() {
    for n in [1, 2, 40, 700] {
        for metric in [L2, Ip] {
            let graph = Hnsw::build(&random_rows(n, 8), DIM, metric, 1, &pool(2)).unwrap();
            let again = Hnsw::from_bytes(&graph.to_bytes()).unwrap();
            assert_eq!(again, graph);
            assert_eq!(again.metric(), metric);
            assert!(graph.resident_bytes() >= 4 * BASE_LINKS * n);
        }
    }
}

#[test]
fn every_truncation_and_every_extension_is_refused() {
    let bytes = Hnsw::build(&random_rows(20, 9), DIM, L2, 1, &pool(1)).unwrap().to_bytes();
    for len in 0..bytes.len() {
        assert!(Hnsw::from_bytes(&bytes[..len]).is_err(), "{len} of {} bytes", bytes.len());
    }
    assert!(Hnsw::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
}

#[test]
fn counts_that_ask_for_more_than_there_is_are_refused_before_they_allocate() {
    let mut bytes = Hnsw::build(&random_rows(20, 9), DIM, L2, 1, &pool(1)).unwrap().to_bytes();
    bytes[8..12].copy_from_slice(&0xFFFF_FFF0u32.to_le_bytes());
    let error = Hnsw::from_bytes(&bytes).unwrap_err().to_string();
    assert!(error.contains("length") && error.contains("4294967280 nodes"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damaged_bytes_are_refused_or_give_a_graph_that_can_be_searched(
        damage in proptest::collection::vec((0usize..1 << 20, any::<u32>()), 1..4),
    ) {
        let rows = random_rows(60, 10);
        let mut bytes = Hnsw::build(&rows, DIM, L2, 3, &pool(1)).unwrap().to_bytes();
        for (at, value) in damage {
            // Mostly small values, which pass more of the checks.
            let value = if value.is_multiple_of(4) { value } else { value % 64 };
            let at = at % (bytes.len() / 4) * 4;
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        if let Ok(graph) = Hnsw::from_bytes(&bytes) {
            prop_assert_eq!(graph.len(), 60);
            prop_assert!(search(&graph, &rows, &rows[..DIM], 60).len() <= 60);
        }
    }

    #[test]
    fn random_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Hnsw::from_bytes(&bytes).is_err());
    }
}
