//! Random vectors for the tests: Gaussian and heavy-tailed, from one small generator.
#![allow(dead_code, reason = "each test file uses a part")]

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

pub(crate) struct Sampler(Xoshiro256PlusPlus);

impl Sampler {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform in (0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }

    /// A pair of independent standard normal values (Box and Muller).
    fn normal_pair(&mut self) -> (f64, f64) {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        (radius * cos, radius * sin)
    }

    pub(crate) fn gaussian64(&mut self, dims: usize) -> Vec<f64> {
        let mut values: Vec<f64> = (0..dims.div_ceil(2))
            .flat_map(|_| {
                let (a, b) = self.normal_pair();
                [a, b]
            })
            .collect();
        values.truncate(dims);
        values
    }

    pub(crate) fn gaussian(&mut self, dims: usize, scale: f64) -> Vec<f32> {
        self.gaussian64(dims).into_iter().map(|value| (value * scale) as f32).collect()
    }

    /// Student's t with 3 degrees of freedom: now and then a coordinate ten times the others.
    pub(crate) fn heavy(&mut self, dims: usize) -> Vec<f32> {
        (0..dims)
            .map(|_| {
                let ((x, a), (b, c)) = (self.normal_pair(), self.normal_pair());
                (x / ((a * a + b * b + c * c) / 3.0).sqrt()) as f32
            })
            .collect()
    }
}

pub(crate) fn dot64(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

pub(crate) fn distance2_64(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum()
}

pub(crate) fn sub(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}
