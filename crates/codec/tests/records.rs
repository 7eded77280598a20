//! The whole way of a vector: rotate, encode, scan, score, against exact distances in f64.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod sample;

use codec::{
    Encoder, Estimator, ListTerms, Metric, PrefixCodes, Query, Rotation, Scan, SplitRecord,
    TableBits, Thresholds,
};
use sample::{Sampler, distance2_64, dot64, sub};
use simd::{BatchBounds, Kernels};

/// Vectors of one list, encoded, and what is needed to ask for them.
struct List {
    rotation: Rotation,
    shape: SplitRecord,
    vectors: Vec<Vec<f32>>,
    centroid: Vec<f32>,
    codes: PrefixCodes,
    records: Vec<u8>,
}

impl List {
    fn encode(
        vectors: Vec<Vec<f32>>,
        centroid: Vec<f32>,
        m: usize,
        bits: u32,
        metric: Metric,
    ) -> Self {
        let rotation = Rotation::new(centroid.len(), 42);
        let padded = rotation.padded_dim();
        let shape = SplitRecord { padded, prefix_dims: m, bits, metric };
        let mut encoder = Encoder::new(shape, Estimator::PerVector);
        let mut codes = PrefixCodes::new(m, vectors.len() as u64);
        let mut records = vec![0; shape.len() * vectors.len()];
        let (mut r, mut c, mut prefix) = (vec![0.0; padded], vec![0.0; padded], vec![0; m / 8]);
        rotation.apply(&centroid, &mut c);
        for (i, x) in vectors.iter().enumerate() {
            rotation.apply(&sub(x, &centroid), &mut r);
            let record = &mut records[i * shape.len()..][..shape.len()];
            let factors = encoder.encode(&r, &c, &mut prefix, record);
            codes.set(i as u64, &prefix, factors);
        }
        Self { rotation, shape, vectors, centroid, codes, records }
    }

    fn terms(&self, q: &[f32]) -> ListTerms {
        let y2 = distance2_64(q, &self.centroid);
        let term = match self.shape.metric {
            Metric::L2 => y2,
            Metric::Ip => -dot64(q, &self.centroid),
        };
        ListTerms { term: term as f32, y: y2.sqrt() as f32 }
    }

    /// For each vector: score, true distance, scanned lower and upper bound.
    fn search(&self, q: &[f32]) -> Vec<[f64; 4]> {
        let kernels = Kernels::best();
        let mut rotated = vec![0.0; self.shape.padded];
        self.rotation.apply(q, &mut rotated);
        let mut query = Query::default();
        query.prepare(&rotated, self.shape.prefix_dims, TableBits::Sixteen);
        let list = self.terms(q);
        let scan = Scan { kernels, query: &query, codes: &self.codes, epsilon: 4.0 };
        let all = Thresholds { prune: f32::INFINITY, seed: f32::INFINITY };
        let mut bounds = BatchBounds::default();
        (self.vectors.iter().enumerate())
            .map(|(i, x)| {
                let (batch, slot) = (i as u64 / 32, i % 32);
                let (survivors, _) = scan.batch(batch, 1 << slot, &list, all, &mut bounds);
                assert_eq!(survivors, 1 << slot);
                let record = &self.records[i * self.shape.len()..][..self.shape.len()];
                let sum = bounds.estimate_sum[slot];
                let score = self.shape.score(kernels, record, &query, sum, &list);
                let exact = match self.shape.metric {
                    Metric::L2 => distance2_64(x, q),
                    Metric::Ip => -dot64(x, q),
                };
                [f64::from(score), exact]
                    .into_iter()
                    .chain([bounds.lower[slot], bounds.upper[slot]].map(f64::from))
                    .collect::<Vec<_>>()
                    .try_into()
                    .unwrap()
            })
            .collect()
    }

    /// `N Y` of a vector and a query: what the error of an estimate is relative to.
    fn scale(&self, i: usize, q: &[f32]) -> f64 {
        (distance2_64(&self.vectors[i], &self.centroid) * distance2_64(q, &self.centroid)).sqrt()
    }
}

/// Root mean square of the error of `<r, y>` over `N Y`, and the worst one.
fn errors(dim: usize, m: usize, bits: u32, metric: Metric) -> (f64, f64) {
    let mut sampler = Sampler::new(u64::from(bits));
    let centroid = sampler.gaussian(dim, 1.0);
    let mut near = |scale| -> Vec<f32> {
        sampler.gaussian(dim, scale).iter().zip(&centroid).map(|(x, c)| x + c).collect()
    };
    let vectors = (0..64).map(|_| near(0.6)).collect();
    let queries: Vec<_> = (0..8).map(|_| near(0.7)).collect();
    let list = List::encode(vectors, centroid.clone(), m, bits, metric);
    let weight = if metric == Metric::L2 { 2.0 } else { 1.0 };
    let (mut squares, mut worst, mut count) = (0.0, 0.0_f64, 0.0);
    for q in &queries {
        for (i, [score, exact, ..]) in list.search(q).into_iter().enumerate() {
            let error = (score - exact).abs() / weight / list.scale(i, q);
            (squares, worst, count) = (squares + error * error, worst.max(error), count + 1.0);
        }
    }
    (f64::sqrt(squares / count), worst)
}

