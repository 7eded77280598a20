//! Standard normal numbers by the ziggurat method, about 3 ns each.
//!
//! ```text
//! 128 layers of equal area under exp(-x²/2); layer i spans |x| ≤ x[i]
//! draw a layer and a point across it:
//!     below x[i+1]    inside the curve for sure (98.8 %): done
//!     layer 0         beyond R = x[1]: the tail, by Marsaglia's exponential method
//!     otherwise       the wedge: accept if a random height is below the curve
//! ```
//! Marsaglia and Tsang, "The ziggurat method for generating random variables" (2000), with
//! layer and position from different bits, as Doornik (2005) showed to be necessary.

use std::array;

use crate::rng::Rng;

const LAYERS: usize = 128;
/// Where the tail begins.
const R: f64 = 3.442_619_855_899;
/// Area of each layer.
const V: f64 = 9.912_563_035_262_17e-3;

/// The layers of the ziggurat.
pub(super) struct Normal {
    x: [f64; LAYERS + 1],
    /// x[i+1] / x[i]: the part of layer i that needs no further look.
    inside: [f64; LAYERS],
}

impl Normal {
    pub(super) fn new() -> Self {
        let mut x = [0.0; LAYERS + 1];
        x[0] = V / curve(R);
        x[1] = R;
        for i in 2..LAYERS {
            x[i] = (-2.0 * (V / x[i - 1] + curve(x[i - 1])).ln()).sqrt();
        }
        let inside = array::from_fn(|i| x[i + 1] / x[i]);
        Self { x, inside }
    }

    pub(super) fn draw(&self, rng: &mut Rng) -> f64 {
        loop {
            let bits = rng.bits();
            let layer = (bits % LAYERS as u64) as usize;
            let across = (bits >> 11) as f64 * (2.0 / (1u64 << 53) as f64) - 1.0;
            if across.abs() < self.inside[layer] {
                return across * self.x[layer];
            }
            if layer == 0 {
                return tail(rng).copysign(across);
            }
            let x = across * self.x[layer];
            let (outer, inner) = (curve(self.x[layer]), curve(self.x[layer + 1]));
            if outer + rng.unit() * (inner - outer) < curve(x) {
                return x;
            }
        }
    }
}

/// The density up to its constant.
fn curve(x: f64) -> f64 {
    (-0.5 * x * x).exp()
}

/// A number beyond R, distributed like a normal one that is known to be there.
fn tail(rng: &mut Rng) -> f64 {
    loop {
        // 1 - unit is in (0, 1], where the logarithm is finite.
        let x = -(1.0 - rng.unit()).ln() / R;
        let y = -(1.0 - rng.unit()).ln();
        if 2.0 * y >= x * x {
            return R + x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_tails_are_those_of_the_normal_distribution() {
        let (normal, mut rng) = (Normal::new(), Rng::stream(1, 1, 1));
        let draws: Vec<f64> = (0..2_000_000).map(|_| normal.draw(&mut rng)).collect();
        let mean = |f: &dyn Fn(f64) -> f64| draws.iter().map(|&x| f(x)).sum::<f64>() / 2e6;
        // Standard errors: √(1/n) = 7e-4, √(2/n) = 1e-3, √(15/n) = 2.7e-3, √(96/n) = 7e-3.
        assert!(mean(&|x| x).abs() < 4e-3);
        assert!((mean(&|x| x * x) - 1.0).abs() < 6e-3);
        assert!(mean(&|x| x.powi(3)).abs() < 1.5e-2);
        assert!((mean(&|x| x.powi(4)) - 3.0).abs() < 4e-2);
        // P(|X| > t), from tables; 3.6 lies beyond R.
        for (t, p) in [(0.5, 0.617_075), (1.0, 0.317_311), (2.0, 0.045_500), (3.6, 3.1822e-4)] {
            let found = mean(&|x| f64::from(u8::from(x.abs() > t)));
            let error = (p * (1.0 - p) / 2e6_f64).sqrt();
            assert!((found - p).abs() < 5.0 * error, "P(|X| > {t}) = {found}, expected {p}");
        }
    }

    #[test]
    fn the_last_layer_ends_at_zero() {
        let normal = Normal::new();
        // The top layer's area must be V as well: the constants R and V belong together.
        let top = normal.x[LAYERS - 1] * (1.0 - curve(normal.x[LAYERS - 1]));
        assert!((top - V).abs() < 1e-9, "{top}");
    }
}
