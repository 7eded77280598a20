//! What a vector costs to encode and a query to prepare, scan and re-rank, on one core.
//!
//! `cargo bench -p codec`, or a part: `cargo bench -p codec -- rotate`.

use std::hint::black_box;

use codec::{
    Encoder, Estimator, ListTerms, Metric, PrefixCodes, Query, Rotation, Scan, SplitRecord,
    TableBits, Thresholds, TightBound, prefix_factors,
};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use simd::{BatchBounds, Kernels};

/// Sums of 12 uniform values: as good as Gaussian for a code.
fn gaussian(dims: usize, seed: u64) -> Vec<f32> {
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut uniform = || (generator.next_u32() >> 8) as f32 / (1 << 24) as f32;
    (0..dims).map(|_| (0..12).map(|_| uniform()).sum::<f32>() - 6.0).collect()
}

fn rotate(c: &mut Criterion) {
    let mut group = c.benchmark_group("rotate");
    for dim in [128, 384, 768, 960, 1024, 1536, 5000] {
        let rotation = Rotation::new(dim, 1);
        let (x, mut out) = (gaussian(dim, 2), vec![0.0; rotation.padded_dim()]);
        group.bench_function(BenchmarkId::from_parameter(dim), |b| {
            b.iter(|| rotation.apply(black_box(&x), black_box(&mut out)));
        });
    }
}

fn encode(c: &mut Criterion) {
    let mut group = c.benchmark_group("encode");
    for padded in [384, 768] {
        let (r, centroid) = (gaussian(padded, 3), gaussian(padded, 4));
        for bits in 2..=9 {
            let shape = SplitRecord { padded, prefix_dims: padded / 2, bits, metric: Metric::L2 };
            let mut encoder = Encoder::new(shape, Estimator::PerVector);
            let (mut prefix, mut record) = (vec![0; padded / 16], vec![0; shape.len()]);
            group.bench_function(BenchmarkId::new(format!("B{bits}"), padded), |b| {
                b.iter(|| encoder.encode(black_box(&r), &centroid, &mut prefix, &mut record));
            });
        }
    }
    let (r, centroid) = (gaussian(768, 3), gaussian(768, 4));
    group.bench_function("prefix factors/768", |b| {
        b.iter(|| prefix_factors(black_box(&r), &centroid, 384, Metric::L2, Estimator::PerVector));
    });
}

fn prepare(c: &mut Criterion) {
    let mut group = c.benchmark_group("prepare");
    for dims in [384, 768, 1024] {
        let (q, mut query) = (gaussian(dims, 5), Query::default());
        for bits in [TableBits::Eight, TableBits::Sixteen] {
            group.bench_function(BenchmarkId::new(format!("{bits:?}"), dims), |b| {
                b.iter(|| query.prepare(black_box(&q), dims, bits));
            });
        }
    }
}

fn score(c: &mut Criterion) {
    let mut group = c.benchmark_group("score");
    let kernels = Kernels::best();
    let list = ListTerms { term: 2.0, y: 1.4 };
    for padded in [384, 768, 1024] {
        let shape = SplitRecord { padded, prefix_dims: padded / 2, bits: 9, metric: Metric::L2 };
        let mut encoder = Encoder::new(shape, Estimator::PerVector);
        let (mut prefix, mut record) = (vec![0; padded / 16], vec![0; shape.len()]);
        encoder.encode(&gaussian(padded, 6), &gaussian(padded, 7), &mut prefix, &mut record);
        let mut query = Query::default();
        query.prepare(&gaussian(padded, 8), padded / 2, TableBits::Sixteen);
        group.bench_function(BenchmarkId::new("B9", padded), |b| {
            b.iter(|| shape.score(kernels, black_box(&record), &query, 3.0, &list));
        });
    }
}

fn scan(c: &mut Criterion) {
    let mut group = c.benchmark_group("scan a batch of 32");
    let list = ListTerms { term: 1500.0, y: 38.7 };
    for m in [384, 768] {
        let (r, centroid) = (gaussian(m, 9), gaussian(m, 10));
        let factors = prefix_factors(&r, &centroid, m, Metric::L2, Estimator::PerVector);
        let mut codes = PrefixCodes::new(m, 32);
        for position in 0..32 {
            codes.set(position, &vec![position as u8; m / 8], factors);
        }
        let mut query = Query::default();
        for bits in [TableBits::Eight, TableBits::Sixteen] {
            query.prepare(&gaussian(m, 11), m, bits);
            let scan =
                Scan { kernels: Kernels::best(), query: &query, codes: &codes, epsilon: 1.9 };
            let thresholds = Thresholds { prune: 100.0, seed: 100.0 };
            let mut out = BatchBounds::default();
            group.bench_function(BenchmarkId::new(format!("{bits:?}"), m), |b| {
                b.iter(|| scan.batch(black_box(0), !0, &list, thresholds, &mut out));
            });
        }
    }
    let factors = prefix_factors(
        &gaussian(384, 9),
        &gaussian(384, 10),
        192,
        Metric::L2,
        Estimator::PerVector,
    );
    let bound = TightBound::new(384, 192, Metric::L2, Estimator::PerVector, 1.9);
    let list = ListTerms { term: 400.0, y: 20.0 };
    group.bench_function("tight bound of one vector", |b| {
        b.iter(|| bound.lower(black_box(factors), black_box(3.0), &list, 0.01));
    });
}

criterion_group!(benches, rotate, encode, prepare, score, scan);
criterion_main!(benches);
