#![allow(clippy::unwrap_used)]

use std::error::Error;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Crew, KmeansOptions};
use crate::{AssignMethod, Assigner, ClusterError, RowSlice, RowSource, Rows};

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

fn random_rows(rows: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..rows * dim).map(|_| rng.random::<f32>() - 0.5).collect()
}

fn kmeans(
    sample: &[f32],
    dim: usize,
    nlist: usize,
    options: &KmeansOptions,
    pool: &rayon::ThreadPool,
) -> Result<Vec<f32>, ClusterError> {
    super::kmeans(&RowSlice::new(sample, dim)?, nlist, options, pool, &|_| {})
}

fn train(sample: &[f32], dim: usize, nlist: usize, two_level_from: usize) -> Vec<f32> {
    let options = KmeansOptions { two_level_from, ..KmeansOptions::default() };
    kmeans(sample, dim, nlist, &options, &pool(2)).unwrap()
}

/// Mean squared distance to the nearest centroid.
fn error(sample: &[f32], centroids: &[f32], dim: usize) -> f64 {
    let assigner = Assigner::new(centroids, dim, AssignMethod::Flat, &pool(1)).unwrap();
    let rows = sample.len() / dim;
    let (mut list, mut dist2) = (vec![0; rows], vec![0.0; rows]);
    assigner.assign(sample, &mut list, &mut dist2);
    dist2.iter().map(|d| f64::from(*d)).sum::<f64>() / rows as f64
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    let (dim, nlist) = (20, 40);
    let sample = random_rows(3000, dim, 1);
    for two_level_from in [4, 1000] {
        let options = KmeansOptions { seed: 7, two_level_from, ..KmeansOptions::default() };
        let run = |threads| {
            let c = kmeans(&sample, dim, nlist, &options, &pool(threads)).unwrap();
            c.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
        };
        let one = run(1);
        assert_eq!(one, run(2));
        assert_eq!(one, run(4));
    }
}

#[test]
fn another_seed_gives_other_centroids() {
    let sample = random_rows(500, 8, 1);
    let with = |seed| {
        let options = KmeansOptions { seed, ..KmeansOptions::default() };
        kmeans(&sample, 8, 10, &options, &pool(1)).unwrap()
    };
    assert_ne!(with(1), with(2));
}

#[test]
fn separated_blobs_are_recovered_by_one_level_and_by_two() {
    let (dim, blobs) = (6, 25);
    let centres: Vec<f32> = random_rows(blobs, dim, 3).iter().map(|v| v * 1000.0).collect();
    let noise = random_rows(blobs * 60, dim, 4);
    let sample: Vec<f32> =
        (0..noise.len()).map(|i| centres[i / dim % blobs * dim + i % dim] + noise[i]).collect();
    for (two_level_from, nlist) in [(1000, 25), (4, 50)] {
        // With two lists per blob the proportional split must still give every blob one.
        let centroids = train(&sample, dim, nlist, two_level_from);
        assert_eq!(centroids.len(), nlist * dim);
        let e = error(&sample, &centroids, dim);
        assert!(e < 6.0 / 12.0 * 1.05, "{nlist} lists leave an error of {e} per row");
    }
}

#[test]
fn two_levels_give_exactly_nlist_lists_close_to_one_level_in_error() {
    let dim = 8;
    let sample = random_rows(4000, dim, 5);
    for nlist in [4, 5, 17, 64, 101] {
        let (one, two) = (train(&sample, dim, nlist, 1000), train(&sample, dim, nlist, 4));
        assert_eq!(two.len(), nlist * dim);
        let (one, two) = (error(&sample, &one, dim), error(&sample, &two, dim));
        assert!(two < 1.06 * one, "nlist {nlist}: {two} against {one}");
    }
}

#[test]
fn one_list_is_the_mean() {
    let sample = random_rows(1000, 5, 6);
    let centroid = train(&sample, 5, 1, 512);
    for (d, value) in centroid.iter().enumerate() {
        let mean = sample.iter().skip(d).step_by(5).map(|v| f64::from(*v)).sum::<f64>() / 1000.0;
        assert!((f64::from(*value) - mean).abs() < 1e-6);
    }
}

