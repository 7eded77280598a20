//! Table rounding is inside its bound whatever the query, and inside the distances of a scan.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod sample;

use codec::{
    Estimator, Factors, ListTerms, Metric, PrefixCodes, Query, Rotation, Scan, TableBits,
    Thresholds, TightBound, prefix_factors, sign_code,
};
use proptest::prelude::*;
use sample::{Sampler, distance2_64, sub};
use simd::{BatchBounds, Kernels};

/// Largest `|delta sum + offset - S_m(q)| / table_error` over 32 random codes.
fn worst_share(q: &[f32], m: usize, bits: TableBits, sampler: &mut Sampler) -> f64 {
    let mut query = Query::default();
    query.prepare(q, m, bits);
    let mut codes = PrefixCodes::new(m, 32);
    let signs: Vec<Vec<u8>> =
        (0..32).map(|_| (0..m / 8).map(|_| (sampler.uniform() * 256.0) as u8).collect()).collect();
    for (slot, code) in signs.iter().enumerate() {
        codes.set(slot as u64, code, Factors::default());
    }
    let mut sums = [0; 32];
    query.sums(Kernels::best(), codes.batch(0).0, &mut sums);
    let mut worst: f64 = 0.0;
    for (code, sum) in signs.iter().zip(sums) {
        let exact: f64 = (0..m)
            .map(|j| f64::from(q[j]) * if code[j / 8] >> (j % 8) & 1 == 1 { 1.0 } else { -1.0 })
            .sum();
        let off = (f64::from(query.delta() * sum as f32 + query.offset()) - exact).abs();
        let allowed = f64::from(query.table_error());
        if off > 0.0 {
            worst = worst.max(off / allowed);
        }
    }
    worst
}

fn adversarial_queries() -> Vec<(&'static str, Vec<f32>)> {
    let mut one_huge = vec![1e-3; 192];
    one_huge[100] = 1e6;
    let mut one_hot = vec![0.0; 192];
    one_hot[3] = -2.5;
    let mut alternating = vec![0.7; 192];
    alternating.iter_mut().step_by(2).for_each(|q| *q = -*q);
    vec![
        ("all equal", vec![0.3; 192]),
        ("one huge", one_huge),
        ("one hot", one_hot),
        ("alternating", alternating),
        ("zero", vec![0.0; 192]),
        ("denormal", vec![1e-41; 192]),
        ("tiny", vec![3e-36; 192]),
        ("huge", vec![1e15; 192]),
        ("ramp", (0..192).map(|j| (j as f32 - 96.0) * 0.01).collect()),
    ]
}

#[test]
fn adversarial_queries_stay_inside_the_table_error() {
    let mut sampler = Sampler::new(1);
    for (name, q) in adversarial_queries() {
        for bits in [TableBits::Eight, TableBits::Sixteen] {
            for m in [64, 128, 192] {
                let share = worst_share(&q, m, bits, &mut sampler);
                assert!(share <= 1.0, "{name}, {bits:?}, m {m}: {share:.3} of the table error");
            }
        }
    }
}

#[test]
fn sixteen_bit_tables_are_two_hundred_times_finer() {
    let q = Sampler::new(2).gaussian(768, 1.0);
    let (mut eight, mut sixteen) = (Query::default(), Query::default());
    eight.prepare(&q, 768, TableBits::Eight);
    sixteen.prepare(&q, 768, TableBits::Sixteen);
    let norm = sample::dot64(&q, &q).sqrt() as f32;
    assert!(eight.table_error() > 200.0 * sixteen.table_error());
    assert!(eight.table_error() < 0.2 * norm);
    assert!((eight.sum() - q.iter().sum::<f32>()).abs() < 1e-3);
}

