//! Where the tight bound applies, where it must not, and what it does at its ends.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod sample;

use codec::{Estimator, Factors, ListTerms, Metric, TightBound, prefix_factors};
use sample::{Sampler, distance2_64, dot64};

const EPSILON: f32 = 1.9;

/// A vector of a list and a query: rotated residual, centroid and query.
struct Triple {
    r: Vec<f32>,
    c: Vec<f32>,
    q: Vec<f32>,
}

impl Triple {
    fn gaussian(dims: usize, seed: u64) -> Self {
        let mut sampler = Sampler::new(seed);
        let [r, c, q] = [1.0, 3.0, 3.2].map(|scale| sampler.gaussian(dims, scale));
        Self { r, c, q }
    }

    fn factors(&self, m: usize, metric: Metric, estimator: Estimator) -> Factors {
        prefix_factors(&self.r, &self.c, m, metric, estimator)
    }

    fn prefix_sum(&self, m: usize) -> f32 {
        let signed = |(r, q): (&f32, &f32)| if *r >= 0.0 { f64::from(*q) } else { -f64::from(*q) };
        self.r[..m].iter().zip(&self.q).map(signed).sum::<f64>() as f32
    }

    fn list(&self, metric: Metric) -> ListTerms {
        let y2 = distance2_64(&self.q, &self.c);
        let term = if metric == Metric::L2 { y2 } else { -dot64(&self.q, &self.c) };
        ListTerms { term: term as f32, y: y2.sqrt() as f32 }
    }
}

fn plain(factors: Factors, sum: f32, list: &ListTerms, table_error: f32) -> (f32, f32) {
    let base = factors.add + factors.rescale * sum + list.term;
    let half = EPSILON * factors.error * list.y + factors.rescale.abs() * table_error;
    (base - half, base + half)
}

/// The formula of the design, with the norm known exactly: what recovering it must come close to.
#[test]
fn the_norm_is_recovered_well_enough_even_from_short_prefixes() {
    for (dims, m) in [(128, 128), (768, 384), (1536, 64), (4096, 64), (4096, 4096)] {
        for seed in 0..50 {
            let triple = Triple::gaussian(dims, seed);
            let factors = triple.factors(m, Metric::L2, Estimator::PerVector);
            let (sum, list) = (triple.prefix_sum(m), triple.list(Metric::L2));
            let n = dot64(&triple.r, &triple.r).sqrt();
            let y = f64::from(list.y);
            let base = f64::from(factors.add)
                + f64::from(factors.rescale) * f64::from(sum)
                + f64::from(list.term);
            let b = (n * n + y * y - base) / (2.0 * n * y);
            let w = f64::from(EPSILON) * f64::from(factors.error) / (2.0 * n);
            let u = (b + w * (1.0 + w * w - b * b).sqrt()) / (1.0 + w * w);
            let expected = n * n + y * y - 2.0 * n * y * u;
            let bound = TightBound::new(dims, m, Metric::L2, Estimator::PerVector, EPSILON);
            let found = f64::from(bound.lower(factors, sum, &list, 0.0));
            let off = (found - expected).abs() / (n * n + y * y);
            assert!(off < 4e-6, "dims {dims}, m {m}: {found} for {expected}, off by {off:e}");
        }
    }
}

#[test]
fn the_tight_bounds_lie_inside_the_plain_ones() {
    for seed in 0..200 {
        let triple = Triple::gaussian(256, seed);
        let factors = triple.factors(128, Metric::L2, Estimator::PerVector);
        let (sum, list) = (triple.prefix_sum(128), triple.list(Metric::L2));
        let bound = TightBound::new(256, 128, Metric::L2, Estimator::PerVector, EPSILON);
        for table_error in [0.0, 0.5, 5.0] {
            let (lowest, highest) = plain(factors, sum, &list, table_error);
            let lower = bound.lower(factors, sum, &list, table_error);
            let upper = bound.upper(factors, sum, &list, table_error);
            let rounding = 1e-5 * list.term;
            assert!(lowest - rounding <= lower && lower <= upper && upper <= highest + rounding);
            assert!(lower <= bound.lower(factors, sum, &list, 0.0));
        }
    }
}

#[test]
fn an_estimated_cosine_beyond_one_gives_the_bound_of_the_triangle_inequality() {
    let triple = Triple::gaussian(256, 1);
    let factors = triple.factors(256, Metric::L2, Estimator::PerVector);
    let list = triple.list(Metric::L2);
    let bound = TightBound::new(256, 256, Metric::L2, Estimator::PerVector, EPSILON);
    let n = dot64(&triple.r, &triple.r).sqrt() as f32;
    for (sum, expected) in [(1e4, (n - list.y).powi(2)), (-1e4, (n + list.y).powi(2))] {
        let found = if sum > 0.0 {
            bound.lower(factors, sum, &list, 0.0)
        } else {
            bound.upper(factors, sum, &list, 0.0)
        };
        assert!((found - expected).abs() < 1e-5 * expected, "{found} {expected}");
    }
}

#[test]
fn inner_products_and_the_papers_estimator_keep_the_plain_bound() {
    let triple = Triple::gaussian(256, 2);
    for (metric, estimator) in [
        (Metric::Ip, Estimator::PerVector),
        (Metric::Ip, Estimator::Paper),
        (Metric::L2, Estimator::Paper),
    ] {
        let factors = triple.factors(128, metric, estimator);
        let (sum, list) = (triple.prefix_sum(128), triple.list(metric));
        let bound = TightBound::new(256, 128, metric, estimator, EPSILON);
        let (lowest, highest) = plain(factors, sum, &list, 0.1);
        let rounding = 1e-5 * (list.term.abs() + list.y * list.y);
        assert!((bound.lower(factors, sum, &list, 0.1) - lowest).abs() < rounding);
        assert!((bound.upper(factors, sum, &list, 0.1) - highest).abs() < rounding);
    }
}

#[test]
fn vectors_with_nothing_in_the_prefix_or_no_norm_keep_finite_or_endless_plain_bounds() {
    let mut triple = Triple::gaussian(256, 3);
    let bound = TightBound::new(256, 128, Metric::L2, Estimator::PerVector, EPSILON);
    let list = triple.list(Metric::L2);
    for size in [0.0, 1e-20, 1e-6] {
        triple.r[..128].fill(size);
        let factors = triple.factors(128, Metric::L2, Estimator::PerVector);
        let sum = triple.prefix_sum(128);
        let (lower, upper) =
            (bound.lower(factors, sum, &list, 0.1), bound.upper(factors, sum, &list, 0.1));
        let distance = dot64(&triple.r, &triple.r) as f32 + list.term;
        assert!(lower < 0.0 && upper > 2.0 * distance, "size {size}: {lower}..{upper}");
    }
    triple.r.fill(0.0);
    let factors = triple.factors(128, Metric::L2, Estimator::PerVector);
    let (lower, upper) =
        (bound.lower(factors, 9.0, &list, 0.1), bound.upper(factors, 9.0, &list, 0.1));
    assert!(lower <= list.term && list.term <= upper && upper - lower < 1e-5 * list.term);
}