#[test]
fn as_many_lists_as_rows_makes_every_row_a_centroid() {
    let sample = random_rows(60, 4, 7);
    for two_level_from in [4, 1000] {
        let mut centroids: Vec<Vec<u32>> = train(&sample, 4, 60, two_level_from)
            .chunks(4)
            .map(|c| c.iter().map(|v| v.to_bits()).collect())
            .collect();
        let mut rows: Vec<Vec<u32>> =
            sample.chunks(4).map(|c| c.iter().map(|v| v.to_bits()).collect()).collect();
        centroids.sort();
        rows.sort();
        assert_eq!(centroids, rows);
    }
}

#[test]
fn fewer_distinct_rows_than_lists_end_with_finite_coinciding_centroids() {
    let distinct = random_rows(3, 4, 8);
    let sample: Vec<f32> = distinct.iter().copied().cycle().take(4 * 300).collect();
    for two_level_from in [4, 1000] {
        let centroids = train(&sample, 4, 50, two_level_from);
        assert_eq!(centroids.len(), 50 * 4);
        assert!(centroids.iter().all(|v| v.is_finite()));
        assert!(error(&sample, &centroids, 4) < 1e-12);
    }
}

#[test]
fn an_empty_list_takes_rows_from_the_list_with_the_largest_error() {
    // Two blobs, three centroids of which one is so far away that no row chooses it.
    let sample: Vec<f32> = [0.0, 1.0, 2.0, 3.0, 100.0, 101.0].to_vec();
    let mut centroids = vec![1.5, 100.5, 1e6];
    let rows = RowSlice::new(&sample, 1).unwrap();
    let pool = pool(1);
    let scratch = Crew::scratch_for(&pool);
    let crew = Crew::together(&pool, &scratch);
    super::lloyd::iterate(&rows, &mut centroids, 10, &crew, &|_| {}).unwrap();
    centroids.sort_by(f32::total_cmp);
    assert!(centroids[0] < centroids[1] && centroids[1] <= 3.0, "{centroids:?}");
    assert_eq!(centroids[2], 100.5);
}

#[test]
fn a_large_offset_does_not_blur_the_lists() {
    let sample = random_rows(2000, 8, 9);
    let moved: Vec<f32> = sample.iter().map(|v| v + 1000.0).collect();
    let centroids = train(&moved, 8, 20, 512);
    let (plain, offset) = (train(&sample, 8, 20, 512), error(&moved, &centroids, 8));
    let plain = error(&sample, &plain, 8);
    assert!(offset < 1.05 * plain, "{offset} against {plain} without the offset");
}

#[test]
fn a_sample_that_is_too_small_is_an_error_with_both_numbers() {
    let sample = random_rows(5, 4, 1);
    let error = kmeans(&sample, 4, 6, &KmeansOptions::default(), &pool(1)).unwrap_err();
    assert!(matches!(error, ClusterError::TooFewRows { rows: 5, nlist: 6 }));
    assert!(error.to_string().contains("nlist is 6") && error.to_string().contains("5 rows"));
    let run = |sample: &[f32], dim, nlist| {
        kmeans(sample, dim, nlist, &KmeansOptions::default(), &pool(1))
    };
    assert!(matches!(run(&sample, 3, 1), Err(ClusterError::Shape { len: 20, dim: 3, .. })));
    assert!(matches!(run(&sample, 4, 0), Err(ClusterError::Zero { what: "nlist" })));
    assert!(matches!(run(&sample, 0, 1), Err(ClusterError::Zero { what: "dim" })));
}

/// Rows that only give themselves out when they are read, and fail where they are told to.
struct Stored<'a> {
    rows: RowSlice<'a>,
    fail_at: Option<u64>,
}

impl RowSource for Stored<'_> {
    fn n(&self) -> u64 {
        self.rows.n()
    }

    fn dim(&self) -> usize {
        self.rows.dim()
    }

    fn read_f32(&self, start: u64, out: &mut [f32]) -> Result<(), Box<dyn Error + Send + Sync>> {
        let end = start + (out.len() / self.dim()) as u64;
        match self.fail_at {
            Some(row) if (start..end).contains(&row) => Err(format!("row {row} is gone").into()),
            _ => self.rows.read_f32(start, out),
        }
    }
}