#[test]
fn a_query_can_be_prepared_again_for_fewer_dims_and_other_tables() {
    let mut sampler = Sampler::new(3);
    let (first, second) = (sampler.gaussian(256, 5.0), sampler.gaussian(128, 1.0));
    let (mut reused, mut fresh) = (Query::default(), Query::default());
    reused.prepare(&first, 256, TableBits::Sixteen);
    reused.prepare(&second, 64, TableBits::Eight);
    fresh.prepare(&second, 64, TableBits::Eight);
    assert_eq!(format!("{reused:?}"), format!("{fresh:?}"));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn table_sums_stay_inside_the_table_error(
        seed: u64, blocks in 1_usize..9, scale in -12.0..12.0_f64, heavy: bool,
        bits in prop_oneof![Just(TableBits::Eight), Just(TableBits::Sixteen)],
    ) {
        let mut sampler = Sampler::new(seed);
        let m = 64 * blocks;
        let q = if heavy { sampler.heavy(m) } else { sampler.gaussian(m, 10_f64.powf(scale)) };
        let share = worst_share(&q, m, bits, &mut sampler);
        prop_assert!(share <= 1.0, "{share:.3} of the table error");
    }

    /// The query is a vector of the index: its distance is 0, and a threshold of 0 must keep it,
    /// however far the centroid, and even with bounds of no width of their own (epsilon 0).
    #[test]
    fn a_vector_equal_to_the_query_is_never_pruned(
        seed: u64, dim in 1_usize..300, scale in -3.0..4.0_f64, near in -6.0..1.0_f64,
        bits in prop_oneof![Just(TableBits::Eight), Just(TableBits::Sixteen)],
    ) {
        let mut sampler = Sampler::new(seed);
        let rotation = Rotation::new(dim, seed);
        let scale = 10_f64.powf(scale);
        let x = sampler.gaussian(dim, scale);
        let offset = sampler.gaussian(dim, scale * 10_f64.powf(near));
        let centroid: Vec<f32> = x.iter().zip(&offset).map(|(x, o)| x + o).collect();
        let padded = rotation.padded_dim();
        let [mut r, mut c, mut q] = [(); 3].map(|()| vec![0.0; padded]);
        rotation.apply(&sub(&x, &centroid), &mut r);
        rotation.apply(&centroid, &mut c);
        rotation.apply(&x, &mut q);
        for m in (64..=padded).step_by(64) {
            let mut query = Query::default();
            query.prepare(&q, m, bits);
            let y2 = distance2_64(&x, &centroid);
            let list = ListTerms { term: y2 as f32, y: y2.sqrt() as f32 };
            prop_assert!(survives_at_zero(&r, &c, &query, &list), "m {m} of {padded}");
        }
    }

    /// In the rotated space, with all magnitudes equal the bound has no width: rounding is all.
    #[test]
    fn a_duplicate_on_a_code_word_is_never_pruned(seed: u64, scale in -3.0..4.0_f64) {
        let mut sampler = Sampler::new(seed);
        let size = 10_f64.powf(scale) as f32;
        let r: Vec<f32> =
            (0..256).map(|_| if sampler.uniform() < 0.5 { size } else { -size }).collect();
        let c = sampler.gaussian(256, f64::from(size));
        let q: Vec<f32> = r.iter().zip(&c).map(|(r, c)| r + c).collect();
        for bits in [TableBits::Eight, TableBits::Sixteen] {
            let mut query = Query::default();
            query.prepare(&q, 256, bits);
            let y2 = distance2_64(&q, &c);
            let list = ListTerms { term: y2 as f32, y: y2.sqrt() as f32 };
            prop_assert!(survives_at_zero(&r, &c, &query, &list));
        }
    }
}

/// Whether neither the scan's bound nor the tight one prunes at a threshold of zero.
fn survives_at_zero(r: &[f32], c: &[f32], query: &Query, list: &ListTerms) -> bool {
    let m = query.prefix_dims();
    let factors = prefix_factors(r, c, m, Metric::L2, Estimator::PerVector);
    let mut code = vec![0; r.len() / 8];
    sign_code(r, &mut code);
    let mut codes = PrefixCodes::new(m, 1);
    codes.set(0, &code[..m / 8], factors);
    let thresholds = Thresholds { prune: 0.0, seed: 0.0 };
    let mut out = BatchBounds::default();
    [0.0, 1.9].into_iter().all(|epsilon| {
        let scan = Scan { kernels: Kernels::best(), query, codes: &codes, epsilon };
        let (survivors, _) = scan.batch(0, 1, list, thresholds, &mut out);
        let tight = TightBound::new(r.len(), m, Metric::L2, Estimator::PerVector, epsilon);
        survivors == 1
            && tight.lower(factors, out.estimate_sum[0], list, query.table_error()) <= 0.0
    })
}