#[test]
fn the_error_halves_with_every_bit_and_nine_bits_are_nearly_exact() {
    for (dim, m) in [(384, 384), (384, 128), (768, 384)] {
        for metric in [Metric::L2, Metric::Ip] {
            let found: Vec<_> = (2..=9).map(|bits| errors(dim, m, bits, metric)).collect();
            for pair in found.windows(2) {
                assert!(pair[1].0 < 0.7 * pair[0].0, "{dim}/{m} {metric:?}: {found:?}");
            }
            let (rms, worst) = found[7];
            let unit = 1.0 / (dim as f64).sqrt();
            assert!(rms < 6e-3 * unit && worst < 2.5e-2 * unit, "{rms:e} {worst:e}");
        }
    }
}

#[test]
fn every_small_dim_is_padded_and_estimated() {
    for dim in 1..=130 {
        let mut sampler = Sampler::new(dim as u64);
        let [x, c, q] = [(); 3].map(|()| sampler.gaussian(dim, 1.0));
        let padded = dim.div_ceil(64) * 64;
        for m in (64..=padded).step_by(64) {
            for metric in [Metric::L2, Metric::Ip] {
                let list = List::encode(vec![x.clone()], c.clone(), m, 9, metric);
                let [score, exact, lower, upper] = list.search(&q)[0];
                let scale = list.scale(0, &q);
                let size = scale + exact.abs() + dot64(&q, &q);
                assert!((score - exact).abs() < 4e-3 * scale + 1e-6 * size, "dim {dim}, m {m}");
                assert!(lower <= exact && exact <= upper, "dim {dim}, m {m}, {metric:?}");
            }
        }
    }
}

#[test]
fn a_vector_on_its_centroid_has_the_exact_distance() {
    let mut sampler = Sampler::new(5);
    let (c, q) = (sampler.gaussian(100, 1.0), sampler.gaussian(100, 1.0));
    for metric in [Metric::L2, Metric::Ip] {
        for bits in 2..=9 {
            let list = List::encode(vec![c.clone()], c.clone(), 64, bits, metric);
            let [score, exact, lower, upper] = list.search(&q)[0];
            let tolerance = 3e-6 * dot64(&q, &q);
            assert!((score - exact).abs() < tolerance, "{score} {exact}");
            assert!(lower <= exact + tolerance && upper >= exact - tolerance);
            assert!(upper - lower < 4.0 * tolerance, "a zero residual has no error");
        }
    }
}

#[test]
fn duplicates_of_the_query_score_next_to_zero_and_never_below() {
    let mut sampler = Sampler::new(6);
    let (x, c) = (sampler.gaussian(200, 1.0), sampler.gaussian(200, 1.0));
    for bits in [2, 5, 9] {
        let list = List::encode(vec![x.clone(); 40], c.clone(), 128, bits, Metric::L2);
        let found = list.search(&x);
        let y2 = distance2_64(&x, &c);
        for [score, _, lower, _] in found.iter().copied() {
            assert!((0.0..2e-4 * y2).contains(&score), "B = {bits}: {score}");
            assert!(lower <= 0.0);
        }
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "equal vectors, equal scores");
    }
}

#[test]
fn sparse_residuals_far_from_gaussian_are_estimated_too() {
    for dim in [64, 130, 384] {
        let mut sampler = Sampler::new(7);
        let c = sampler.gaussian(dim, 0.1);
        let mut x = c.clone();
        x[dim / 2] += 3.0;
        let mut q = c.clone();
        q[dim / 2] += 2.0;
        q[0] -= 1.0;
        let list = List::encode(vec![x], c, 64, 9, Metric::L2);
        let [score, exact, lower, upper] = list.search(&q)[0];
        let scale = list.scale(0, &q);
        assert!((score - exact).abs() < 5e-3 * scale, "dim {dim}: {score} {exact}");
        assert!(lower <= exact && exact <= upper);
    }
}

#[test]
fn a_record_is_as_long_as_its_parts() {
    let shape = SplitRecord { padded: 768, prefix_dims: 384, bits: 9, metric: Metric::L2 };
    assert_eq!(shape.len(), 48 + 768 + 8);
    let shape = SplitRecord { padded: 128, prefix_dims: 128, bits: 2, metric: Metric::Ip };
    assert_eq!(shape.len(), 16 + 8);
}

#[test]
#[should_panic(expected = "codes have 2 to 9 bits")]
fn one_bit_is_no_extra_code() {
    let shape = SplitRecord { padded: 64, prefix_dims: 64, bits: 1, metric: Metric::L2 };
    Encoder::new(shape, Estimator::PerVector);
}