impl Rows for Stored<'_> {
    fn gather_f32(
        &self,
        rows: &[u32],
        out: &mut [f32],
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        assert!(rows.is_sorted(), "rows are asked for in ascending order");
        self.rows.gather_f32(rows, out)
    }
}

#[test]
fn rows_read_when_needed_give_the_bytes_of_rows_in_memory() {
    // Two waves of rows and a bit; 150 dims do not divide evenly among threads.
    let (dim, n, nlist) = (150, 29_000, 40);
    let values = random_rows(n, dim, 11);
    let rows = RowSlice::new(&values, dim).unwrap();
    let stored = Stored { rows, fail_at: None };
    for two_level_from in [4, 1000] {
        let train = |rows: &dyn Rows, memory, threads| {
            let mut options = KmeansOptions { seed: 5, memory, ..KmeansOptions::default() };
            (options.two_level_from, options.iterations) = (two_level_from, 2);
            let c = super::kmeans(rows, nlist, &options, &pool(threads), &|_| {}).unwrap();
            c.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
        };
        let golden = train(&rows, u64::MAX, 1);
        assert!(golden == train(&rows, 0, 2), "in memory, on two threads");
        assert!(golden == train(&rows, 8 << 20, 4), "in memory, on four threads");
        // No group in memory, some at a time, all of them.
        for (memory, threads) in [(0, 1), (0, 4), (8 << 20, 1), (8 << 20, 2), (u64::MAX, 4)] {
            let read = train(&stored, memory, threads);
            assert!(golden == read, "{memory} bytes for groups, {threads} threads");
        }
    }
}

#[test]
fn an_iteration_moves_centroids_to_the_means_of_a_plain_loop() {
    let (dim, n, nlist) = (150, 30_000, 7);
    let values = random_rows(n, dim, 12);
    let start = values[..nlist * dim].to_vec();
    let mut sums = vec![0f64; nlist * dim];
    let mut counts = vec![0f64; nlist];
    for row in values.chunks(dim) {
        let distance = |c: &[f32]| simd::Kernels::best().l2(row, c);
        let list = (0..nlist)
            .min_by(|&a, &b| {
                let (a, b) = (&start[a * dim..][..dim], &start[b * dim..][..dim]);
                distance(a).total_cmp(&distance(b))
            })
            .unwrap();
        counts[list] += 1.0;
        row.iter().zip(&mut sums[list * dim..]).for_each(|(x, s)| *s += f64::from(*x));
    }
    let means: Vec<f32> =
        sums.iter().enumerate().map(|(i, s)| (s / counts[i / dim]) as f32).collect();

    let pool = pool(3);
    let scratch = Crew::scratch_for(&pool);
    let mut centroids = start.clone();
    let rows = Stored { rows: RowSlice::new(&values, dim).unwrap(), fail_at: None };
    let crew = Crew::together(&pool, &scratch);
    pool.install(|| super::lloyd::iterate(&rows, &mut centroids, 1, &crew, &|_| {})).unwrap();
    assert!(centroids == means);
}

#[test]
fn a_row_that_cannot_be_read_ends_the_training_with_the_reason() {
    let values = random_rows(20_000, 150, 13);
    let rows = Stored { rows: RowSlice::new(&values, 150).unwrap(), fail_at: Some(15_000) };
    for nlist in [10, 600] {
        let options = KmeansOptions { iterations: 1, ..KmeansOptions::default() };
        let error = super::kmeans(&rows, nlist, &options, &pool(2), &|_| {}).unwrap_err();
        assert!(error.to_string().ends_with("row 15000 is gone"), "{error}");
    }
}

#[test]
fn large_groups_are_thinned_at_even_steps() {
    use super::picked::even_steps;
    use super::split::group_rows;
    assert_eq!(group_rows(1000, 3, 8), 1000);
    assert_eq!(group_rows(10_000_000, 3, 1 << 15), 1024);
    assert_eq!(group_rows(10_000_000, 300, 1 << 15), 12_000);
    assert_eq!(even_steps(10, 4).collect::<Vec<_>>(), [0, 2, 5, 7]);
    assert_eq!(even_steps(5, 5).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}
