//! What the products, the assignment, k-means and the exact search reach on this machine.
//!
//! ```text
//! cargo bench -p cluster --bench products -- [peak] [gemm] [assign] [kmeans] [exact]
//! ```
//!
//! Rows are synthetic clusters unless `BENCH_ROWS` names an fbin file (u32 n, u32 dim, n·dim f32).
//! Rates are set against a loop of fused multiply-adds on registers in the same run, because clock
//! rates move with the load and the instruction set. Times are processor time summed over threads
//! where the system tells it (Linux), so that a busy machine does not spoil them; divide by the
//! number of threads for the time on an idle one.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, missing_docs)]
// The bench has no use for paths in errors: it ends at the first one.
#![allow(clippy::disallowed_methods)]

use std::time::Instant;

use cluster::{AssignMethod, Assigner, KmeansOptions, Metric, RowSlice, RowSource};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let runs = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    let pool = rayon::ThreadPoolBuilder::new().build().unwrap();
    let peak = peak_gflops();
    println!("peak: {peak:.0} GFLOP/s on one thread, {} threads", pool.current_num_threads());
    let rows = Rows::load();
    println!("rows: {} x {}", rows.n(), rows.dim);
    if runs("gemm") {
        gemm(peak);
    }
    if runs("assign") {
        assign(&rows, &pool);
    }
    if runs("kmeans") {
        kmeans(&rows, &pool);
    }
    if runs("exact") {
        exact(&rows, peak, &pool);
    }
}

/// Rows in memory.
struct Rows {
    values: Vec<f32>,
    dim: usize,
}

impl Rows {
    fn load() -> Self {
        let Ok(path) = std::env::var("BENCH_ROWS") else { return Self::synthetic(100_000, 384) };
        let bytes = std::fs::read(path).expect("BENCH_ROWS must be readable");
        let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
        let values = bytes[8..].as_chunks::<4>().0;
        Self {
            values: values.iter().map(|b| f32::from_le_bytes(*b)).collect(),
            dim: word(4) as usize,
        }
    }

    /// Rows around 1,000 centres.
    fn synthetic(n: usize, dim: usize) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut noise = || rng.random::<f32>() + rng.random::<f32>() - 1.0;
        let centres: Vec<f32> = (0..1000 * dim).map(|_| noise()).collect();
        let values =
            (0..n * dim).map(|i| centres[(i / dim % 1000) * dim + i % dim] + noise()).collect();
        Self { values, dim }
    }

    fn n(&self) -> usize {
        self.values.len() / self.dim
    }

    fn first(&self, rows: usize) -> &[f32] {
        &self.values[..rows.min(self.n()) * self.dim]
    }
}

impl RowSource for Rows {
    fn n(&self) -> u64 {
        self.n() as u64
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn read_f32(
        &self,
        start: u64,
        out: &mut [f32],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let start = start as usize * self.dim;
        out.copy_from_slice(&self.values[start..start + out.len()]);
        Ok(())
    }
}

/// Processor seconds of one call, averaged over at least half a second: the system's clock of
/// processor time ticks in milliseconds.
fn seconds_per_call(mut call: impl FnMut()) -> f64 {
    call();
    let (clock, mut calls) = (Clock::start(), 0);
    while clock.wall.elapsed().as_secs_f64() < 0.5 {
        call();
        calls += 1;
    }
    clock.seconds() / f64::from(calls)
}

/// Processor time of all threads, or wall time where that is not to be had.
struct Clock {
    wall: Instant,
    processor: Option<f64>,
}

impl Clock {
    fn start() -> Self {
        Self { wall: Instant::now(), processor: processor_seconds() }
    }

    fn seconds(&self) -> f64 {
        match (self.processor, processor_seconds()) {
            (Some(start), Some(end)) => end - start,
            _ => self.wall.elapsed().as_secs_f64(),
        }
    }
}

/// Nanoseconds on a processor, the first number of every thread's schedstat.
fn processor_seconds() -> Option<f64> {
    let mut total = 0.0;
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let stat = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        total += stat.split(' ').next()?.parse::<f64>().ok()?;
    }
    Some(total / 1e9)
}

/// GFLOP/s of fused multiply-adds on registers, one thread.
fn peak_gflops() -> f64 {
    const ROUNDS: usize = 1_000_000;
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") {
        let flops = (ROUNDS * 12 * 16 * 2) as f64;
        // SAFETY: the CPU has AVX-512F, as just tested.
        let time = seconds_per_call(|| unsafe { fma_avx512(ROUNDS) });
        return flops / time / 1e9;
    }
    let flops = (ROUNDS * 64 * 2) as f64;
    let time = seconds_per_call(|| {
        let mut sums = std::hint::black_box([2f32; 64]);
        for _ in 0..ROUNDS {
            for s in &mut sums {
                *s = *s * 0.999 + 0.001;
            }
        }
        std::hint::black_box(sums);
    });
    flops / time / 1e9
}

