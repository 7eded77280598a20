//! A rotation keeps norms and inner products, mixes well whatever the dim, and survives its file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod sample;

use codec::{Rotation, RotationError};
use sample::{Sampler, dot64};

/// Powers of two, few and many blocks, a prime number of blocks larger than a block.
const DIMS: [usize; 13] = [64, 100, 128, 192, 384, 448, 768, 832, 960, 1000, 1536, 4160, 5000];

fn rotated(rotation: &Rotation, x: &[f32]) -> Vec<f32> {
    let mut out = vec![f32::NAN; rotation.padded_dim()];
    rotation.apply(x, &mut out);
    out
}

fn one_hot(dim: usize, at: usize) -> Vec<f32> {
    let mut x = vec![0.0; dim];
    x[at] = 1.0;
    x
}

fn kurtosis(y: &[f32]) -> f64 {
    let power = |k| y.iter().map(|&y| f64::from(y).powi(k)).sum::<f64>() / y.len() as f64;
    power(4) / power(2).powi(2)
}

#[test]
fn one_hot_vectors_spread_like_gaussians_at_every_dim() {
    for dim in DIMS {
        let (seeds, each) = (8, 24);
        let padded = Rotation::new(dim, 0).padded_dim() as f64;
        let (mut mean, mut worst) = (0.0, 0.0_f64);
        for seed in 0..seeds {
            let rotation = Rotation::new(dim, seed);
            for i in 0..each {
                let k = kurtosis(&rotated(&rotation, &one_hot(dim, i * dim / each)));
                mean += k / (seeds * each as u64) as f64;
                worst = worst.max(k);
            }
        }
        let haar = 3.0 * padded / (padded + 2.0);
        assert!((mean - haar).abs() < 0.1, "dim {dim}: kurtosis {mean:.3}, uniform {haar:.3}");
    }
}

#[test]
fn the_energy_of_a_prefix_varies_no_more_than_under_a_uniform_rotation() {
    for dim in DIMS {
        let padded = Rotation::new(dim, 0).padded_dim();
        let m = padded / 64 / 2 * 64;
        if m == 0 {
            continue;
        }
        let share = m as f64 / padded as f64;
        let (seeds, each) = (16, 16);
        let mut variance = 0.0;
        for seed in 0..seeds {
            let rotation = Rotation::new(dim, 100 + seed);
            for i in 0..each {
                let y = rotated(&rotation, &one_hot(dim, i * dim / each));
                let excess = dot64(&y[..m], &y[..m]) - share;
                variance += excess * excess / (seeds * each as u64) as f64;
            }
        }
        let haar = 2.0 * share * (1.0 - share) / (padded as f64 + 2.0);
        assert!(variance < 1.5 * haar, "dim {dim}: {variance:e} against {haar:e}");
    }
}

#[test]
fn norms_and_inner_products_are_kept_to_float_accuracy() {
    let mut sampler = Sampler::new(1);
    for dim in DIMS.into_iter().chain(1..=130) {
        let rotation = Rotation::new(dim, 9);
        assert_eq!(rotation.padded_dim(), dim.div_ceil(64) * 64);
        let (a, b) = (sampler.gaussian(dim, 1.0), sampler.heavy(dim));
        let (ra, rb) = (rotated(&rotation, &a), rotated(&rotation, &b));
        let scale = (dot64(&a, &a) * dot64(&b, &b)).sqrt();
        assert!((dot64(&ra, &rb) - dot64(&a, &b)).abs() < 1e-6 * scale, "dim {dim}");
        assert!((dot64(&ra, &ra) / dot64(&a, &a) - 1.0).abs() < 1e-6, "dim {dim}");
    }
}

#[test]
fn every_coordinate_of_a_small_rotation_is_orthogonal_to_every_other() {
    for dim in [64, 100, 192, 320] {
        let rotation = Rotation::new(dim, 3);
        let rows: Vec<_> = (0..dim).map(|i| rotated(&rotation, &one_hot(dim, i))).collect();
        for i in 0..dim {
            for j in 0..=i {
                let expected = if i == j { 1.0 } else { 0.0 };
                assert!((dot64(&rows[i], &rows[j]) - expected).abs() < 1e-6, "dim {dim}: {i}, {j}");
            }
        }
    }
}

#[test]
fn seeds_give_different_rotations_and_one_seed_always_the_same() {
    assert_eq!(Rotation::new(200, 5), Rotation::new(200, 5));
    assert_ne!(Rotation::new(200, 5), Rotation::new(200, 6));
}

#[test]
fn a_rotation_survives_its_bytes() {
    for dim in DIMS {
        let rotation = Rotation::new(dim, 77);
        let bytes = rotation.to_bytes();
        assert!(bytes.len() <= 16 + 4 * rotation.padded_dim() / 8);
        assert_eq!(Rotation::from_bytes(&bytes), Ok(rotation));
    }
}

#[test]
fn damaged_bytes_are_refused() {
    let bytes = Rotation::new(100, 1).to_bytes();
    assert_eq!(Rotation::from_bytes(&bytes[..15]), Err(RotationError::Short { found: 15 }));
    let cut = Rotation::from_bytes(&bytes[..bytes.len() - 1]).unwrap_err();
    assert_eq!(cut, RotationError::Length { dim: 100, expected: 64, found: 63 });
    for (at, value) in [(0, 0), (7, 1), (8, 2)] {
        let mut damaged = bytes.clone();
        damaged[at] = value;
        let error = Rotation::from_bytes(&damaged).unwrap_err();
        assert!(matches!(error, RotationError::Header { .. }), "byte {at}: {error}");
    }
}

#[test]
#[should_panic(expected = "a vector of this dim")]
fn a_vector_of_another_dim_is_a_programming_error() {
    Rotation::new(10, 0).apply(&[0.0; 11], &mut [0.0; 64]);
}
