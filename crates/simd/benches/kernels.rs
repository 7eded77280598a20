//! Time of every kernel on every instruction set of this CPU.
//!
//! Absolute times differ from machine to machine, so two calibrations run in the same process:
//! `plain/u8_dot` is what a straightforward loop over bytes and floats takes, and `plain/read` what
//! it takes only to read the codes from the same level of memory. Judge a kernel by its ratio to
//! them.

#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use simd::{BATCH, BatchBounds, BatchFactors, BoundParams, Isa, Kernels, RawType, ex_bytes};

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600));
    targets = plain, scans, scans_from_memory, bounds, extra_code, distances, transform
}
criterion_main!(benches);

fn bytes(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn floats(len: usize) -> Vec<f32> {
    bytes(len).into_iter().map(|b| f32::from(b) / 128.0 - 1.0).collect()
}

/// A loop the compiler turns into wide registers, with as many sums as hide the latency.
#[inline(always)]
fn plain_u8_dot(q: &[f32], x: &[u8]) -> f32 {
    let mut sums = [0.0f32; 64];
    for (q, x) in q.as_chunks::<64>().0.iter().zip(x.as_chunks::<64>().0) {
        for i in 0..64 {
            sums[i] = q[i].mul_add(f32::from(x[i]), sums[i]);
        }
    }
    for apart in [32, 16, 8, 4, 2, 1] {
        for i in 0..apart {
            sums[i] += sums[i + apart];
        }
    }
    sums[0]
}

/// [`plain_u8_dot`] compiled for AVX2, where there is such a thing.
#[cfg(target_arch = "x86_64")]
fn wide_u8_dot(q: &[f32], x: &[u8]) -> f32 {
    #[target_feature(enable = "avx2,fma")]
    fn inner(q: &[f32], x: &[u8]) -> f32 {
        plain_u8_dot(q, x)
    }
    if Kernels::for_isa(Isa::Avx2).is_none() {
        return plain_u8_dot(q, x);
    }
    // SAFETY: the CPU has a superset of these features, or there would be no AVX2 table.
    unsafe { inner(q, x) }
}

#[cfg(not(target_arch = "x86_64"))]
use plain_u8_dot as wide_u8_dot;

/// Reads every byte once and does next to nothing with it.
fn plain_read(codes: &[u8]) -> u64 {
    let mut seen = [0; 8];
    for words in codes.as_chunks::<64>().0 {
        for (seen, word) in seen.iter_mut().zip(words.as_chunks().0) {
            *seen |= u64::from_le_bytes(*word);
        }
    }
    seen.iter().fold(0, |all, word| all | word)
}

fn plain(c: &mut Criterion) {
    let mut group = c.benchmark_group("plain");
    for dims in [768, 1024] {
        let (q, x) = (floats(dims), bytes(dims));
        group.bench_function(BenchmarkId::new("u8_dot", dims), |b| {
            b.iter(|| wide_u8_dot(black_box(&q), black_box(&x)));
        });
    }
    for m in [256, 512, 1024] {
        let codes = bytes(4 * m);
        group.bench_function(BenchmarkId::new("read_batch", m), |b| {
            b.iter(|| plain_read(black_box(&codes)));
        });
    }
    group.finish();
}

/// One batch of 32 codes, in cache.
fn scans(c: &mut Criterion) {
    let mut group = c.benchmark_group("scan");
    for m in [256, 512, 1024] {
        let (codes, lut) = (bytes(4 * m), bytes(8 * m));
        let mut sums = [0; BATCH];
        for kernels in Kernels::available() {
            group.bench_function(BenchmarkId::new(format!("scan8/{}", kernels.isa()), m), |b| {
                b.iter(|| kernels.scan8(black_box(&codes), &lut[..4 * m], black_box(&mut sums)));
            });
            group.bench_function(BenchmarkId::new(format!("scan16/{}", kernels.isa()), m), |b| {
                b.iter(|| kernels.scan16(black_box(&codes), &lut, black_box(&mut sums)));
            });
        }
    }
    group.finish();
}

/// Batch after batch out of memory that no cache holds, bounds included: what a search does.
fn scans_from_memory(c: &mut Criterion) {
    const M: usize = 512;
    const BATCHES: usize = 100_000;
    let mut group = c.benchmark_group("from_memory");
    group.sample_size(10).throughput(Throughput::Bytes((4 * M * BATCHES) as u64));
    let codes = bytes(4 * M * BATCHES);
    group.bench_function("plain_read", |b| b.iter(|| plain_read(black_box(&codes))));

    let lut = bytes(8 * M);
    let factors = BatchFactors { add: [1.0; BATCH], ..BatchFactors::default() };
    let params = BoundParams { delta: 1.0, ..BoundParams::default() };
    // The scalar table would take a second a pass to show that it is not bound by memory.
    for kernels in Kernels::available().into_iter().skip(1) {
        for (name, scan, lut) in [
            (
                "scan8",
                Kernels::scan8 as fn(&Kernels, &[u8], &[u8], &mut [u32; BATCH]),
                &lut[..4 * M],
            ),
            ("scan16", Kernels::scan16, &lut[..]),
        ] {
            group.bench_function(BenchmarkId::new(name, kernels.isa()), |b| {
                let (mut sums, mut out) = ([0; BATCH], BatchBounds::default());
                b.iter(|| {
                    let mut survivors = 0;
                    for batch in codes.chunks_exact(4 * M) {
                        scan(kernels, batch, lut, &mut sums);
                        kernels.bounds(&sums, &factors, &params, &mut out);
                        survivors += out.survivors.count_ones();
                    }
                    survivors
                });
            });
        }
    }
    group.finish();
}

fn bounds(c: &mut Criterion) {
    let mut group = c.benchmark_group("bounds");
    let factors = BatchFactors { add: [1.0; BATCH], ..BatchFactors::default() };
    let mut out = BatchBounds::default();
    for kernels in Kernels::available() {
        for (name, threshold) in [("none_survive", 0.5), ("all_survive", 2.0)] {
            let params = BoundParams { delta: 1.0, threshold, ..BoundParams::default() };
            group.bench_function(BenchmarkId::new(name, kernels.isa()), |b| {
                b.iter(|| kernels.bounds(black_box(&[5; BATCH]), &factors, &params, &mut out));
            });
        }
    }
    group.finish();
}

fn extra_code(c: &mut Criterion) {
    const DIMS: usize = 768;
    let mut group = c.benchmark_group("code_768");
    let (q, code) = (floats(DIMS), bytes(DIMS));
    let a: Vec<f32> = q.iter().map(|x| x.abs()).collect();
    for kernels in Kernels::available() {
        for width in 1..=8 {
            let code = &code[..ex_bytes(width, DIMS)];
            let id = BenchmarkId::new(format!("ex_dot/{}", kernels.isa()), width);
            group.bench_function(id, |b| {
                b.iter(|| kernels.ex_dot(width, black_box(&q), black_box(code)));
            });
        }
        group.bench_function(BenchmarkId::new("sign_dot", kernels.isa()), |b| {
            b.iter(|| kernels.sign_dot(black_box(&q), black_box(&code[..DIMS / 8])));
        });
        group.bench_function(BenchmarkId::new("code_score", kernels.isa()), |b| {
            b.iter(|| kernels.code_score(black_box(&a), black_box(120.0), 128.0));
        });
    }
    group.finish();
}

fn distances(c: &mut Criterion) {
    const DIMS: usize = 768;
    let mut group = c.benchmark_group("distance_768");
    let (q, x) = (floats(DIMS), bytes(4 * DIMS));
    for kernels in Kernels::available() {
        for ty in [RawType::F32, RawType::F16, RawType::U8, RawType::I8] {
            let x = &x[..DIMS * ty.size()];
            let id = BenchmarkId::new(format!("l2_raw/{}", kernels.isa()), format!("{ty:?}"));
            group.bench_function(id, |b| {
                b.iter(|| kernels.l2_raw(ty, black_box(&q), black_box(x)));
            });
        }
    }
    group.finish();
}

fn transform(c: &mut Criterion) {
    let mut group = c.benchmark_group("fwht");
    for n in [64, 256, 512, 1024] {
        let mut x = vec![0.0; n];
        for kernels in Kernels::available() {
            group.bench_function(BenchmarkId::new(kernels.isa().name(), n), |b| {
                b.iter(|| kernels.fwht(black_box(&mut x)));
            });
        }
    }
    group.finish();
}
