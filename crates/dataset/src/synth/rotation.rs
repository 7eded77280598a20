//! A random rotation in O(dim · log dim).
//!
//! ```text
//! twice:  flip random signs, Walsh-Hadamard on the leading p dims,
//!         flip random signs, Walsh-Hadamard on the trailing p dims
//! p = largest power of two ≤ dim; where p = dim the second half of each round is left out
//! ```
//! Orthogonal for any dimension, and enough mixing that no axis is special.

use crate::rng::Rng;

const DOMAIN: u64 = 3;

/// An orthogonal map of fixed dimension.
pub(super) struct Rotation {
    /// Per pass, a factor for each dim: 1 or -1.
    signs: Vec<Vec<f32>>,
    block: usize,
}

impl Rotation {
    pub(super) fn new(dim: usize, seed: u64) -> Self {
        let block = 1 << dim.ilog2();
        let passes = if block == dim { 2 } else { 4 };
        let signs = (0..passes)
            .map(|pass| {
                let mut rng = Rng::stream(seed, DOMAIN, pass);
                (0..dim).map(|_| if rng.bits() >> 63 == 0 { 1.0 } else { -1.0 }).collect()
            })
            .collect();
        Self { signs, block }
    }

    /// Rotate in place; `x` has the dimension given to [`new`](Self::new).
    pub(super) fn apply(&self, x: &mut [f32]) {
        let scale = 1.0 / (self.block as f32).sqrt();
        for (pass, signs) in self.signs.iter().enumerate() {
            x.iter_mut().zip(signs).for_each(|(v, sign)| *v *= sign);
            let start = if pass % 2 == 0 { 0 } else { x.len() - self.block };
            let block = &mut x[start..start + self.block];
            walsh_hadamard(block);
            block.iter_mut().for_each(|v| *v *= scale);
        }
    }
}

fn walsh_hadamard(x: &mut [f32]) {
    let mut half = 1;
    while half < x.len() {
        for pair in x.chunks_exact_mut(2 * half) {
            let (left, right) = pair.split_at_mut(half);
            for (a, b) in left.iter_mut().zip(right) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_orthonormal_and_spread_over_the_axes() {
        for dim in [1, 2, 3, 7, 64, 65, 100] {
            let rotation = Rotation::new(dim, 5);
            let columns: Vec<Vec<f32>> = (0..dim)
                .map(|i| {
                    let mut column = vec![0.0; dim];
                    column[i] = 1.0;
                    rotation.apply(&mut column);
                    column
                })
                .collect();
            for (i, a) in columns.iter().enumerate() {
                for (j, b) in columns.iter().enumerate() {
                    let dot: f64 =
                        a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
                    assert!((dot - f64::from(u8::from(i == j))).abs() < 1e-5, "dim {dim}");
                }
                let largest = a.iter().fold(0.0f32, |m, v| m.max(v.abs()));
                assert!(dim < 64 || largest < 0.6, "dim {dim}: axis {i} stays at {largest}");
            }
        }
    }
}
