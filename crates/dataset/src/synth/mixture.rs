//! The distribution rows are drawn from, and the drawing of one row.

use super::normal::Normal;
use super::rotation::Rotation;
use super::spectrum::power_law;
use super::{Norms, Spec, Spectrum};
use crate::rng::Rng;
use crate::{Dtype, Rounding};

/// Streams of the centres.
const CENTRES: u64 = 4;

/// Share of the energy that lies in the centres. With more, a few lists hold all neighbours of
/// a query; at 0.35 about as many rows must be looked at as in real embeddings.
const CENTRE_SHARE: f64 = 0.35;

/// Everything that all rows share. Memory: clusters · dim floats.
pub(super) struct Mixture {
    spec: Spec,
    normal: Normal,
    rotation: Rotation,
    /// Standard deviation of each component before the rotation.
    deviations: Vec<f32>,
    /// Clusters · dim; empty when there is no structure.
    centres: Vec<f32>,
    /// Factor of the deviations in each cluster.
    spreads: Vec<f32>,
}

impl Mixture {
    pub(super) fn new(spec: &Spec) -> Self {
        let normal = Normal::new();
        let rotation = Rotation::new(spec.dim, spec.seed);
        let mut mixture = Self {
            spec: spec.clone(),
            normal,
            rotation,
            deviations: vec![1.0; spec.dim],
            centres: Vec::new(),
            spreads: Vec::new(),
        };
        if spec.spectrum == Spectrum::Power {
            mixture.deviations = power_law(spec.dim);
            mixture.place_centres();
        }
        mixture
    }

    fn place_centres(&mut self) {
        let clusters = self.spec.clusters();
        self.centres.reserve_exact(clusters * self.spec.dim);
        for cluster in 0..clusters as u64 {
            let mut rng = Rng::stream(self.spec.seed, CENTRES, cluster);
            let spread = (1.0 - CENTRE_SHARE).sqrt() * (0.7 + 0.6 * rng.unit());
            self.spreads.push(spread as f32);
            for &deviation in &self.deviations {
                let centre = f64::from(deviation) * self.normal.draw(&mut rng);
                self.centres.push((CENTRE_SHARE.sqrt() * centre) as f32);
            }
        }
    }

    /// Bytes of a row in the type of the file.
    pub(super) fn row_bytes(&self) -> usize {
        self.spec.dim * self.spec.dtype.size()
    }

    /// Fill `bytes` with rows from number `start` of a family of streams on.
    pub(super) fn fill(&self, domain: u64, start: u64, bytes: &mut [u8]) {
        let mut row = vec![0.0; self.spec.dim];
        let mut encoded = Vec::with_capacity(self.row_bytes());
        for (number, target) in (start..).zip(bytes.chunks_exact_mut(self.row_bytes())) {
            self.draw(&mut Rng::stream(self.spec.seed, domain, number), &mut row);
            encoded.clear();
            // Clamping refuses NaN alone, and rows are finite.
            if self.spec.dtype.encode(&row, Rounding::Clamp, &mut encoded).is_ok() {
                target.copy_from_slice(&encoded);
            }
        }
    }

    fn draw(&self, rng: &mut Rng, row: &mut [f32]) {
        let cluster = self.cluster(rng.unit());
        let norm = match self.spec.norms {
            Norms::Unit => 1.0,
            Norms::Spread => 10f64.powf(2.0 * rng.unit() - 1.0),
        };
        let spread = self.spreads.get(cluster).copied().unwrap_or(1.0);
        for (v, deviation) in row.iter_mut().zip(&self.deviations) {
            *v = spread * deviation * self.normal.draw(rng) as f32;
        }
        let centre = self.centres.chunks_exact(self.spec.dim).nth(cluster).unwrap_or(&[]);
        row.iter_mut().zip(centre).for_each(|(v, c)| *v += c);
        self.rotation.apply(row);
        let length = row.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt();
        let scale = norm * self.scale() / length.max(f64::MIN_POSITIVE);
        let shift = if self.spec.dtype == Dtype::U8 { 128.0 } else { 0.0 };
        row.iter_mut().for_each(|v| *v = *v * scale as f32 + shift);
    }

    /// u^(3/2) has density ∝ x^(-1/3): the first of C clusters gets C^(-2/3) of the rows.
    fn cluster(&self, u: f64) -> usize {
        (u * u.sqrt() * self.spreads.len() as f64) as usize
    }

    /// What components are multiplied by before they are rounded to bytes. A component of a unit
    /// vector has deviation 1/√dim; bytes reach 4 deviations of unit vectors, and 3 of the
    /// longest where norms are spread.
    fn scale(&self) -> f64 {
        let per_deviation = match (self.spec.dtype, self.spec.norms) {
            (Dtype::F32 | Dtype::F16 | Dtype::F64, _) => return 1.0,
            (Dtype::U8 | Dtype::I8, Norms::Unit) => 32.0,
            (Dtype::U8 | Dtype::I8, Norms::Spread) => 4.0,
        };
        per_deviation * (self.spec.dim as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_gather_around_centres_in_clusters_of_unequal_size() {
        let (dim, n) = (96, 4000);
        let (spectrum, norms, dtype) = (Spectrum::Power, Norms::Unit, Dtype::F32);
        let spec = Spec { n, dim, seed: 11, spectrum, norms, dtype };
        let mixture = Mixture::new(&spec);
        let mut sums = vec![vec![0.0f64; dim]; spec.clusters()];
        let mut sizes = vec![0u32; spec.clusters()];
        let mut row = vec![0.0; dim];
        for number in 0..n {
            let mut rng = Rng::stream(spec.seed, 1, number);
            let cluster = mixture.cluster(rng.clone().unit());
            mixture.draw(&mut rng, &mut row);
            sizes[cluster] += 1;
            sums[cluster].iter_mut().zip(&row).for_each(|(sum, &v)| *sum += f64::from(v));
        }
        // 64 clusters: the first has a 16th of the rows, the last a 96th.
        assert!((200..300).contains(&sizes[0]), "{}", sizes[0]);
        assert!((20..65).contains(&sizes[63]), "{}", sizes[63]);
        // The mean of a cluster's unit rows keeps the energy of its centre; without clusters it
        // would keep one part in its size.
        let energy: f64 = sums.iter().zip(&sizes).fold(0.0, |energy, (sum, &size)| {
            energy + sum.iter().map(|v| v * v).sum::<f64>() / f64::from(size)
        }) / n as f64;
        assert!((0.3..0.45).contains(&energy), "{energy}");
    }
}
