#![allow(clippy::unwrap_used)]

use super::{Centroids, Coarse, CoarseScratch, resolve};
use crate::config::CoarseKind;

const DIM: usize = 64;
const LISTS: usize = 2000;

/// Rows in all directions, of norms from 0.1 to 10.
fn rows_of_all_lengths(rows: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut uniform = || {
        // Knuth's generator, the upper bits.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u32 << 24) as f32 - 0.5
    };
    let mut values = vec![0f32; rows * DIM];
    for row in values.chunks_exact_mut(DIM) {
        row.iter_mut().for_each(|v| *v = uniform() + uniform());
        let wanted = 10f32.powf(2.0 * uniform());
        let norm = row.iter().map(|v| v * v).sum::<f32>().sqrt();
        row.iter_mut().for_each(|v| *v *= wanted / norm);
    }
    values
}

#[test]
fn the_graph_finds_the_lists_of_the_largest_products_and_gives_them_in_order() {
    let rows = rows_of_all_lengths(LISTS, 1);
    let centroids = Centroids::from_f32(rows.clone(), DIM, codec::Metric::Ip);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let graph =
        Coarse::build(CoarseKind::Hnsw, &centroids, Vec::new(), Vec::new(), 3, &pool).unwrap();
    let (mut scratch, mut found) = (CoarseScratch::default(), Vec::new());
    let (mut hits, queries) = (0, rows_of_all_lengths(100, 2));
    for query in queries.chunks_exact(DIM) {
        let product = |list: u32| -> f64 {
            let row = &rows[list as usize * DIM..(list as usize + 1) * DIM];
            row.iter().zip(query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        let mut truth: Vec<u32> = (0..LISTS as u32).collect();
        truth.sort_by(|a, b| product(*b).total_cmp(&product(*a)));
        graph.select(&centroids, query, 16, &mut scratch, &mut found);
        assert_eq!(found.len(), 16);
        assert!(found.is_sorted_by(|a, b| a.terms.term <= b.terms.term));
        for probe in &found {
            let exact = -product(probe.list);
            assert!((f64::from(probe.terms.term) - exact).abs() < 1e-4 * (1.0 + exact.abs()));
            hits += usize::from(truth[..16].contains(&probe.list));
        }
    }
    assert!(hits >= 1520, "{hits} of 1600 lists found");
}

#[test]
fn a_quantizer_asked_for_by_name_is_kept() {
    for kind in [CoarseKind::Irq, CoarseKind::Hnsw, CoarseKind::Flat] {
        for nlist in [1, 100, 100_000] {
            assert_eq!(resolve(kind, nlist), kind);
        }
    }
    assert_eq!(resolve(CoarseKind::Auto, 100), CoarseKind::Flat);
    assert_eq!(resolve(CoarseKind::Auto, 100_000), CoarseKind::Irq);
}
