#![allow(clippy::unwrap_used)]

use dataset::{Base, Dtype, VectorWriter};

use super::{Trained, sample_rows_count, train};
use crate::build::Watch;
use crate::build::plan::BuildPlan;
use crate::build::survey::Survey;
use crate::build::waves::Waves;
use crate::config::{BuildOptions, CoarseKind, Metric, OnInvalid};
use crate::progress::Silent;

/// Rows around a few centres, away from zero; every 7th row is zero.
fn base(dir: &std::path::Path, n: usize, dim: usize) -> Base {
    let path = dir.join("base.fbin");
    let mut writer = VectorWriter::create(&path, dim, Dtype::F32).unwrap();
    let mut state = 1u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    for row in 0..n {
        let values = (0..dim).map(|d| noise() + ((row * 31 + d) % 13) as f32);
        let values: Vec<f32> = if row % 7 == 0 { vec![0.0; dim] } else { values.collect() };
        writer.write_f32(&values).unwrap();
    }
    writer.finish().unwrap();
    Base::open(&[path]).unwrap()
}

fn bits(trained: &Trained) -> Vec<u32> {
    trained.mean.iter().chain(&trained.centroids).map(|v| v.to_bits()).collect()
}

fn survey(base: &Base, metric: Metric, pool: &rayon::ThreadPool) -> Survey {
    let waves = Waves { block_rows: 512, blocks: 3 };
    Survey::of(base, metric, OnInvalid::Error, waves, pool, &Watch(&Silent)).unwrap()
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

#[test]
fn the_memory_for_training_does_not_show_in_what_is_trained() {
    let dir = tempfile::tempdir().unwrap();
    let base = base(dir.path(), 9_000, 20);
    for (metric, nlist) in [(Metric::L2, 30), (Metric::Cosine, 30), (Metric::Cosine, 600)] {
        let o = BuildOptions {
            metric,
            nlist: Some(nlist),
            coarse: CoarseKind::Irq,
            ..BuildOptions::default()
        };
        let plan = BuildPlan::new(&base, &o).unwrap();
        let survey = survey(&base, metric, &pool(2));
        let with = |memory, threads| {
            let (pool, watch) = (pool(threads), Watch(&Silent));
            bits(&train(&base, &survey, &plan, memory, &pool, &watch).unwrap())
        };
        let held = with(u64::MAX, 2);
        for (memory, threads) in [(0, 1), (0, 3), (30 << 20, 2)] {
            assert!(held == with(memory, threads), "{metric} {nlist}: {memory}, {threads} threads");
        }
    }
}

#[test]
fn rows_are_drawn_from_those_that_belong_in_lists_when_most_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("base.fbin");
    let mut writer = VectorWriter::create(&path, 2, Dtype::F32).unwrap();
    for row in 0..20_000u32 {
        let one = f32::from(row % 1000 == 999);
        writer.write_f32(&[one, one * row as f32]).unwrap();
    }
    writer.finish().unwrap();
    let base = Base::open(&[path]).unwrap();
    let o = BuildOptions { metric: Metric::Cosine, nlist: Some(20), ..BuildOptions::default() };
    let plan = BuildPlan::new(&base, &o).unwrap();
    let pool = pool(1);
    let survey = survey(&base, Metric::Cosine, &pool);
    let trained = train(&base, &survey, &plan, 0, &pool, &Watch(&Silent)).unwrap();
    assert_eq!(trained.centroids.len(), 20 * 2);
}

#[test]
fn the_sample_is_bounded_but_not_below_64_rows_per_list() {
    assert_eq!(sample_rows_count(1_000_000, 128, 100), 25_600);
    assert_eq!(sample_rows_count(10_000, 128, 100), 10_000);
    assert_eq!(sample_rows_count(1 << 40, 1 << 10, 1 << 12), 1 << 19);
    assert_eq!(sample_rows_count(1 << 40, 1 << 12, 1 << 13), 64 << 13);
}
