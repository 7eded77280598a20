//! How often a lower bound lies above the true distance, over random rotations of a fixed pair.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod sample;

use codec::{Estimator, ListTerms, Metric, Rotation, TightBound, prefix_factors};
use sample::{Sampler, dot64};

const EPSILON: f32 = 1.9;
/// Chance that a normal variable exceeds 1.9: what a bound that covers every angle alike misses.
const NOMINAL: f64 = 0.0287;

/// Misses of the paper's bound, of the per-vector bound and of the tight bound.
#[derive(Default)]
struct Misses {
    trials: f64,
    paper: f64,
    plain: f64,
    tight: f64,
}

impl Misses {
    /// Counts one pair of unit vectors `r` and `y` with inner product `beta`.
    fn count(&mut self, r: &[f32], y: &[f32], m: usize, beta: f64) {
        let list = ListTerms { term: 1.0, y: 1.0 };
        let centroid = vec![0.0; r.len()];
        let sum = r[..m].iter().zip(y).map(|(r, y)| if *r >= 0.0 { *y } else { -*y }).sum::<f32>();
        let distance = (2.0 - 2.0 * beta) as f32;
        let lower = |estimator| {
            let factors = prefix_factors(r, &centroid, m, Metric::L2, estimator);
            (factors, factors.add + factors.rescale * sum + 1.0 - EPSILON * factors.error)
        };
        let (factors, plain) = lower(Estimator::PerVector);
        let (_, paper) = lower(Estimator::Paper);
        let bound = TightBound::new(r.len(), m, Metric::L2, Estimator::PerVector, EPSILON);
        let tight = bound.lower(factors, sum, &list, 0.0);
        assert!(tight >= plain - 1e-5, "tight {tight} below plain {plain}");
        assert!(bound.upper(factors, sum, &list, 0.0) >= tight);
        self.trials += 1.0;
        self.paper += f64::from(u8::from(paper > distance));
        self.plain += f64::from(u8::from(plain > distance));
        self.tight += f64::from(u8::from(tight > distance));
    }
}

/// Four standard deviations of the sampling error of a rate.
fn near(found: f64, expected: f64, trials: f64, what: &str) {
    let rate = found / trials;
    let tolerance = 4.0 * (expected.max(1e-4) / trials).sqrt() + 1e-4;
    assert!(
        (rate - expected).abs() < tolerance,
        "{what}: {:.2} % misses, expected {:.2} +- {:.2} %",
        100.0 * rate,
        100.0 * expected,
        100.0 * tolerance
    );
}

/// Appendix A.4 of the paper, and the same for the bounds of this crate.
#[test]
fn bounds_of_uniform_rotations_miss_as_often_as_theory_says() {
    const DIMS: usize = 768;
    // Cosine, prefix dims, misses of the paper's bound, of the per-vector bound.
    let rows: [(f64, usize, f64, f64); 5] = [
        (0.5, DIMS, 0.0018, 0.0142),
        (0.5, DIMS / 2, 0.0217, 0.0143),
        (0.5, DIMS / 4, 0.0354, 0.0139),
        (0.9, DIMS, 0.0, 0.0),
        (0.9, DIMS / 2, 0.0021, 0.0),
    ];
    let mut sampler = Sampler::new(4);
    let mut misses: [Misses; 5] = Default::default();
    for _ in 0..30_000 {
        let (r, other) = orthonormal_pair(&mut sampler, DIMS);
        for (misses, (beta, m, ..)) in misses.iter_mut().zip(rows) {
            let y: Vec<f32> = (r.iter().zip(&other))
                .map(|(r, o)| beta as f32 * r + (1.0 - beta * beta).sqrt() as f32 * o)
                .collect();
            misses.count(&r, &y, m, beta);
        }
    }
    for (misses, (beta, m, paper, plain)) in misses.iter().zip(rows) {
        near(misses.paper, paper, misses.trials, &format!("paper, beta {beta}, m {m}"));
        near(misses.plain, plain, misses.trials, &format!("per-vector, beta {beta}, m {m}"));
        near(misses.tight, NOMINAL, misses.trials, &format!("tight, beta {beta}, m {m}"));
    }
}

fn orthonormal_pair(sampler: &mut Sampler, dims: usize) -> (Vec<f32>, Vec<f32>) {
    let normalized = |v: Vec<f32>| -> Vec<f32> {
        let norm = dot64(&v, &v).sqrt() as f32;
        v.into_iter().map(|x| x / norm).collect()
    };
    let first = normalized(sampler.gaussian(dims, 1.0));
    let second = sampler.gaussian(dims, 1.0);
    let along = dot64(&first, &second) as f32;
    let second = second.iter().zip(&first).map(|(s, f)| s - along * f).collect();
    (first, normalized(second))
}

/// Miss rate of the tight bound over the fast rotations of a pair with cosine `beta`.
fn rate_under_fast_rotations(x: &[f32], q: &[f32], m: usize, beta: f64, seeds: u64) -> f64 {
    let mut misses = Misses::default();
    for seed in 0..seeds {
        let rotation = Rotation::new(x.len(), seed);
        let mut r = vec![0.0; rotation.padded_dim()];
        let mut y = r.clone();
        rotation.apply(x, &mut r);
        rotation.apply(q, &mut y);
        misses.count(&r, &y, m, beta);
    }
    misses.tight / misses.trials
}

const FAST: [(usize, usize); 5] = [(384, 384), (384, 192), (768, 192), (960, 448), (1024, 512)];

#[test]
fn bounds_of_the_fast_rotation_miss_as_often_as_those_of_a_uniform_one() {
    let beta = 0.6;
    for (dim, m) in FAST {
        let (x, other) = orthonormal_pair(&mut Sampler::new(dim as u64), dim);
        let q: Vec<f32> = x.iter().zip(&other).map(|(x, o)| 0.6 * x + 0.8 * o).collect();
        let seeds = 3000;
        let rate = rate_under_fast_rotations(&x, &q, m, beta, seeds);
        near(rate * seeds as f64, NOMINAL, seeds as f64, &format!("dim {dim}, m {m}"));
    }
}

/// Sparse vectors are the hardest for a fast rotation: two coordinates side by side, in one
/// Hadamard block, and in two.
#[test]
fn bounds_of_the_fast_rotation_miss_no_more_often_for_sparse_vectors() {
    for (dim, m) in FAST {
        for other in [8, 24, dim - 3] {
            let mut x = vec![0.0; dim];
            let mut q = vec![0.0; dim];
            x[7] = 1.0;
            (q[7], q[other]) = (0.6, 0.8);
            let rate = rate_under_fast_rotations(&x, &q, m, 0.6, 1500);
            assert!(rate < NOMINAL + 0.018, "dim {dim}, m {m}, {other}: {:.2} %", 100.0 * rate);
        }
    }
}
