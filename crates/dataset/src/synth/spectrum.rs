//! Variances that fall by a power law.

/// Share of the energy that the leading half of the dims holds.
const LEADING_HALF: f64 = 0.9;

/// Standard deviation of each component: variances ∝ (i+1)^-p of sum 1, with the p that puts
/// [`LEADING_HALF`] of it into the first half of the dims (the larger half when odd).
pub(super) fn power_law(dim: usize) -> Vec<f32> {
    let (mut low, mut high) = (0.0, 8.0);
    // The share grows with p; 40 halvings leave p exact to f32.
    for _ in 0..40 {
        let p = 0.5 * (low + high);
        let variances = variances(dim, p);
        let half: f64 = variances[..dim.div_ceil(2)].iter().sum();
        if half < LEADING_HALF { low = p } else { high = p }
    }
    variances(dim, low).into_iter().map(|v| v.sqrt() as f32).collect()
}

fn variances(dim: usize, p: f64) -> Vec<f64> {
    let raw: Vec<f64> = (1..=dim).map(|i| (i as f64).powf(-p)).collect();
    let sum: f64 = raw.iter().sum();
    raw.into_iter().map(|v| v / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leading_half_holds_nine_tenths() {
        for dim in [2, 4, 64, 100, 384, 1536] {
            let deviations = power_law(dim);
            let energy = |part: &[f32]| part.iter().map(|&s| f64::from(s).powi(2)).sum::<f64>();
            assert!((energy(&deviations) - 1.0).abs() < 1e-5, "dim {dim}");
            assert!((energy(&deviations[..dim / 2]) - 0.9).abs() < 1e-4, "dim {dim}");
        }
        assert_eq!(power_law(1), [1.0]);
    }
}
