#![allow(clippy::unwrap_used)]

use simd::Kernels;

use super::{Centroids, Coarse, CoarseScratch, Point, resolve};
use crate::config::{CentroidKind, CoarseKind};

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

/// Distances and products are those of the rows as stored, however they are stored.
#[test]
fn what_is_stored_of_a_centroid_is_what_queries_are_compared_with() {
    let kernels = Kernels::best();
    let (rows, queries) = (rows_of_all_lengths(50, 4), rows_of_all_lengths(20, 5));
    for metric in [codec::Metric::L2, codec::Metric::Ip] {
        let floats = Centroids::from_f32(rows.clone(), DIM, metric);
        for centroids in [floats, Centroids::rounded(&rows, DIM, metric)] {
            let mut stored = vec![0f32; DIM];
            for (query, list) in
                queries.chunks_exact(DIM).flat_map(|q| (0..50).map(move |l| (q, l)))
            {
                centroids.read(list, &mut stored);
                let pairs =
                    || query.iter().zip(&stored).map(|(&a, &b)| (f64::from(a), f64::from(b)));
                let product: f64 = pairs().map(|(a, b)| a * b).sum();
                let distance: f64 = pairs().map(|(a, b)| (a - b).powi(2)).sum();
                let norms: f64 = pairs().map(|(a, b)| a * a + b * b).sum();
                let close =
                    |found: f32, exact: f64| (f64::from(found) - exact).abs() < 1e-6 * norms;
                let point = Point::of(query);
                let term = centroids.term(kernels, point, list);
                let ranked = if metric == codec::Metric::L2 { distance } else { -product };
                assert!(close(term, ranked), "{term} {ranked}");
                assert!(close(centroids.length(kernels, point, list, term).powi(2), distance));
                assert!(close(centroids.product(kernels, point, list), product));
                assert!(close(centroids.distance(kernels, point, list), distance));
                let norm: f64 = stored.iter().map(|v| f64::from(*v).powi(2)).sum();
                assert!((f64::from(centroids.norm(list)) - norm).abs() < 1e-6 * norm);
            }
        }
    }
}

#[test]
fn rounding_moves_a_value_by_half_a_step_at_most_and_leaves_zeros() {
    let mut rows = rows_of_all_lengths(50, 6);
    rows[..DIM].fill(0.0);
    rows[DIM..2 * DIM].fill(1e-44);
    let centroids = Centroids::rounded(&rows, DIM, codec::Metric::L2);
    let mut stored = vec![0f32; DIM];
    for (list, row) in (0..).zip(rows.chunks_exact(DIM)) {
        centroids.read(list, &mut stored);
        let largest = row.iter().fold(0f32, |most, v| most.max(v.abs()));
        let most = if list < 2 { largest } else { largest / 127.0 * 0.501 };
        assert!(row.iter().zip(&stored).all(|(a, b)| (a - b).abs() <= most), "list {list}");
    }
    let moved: Vec<f64> = centroids.rounding(&rows).collect();
    assert!(moved[0] == 0.0 && moved[2..].iter().all(|&m| m > 0.0));
}

#[test]
fn centroids_come_back_from_their_bytes_and_scales_that_are_none_do_not() {
    let rows = rows_of_all_lengths(7, 7);
    let metric = codec::Metric::L2;
    for centroids in
        [Centroids::from_f32(rows.clone(), DIM, metric), Centroids::rounded(&rows, DIM, metric)]
    {
        let (kind, mut bytes) = (centroids.kind(), Vec::new());
        let mut take = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            Ok(())
        };
        centroids.each_piece(&mut take).unwrap();
        assert_eq!(bytes.len() as u64, Centroids::bytes_for(kind, DIM, 7));
        let read = |bytes: &[u8]| Centroids::from_bytes(kind, bytes.to_vec(), DIM, 7, metric);
        let (mut a, mut b) = (vec![0f32; DIM], vec![0f32; DIM]);
        let back = read(&bytes).ok().unwrap();
        for list in 0..7 {
            centroids.read(list, &mut a);
            back.read(list, &mut b);
            assert_eq!((&a, centroids.norm(list)), (&b, back.norm(list)));
        }
        assert!(read(&bytes[1..]).is_err());
        if kind == CentroidKind::I8 {
            let last = bytes.len() - 4;
            bytes[last..].copy_from_slice(&f32::NAN.to_le_bytes());
            assert!(read(&bytes).err().unwrap().contains("centroid 6"));
        }
    }
}