/// Twelve independent chains of 16 lanes: enough to hide the latency of two units.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn fma_avx512(rounds: usize) {
    use std::arch::x86_64::{_mm512_fmadd_ps, _mm512_set1_ps};
    let (factor, addend) = (_mm512_set1_ps(0.999), _mm512_set1_ps(0.001));
    let mut sums = std::hint::black_box([_mm512_set1_ps(2.0); 12]);
    for _ in 0..rounds {
        for s in &mut sums {
            *s = _mm512_fmadd_ps(*s, factor, addend);
        }
    }
    std::hint::black_box(sums);
}

fn gemm(peak: f64) {
    for dim in [96, 384, 768] {
        for (na, nb) in [(128, 1024), (256, 1024), (512, 512), (512, 1024), (1024, 512)] {
            let a: Vec<f32> = (0..na * dim).map(|i| (i % 17) as f32).collect();
            let b: Vec<f32> = (0..nb * dim).map(|i| (i % 13) as f32).collect();
            let mut out = vec![0f32; na * nb];
            let time = seconds_per_call(|| cluster::dots(&a, &b, dim, &mut out));
            let rate = (2 * na * nb * dim) as f64 / time / 1e9;
            println!(
                "gemm {na:5} x {nb:5}, dim {dim:4}: {rate:6.1} GFLOP/s = {:.2} of peak",
                rate / peak
            );
        }
    }
}

fn assign(rows: &Rows, pool: &rayon::ThreadPool) {
    let dim = rows.dim;
    for nlist in [1024, 4096, 16_384, 65_536] {
        if nlist * 2 > rows.n() {
            break;
        }
        // Rows spread over the data stand for centroids.
        let step = rows.n() / nlist;
        let centroids: Vec<f32> = (0..nlist)
            .flat_map(|i| &rows.values[i * step * dim..(i * step + 1) * dim])
            .map(|v| v * 0.9)
            .collect();
        let sample: Vec<f32> = (0..8192)
            .map(|i| i * 7919 % rows.n())
            .flat_map(|i| &rows.values[i * dim..(i + 1) * dim])
            .copied()
            .collect();
        let mut lists = Vec::new();
        for method in [AssignMethod::Flat, AssignMethod::Hnsw] {
            let start = Clock::start();
            let assigner = Assigner::new(&centroids, dim, method, pool).unwrap();
            let ready = start.seconds();
            let mut list = vec![0; 8192];
            let mut dist2 = vec![0.0; 8192];
            let time = seconds_per_call(|| {
                pool.install(|| {
                    (
                        sample.par_chunks(1024 * dim),
                        list.par_chunks_mut(1024),
                        dist2.par_chunks_mut(1024),
                    )
                        .into_par_iter()
                        .for_each(|(rows, list, dist2)| assigner.assign(rows, list, dist2));
                });
            });
            println!(
                "assign nlist {nlist:6} {method:?}: {:8.0} rows/s a thread, ready in {ready:.2} s",
                8192.0 / time
            );
            lists.push(list);
        }
        let same = lists[0].iter().zip(&lists[1]).filter(|(a, b)| a == b).count();
        println!("assign nlist {nlist:6} agreement {:.4}", same as f64 / 8192.0);
    }
}

fn kmeans(rows: &Rows, pool: &rayon::ThreadPool) {
    train(rows, 293, usize::MAX, 0, pool);
    for nlist in [293, 1172, 4688] {
        for refinements in [0, 1, 2] {
            train(rows, nlist, 1, refinements, pool);
        }
    }
}

fn train(
    rows: &Rows,
    nlist: usize,
    two_level_from: usize,
    refinements: usize,
    pool: &rayon::ThreadPool,
) {
    let sample = RowSlice::new(rows.first(256 * nlist), rows.dim).unwrap();
    let mut options = KmeansOptions::default();
    options.two_level_from = two_level_from;
    options.refinements = refinements;
    let start = Clock::start();
    let centroids = cluster::kmeans(&sample, nlist, &options, pool, &|_| {}).unwrap();
    let time = start.seconds();
    let assigner = Assigner::new(&centroids, rows.dim, AssignMethod::Flat, pool).unwrap();
    let probe = &rows.values[rows.values.len() - 20_000 * rows.dim..];
    let (mut list, mut dist2) = (vec![0; 20_000], vec![0.0; 20_000]);
    assigner.assign(probe, &mut list, &mut dist2);
    let error: f64 = dist2.iter().map(|d| f64::from(*d)).sum::<f64>() / 20_000.0;
    let levels = if two_level_from == 1 {
        format!("2 levels, {refinements} refinements")
    } else {
        "1 level".into()
    };
    println!(
        "kmeans nlist {nlist:5}, sample {:6}, {levels}: {time:6.2} s, mean error {error:.5}",
        sample.n()
    );
}

fn exact(rows: &Rows, peak: f64, pool: &rayon::ThreadPool) {
    let queries = rows.first(2000);
    for metric in [Metric::L2, Metric::Ip, Metric::Cosine] {
        let time = seconds_per_call(|| {
            cluster::exact_neighbours(rows, queries, 100, metric, None, pool, &|_| {}).unwrap();
        });
        let flops = 2.0 * rows.values.len() as f64 * 2000.0;
        let share = flops / time / 1e9 / peak;
        println!("exact {metric:?}, 2000 queries, k 100: {time:.2} s = {share:.2} of peak");
    }
}
