//! The scale of an extra code is nearly the best there is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod sample;

use codec::{ExtraCode, Metric};
use sample::Sampler;
use simd::Kernels;

/// The largest `cos²(r, v)` over all scales: every breakpoint in order, levels raised one by one.
fn best_cosine2(r: &[f32], bits: u32) -> f64 {
    let half = 1 << (bits - 1);
    let a: Vec<f64> = r.iter().map(|&r| f64::from(r).abs()).collect();
    let mut breakpoints: Vec<(f64, u32, u32)> = a
        .iter()
        .enumerate()
        .filter(|&(_, &a)| a > 0.0)
        .flat_map(|(j, &a)| (1..half).map(move |k| (f64::from(k) / a, j as u32, k)))
        .collect();
    breakpoints.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
    let mut product = 0.5 * a.iter().sum::<f64>();
    let mut norm2 = 0.25 * a.len() as f64;
    let mut best = product * product / norm2;
    for (_, j, k) in breakpoints {
        product += a[j as usize];
        norm2 += 2.0 * f64::from(k);
        best = best.max(product * product / norm2);
    }
    best / a.iter().map(|a| a * a).sum::<f64>()
}

fn decode(r: &[f32], levels: &[u8], bits: u32) -> Vec<f64> {
    let half = 1 << (bits - 1);
    let code = |(&r, &low): (&f32, &u8)| i32::from(low) + if r >= 0.0 { half } else { 0 };
    let centre = (f64::from(1 << bits) - 1.0) / 2.0;
    r.iter().zip(levels).map(|pair| f64::from(code(pair)) - centre).collect()
}

fn cosine2(r: &[f32], v: &[f64]) -> f64 {
    let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        r.iter().zip(v).map(|(&r, &v)| f(f64::from(r), v)).sum()
    };
    sum(&|r, v| r * v).powi(2) / (sum(&|r, _| r * r) * sum(&|_, v| v * v))
}

/// Mean `1 - cos²` of our codes over that of the best codes.
fn loss_over_best(bits: u32, draw: impl Fn(&mut Sampler) -> Vec<f32>) -> f64 {
    let mut sampler = Sampler::new(u64::from(bits));
    let mut encoder = ExtraCode::new(bits);
    let (mut ours, mut best) = (0.0, 0.0);
    for _ in 0..30 {
        let r = draw(&mut sampler);
        encoder.encode(Kernels::best(), &r, &r, Metric::L2);
        ours += 1.0 - cosine2(&r, &decode(&r, encoder.levels(), bits));
        best += 1.0 - best_cosine2(&r, bits);
    }
    ours / best
}

fn check(bits: u32) {
    let sets = [
        ("gaussian 384", loss_over_best(bits, |s| s.gaussian(384, 0.05))),
        ("gaussian 768", loss_over_best(bits, |s| s.gaussian(768, 20.0))),
        ("heavy 384", loss_over_best(bits, |s| s.heavy(384))),
        ("heavy 768", loss_over_best(bits, |s| s.heavy(768))),
    ];
    for (name, ratio) in sets {
        assert!(ratio < 1.01, "B = {bits}, {name}: {ratio:.4} times the least possible loss");
        assert!(ratio > 1.0 - 1e-9, "B = {bits}, {name}: the reference is not the best");
    }
}

macro_rules! nearly_the_best_code {
    ($($name:ident: $bits:literal),*) => {
        $(#[test] fn $name() { check($bits); })*
    };
}

nearly_the_best_code! {
    two_bits_reach_the_best_code_within_a_hundredth: 2,
    three_bits_reach_the_best_code_within_a_hundredth: 3,
    four_bits_reach_the_best_code_within_a_hundredth: 4,
    five_bits_reach_the_best_code_within_a_hundredth: 5,
    six_bits_reach_the_best_code_within_a_hundredth: 6,
    seven_bits_reach_the_best_code_within_a_hundredth: 7,
    eight_bits_reach_the_best_code_within_a_hundredth: 8,
    nine_bits_reach_the_best_code_within_a_hundredth: 9
}
