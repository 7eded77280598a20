//! Scalar records from ranges to scores, against exact distances in f64.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod sample;

use codec::{
    ListTerms, Metric, ScalarEncoder, ScalarQuery, ScalarRange, ScalarRanges, ScalarRangesError,
    ScalarRecord,
};
use proptest::prelude::*;
use sample::{Sampler, dot64};
use simd::{Kernels, ex_unpack};

/// Ranges fitted to each column of `residuals`.
fn fit(bits: u32, residuals: &[Vec<f32>]) -> ScalarRanges {
    let columns = (0..residuals[0].len()).map(|j| residuals.iter().map(|r| r[j]).collect());
    ScalarRanges::new(&columns.map(|c: Vec<f32>| ScalarRange::fit(bits, &c)).collect::<Vec<_>>())
}

fn gaussian_residuals(sampler: &mut Sampler, count: usize, dims: usize) -> Vec<Vec<f32>> {
    (0..count).map(|_| sampler.gaussian(dims, 0.6)).collect()
}

/// Encodes a residual; the record and what it decodes to, by way of the packed levels.
fn encode(shape: ScalarRecord, ranges: &ScalarRanges, r: &[f32], c: &[f32]) -> (Vec<u8>, Vec<f64>) {
    let mut record = vec![0; shape.len()];
    ScalarEncoder::new(shape, ranges).encode(r, c, &mut record);
    let mut levels = vec![0; shape.padded];
    ex_unpack(shape.bits, &record[..record.len() - 4], &mut levels);
    let bytes = ranges.to_bytes();
    let float = |at: usize| f64::from(f32::from_le_bytes(bytes[4 * at..][..4].try_into().unwrap()));
    let value = |j: usize| float(j) + float(shape.padded + j) * f64::from(levels[j]);
    (record, (0..shape.padded).map(value).collect())
}

/// The score of a record, and what it should be: from the decoded residual, and from the true one.
fn scores(shape: ScalarRecord, ranges: &ScalarRanges, r: &[f32], c: &[f32], q: &[f32]) -> [f64; 3] {
    let (record, decoded) = encode(shape, ranges, r, c);
    let mut query = ScalarQuery::default();
    query.prepare(ranges, q);
    let y: Vec<f64> = q.iter().zip(c).map(|(&q, &c)| f64::from(q) - f64::from(c)).collect();
    let y2: f64 = y.iter().map(|y| y * y).sum();
    let r: Vec<f64> = r.iter().map(|&r| f64::from(r)).collect();
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let error: Vec<f64> = decoded.iter().zip(&r).map(|(d, r)| d - r).collect();
    let (term, exact, linear) = match shape.metric {
        Metric::L2 => {
            let exact = y2 + dot(&r, &r) - 2.0 * dot(&r, &y);
            (y2, exact, -2.0 * dot(&error, &y))
        }
        Metric::Ip => {
            let term = -dot64(q, c);
            let centre: Vec<f64> = c.iter().map(|&c| f64::from(c)).collect();
            (term, term - dot(&r, &y) - dot(&r, &centre), -dot(&error, &y))
        }
    };
    let list = ListTerms { term: term as f32, y: y2.sqrt() as f32 };
    let score = shape.score(Kernels::best(), &record, &query, &list);
    [f64::from(score), exact + linear, exact]
}

/// What f32 arithmetic may move a score by.
fn rounding(r: &[f32], c: &[f32], q: &[f32]) -> f64 {
    let length = |v: &[f32]| dot64(v, v).sqrt();
    2e-6 * (length(q) + length(c) + length(r)).powi(2)
}

#[test]
fn the_error_of_the_product_is_that_of_the_rounding_at_4_and_at_8_bits() {
    for dims in [64, 384, 768] {
        let mut sampler = Sampler::new(dims as u64);
        let c = sampler.gaussian(dims, 1.0);
        let residuals = gaussian_residuals(&mut sampler, 2000, dims);
        for metric in [Metric::L2, Metric::Ip] {
            let rms = [8, 4].map(|bits| {
                let shape = ScalarRecord { padded: dims, bits, metric };
                let ranges = fit(bits, &residuals);
                let (mut squares, mut count) = (0.0, 0.0);
                for r in residuals.iter().step_by(40) {
                    let n = dot64(r, r).sqrt();
                    for _ in 0..4 {
                        let y = sampler.gaussian(dims, 0.7);
                        let q: Vec<f32> = y.iter().zip(&c).map(|(y, c)| y + c).collect();
                        let [score, _, exact] = scores(shape, &ranges, r, &c, &q);
                        let weight = if metric == Metric::L2 { 2.0 } else { 1.0 };
                        let scale = weight * n * dot64(&y, &y).sqrt();
                        squares += ((score - exact) / scale).powi(2);
                        count += 1.0;
                    }
                }
                f64::sqrt(squares / count) * (dims as f64).sqrt()
            });
            // A Gaussian at 256 and 16 even levels errs about 0.0075 and 0.107 of its deviation.
            assert!((0.004..0.0105).contains(&rms[0]), "{dims} {metric:?}: {rms:?}");
            assert!((0.08..0.125).contains(&rms[1]), "{dims} {metric:?}: {rms:?}");
        }
    }
}

#[test]
fn at_4_bits_the_range_is_trimmed_and_errs_less_than_half_of_one_from_least_to_largest() {
    let values = Sampler::new(3).gaussian(30_000, 2.0);
    let error = |range: ScalarRange, top: f64| -> f64 {
        let decoded = |v: f64| {
            let level =
                ((v - f64::from(range.low)) / f64::from(range.step)).round().clamp(0.0, top);
            f64::from(range.low) + f64::from(range.step) * level
        };
        values.iter().map(|&v| (f64::from(v) - decoded(f64::from(v))).powi(2)).sum()
    };
    let least = values.iter().copied().fold(f32::INFINITY, f32::min);
    let largest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for (bits, ratio) in [(4, 0.5), (8, 1.0)] {
        let top = ((1 << bits) - 1) as f32;
        let whole = ScalarRange { low: least, step: (largest - least) / top };
        let fitted = ScalarRange::fit(bits, &values);
        assert!(error(fitted, top.into()) <= ratio * error(whole, top.into()), "{bits} bits");
    }
    let optimum = 0.01154 * 4.0 * values.len() as f64;
    assert!(error(ScalarRange::fit(4, &values), 15.0) < 1.05 * optimum);
}

#[test]
fn as_many_distinct_values_as_levels_are_kept() {
    let values: Vec<f32> = (0..4000).map(|i| (i % 16) as f32 - 7.0).collect();
    assert_eq!(ScalarRange::fit(4, &values), ScalarRange { low: -7.0, step: 1.0 });
}

#[test]
fn constant_dims_single_rows_and_zero_residuals_are_exact() {
    let mut sampler = Sampler::new(5);
    let (c, q) = (sampler.gaussian(64, 1.0), sampler.gaussian(64, 1.0));
    let alone = sampler.gaussian(64, 0.5);
    for bits in [8, 4] {
        for metric in [Metric::L2, Metric::Ip] {
            let shape = ScalarRecord { padded: 64, bits, metric };
            for r in [alone.clone(), vec![0.0; 64]] {
                let ranges = fit(bits, std::slice::from_ref(&r));
                let [score, _, exact] = scores(shape, &ranges, &r, &c, &q);
                assert!((score - exact).abs() <= rounding(&r, &c, &q), "{score} {exact}");
            }
        }
    }
    assert_eq!(ScalarRange::fit(8, &[]), ScalarRange { low: 0.0, step: 0.0 });
    assert_eq!(ScalarRange::fit(8, &[3.5; 9]), ScalarRange { low: 3.5, step: 0.0 });
}

#[test]
fn duplicates_of_the_query_score_a_small_part_of_their_norm_and_never_below_zero() {
    let mut sampler = Sampler::new(6);
    let c = sampler.gaussian(128, 1.0);
    let residuals = gaussian_residuals(&mut sampler, 500, 128);
    for bits in [8, 4] {
        let shape = ScalarRecord { padded: 128, bits, metric: Metric::L2 };
        let ranges = fit(bits, &residuals);
        for r in &residuals[..50] {
            let q: Vec<f32> = r.iter().zip(&c).map(|(r, c)| r + c).collect();
            let [score, _, _] = scores(shape, &ranges, r, &c, &q);
            let part = if bits == 8 { 3e-3 } else { 0.1 };
            assert!((0.0..part * dot64(r, r)).contains(&score), "{bits} bits: {score}");
        }
    }
}

proptest! {
    #[test]
    fn every_record_scores_what_its_decoded_residual_gives(
        seed in any::<u64>(), blocks in 1_usize..6, eight in any::<bool>(), ip in any::<bool>(),
        scale in -3.0_f64..4.0, heavy in any::<bool>(),
    ) {
        let dims = 64 * blocks;
        let mut sampler = Sampler::new(seed);
        let scale = 10_f64.powf(scale);
        let row = |sampler: &mut Sampler| -> Vec<f32> {
            let row = if heavy { sampler.heavy(dims) } else { sampler.gaussian(dims, 1.0) };
            row.iter().map(|v| v * scale as f32).collect()
        };
        let residuals: Vec<_> = (0..40).map(|_| row(&mut sampler)).collect();
        let [c, q] = [(); 2].map(|()| row(&mut sampler));
        let bits = if eight { 8 } else { 4 };
        let metric = if ip { Metric::Ip } else { Metric::L2 };
        // The last rows are not in the sample: their values may lie beyond the ranges.
        let ranges = fit(bits, &residuals[..20]);
        for r in &residuals {
            let shape = ScalarRecord { padded: dims, bits, metric };
            let [score, expected, _] = scores(shape, &ranges, r, &c, &q);
            let expected = if ip { expected } else { expected.max(0.0) };
            let off = (score - expected).abs();
            prop_assert!(off <= rounding(r, &c, &q), "{score} {expected}");
        }
    }

    #[test]
    fn ranges_survive_their_bytes(seed in any::<u64>(), dims in 1_usize..200) {
        let ranges = fit(8, &gaussian_residuals(&mut Sampler::new(seed), 9, dims));
        prop_assert_eq!(ScalarRanges::from_bytes(dims, &ranges.to_bytes()), Ok(ranges));
    }
}

#[test]
fn bytes_that_are_no_ranges_are_refused() {
    let ranges = fit(4, &gaussian_residuals(&mut Sampler::new(1), 30, 64));
    let bytes = ranges.to_bytes();
    assert_eq!(bytes.len(), ScalarRanges::bytes_for(64));
    assert_eq!(
        ScalarRanges::from_bytes(64, &bytes[1..]),
        Err(ScalarRangesError::Size { dims: 64, expected: 512, found: 511 })
    );
    let is_refused = |at: usize, value: f32| {
        let mut bytes = bytes.clone();
        bytes[4 * at..4 * at + 4].copy_from_slice(&value.to_le_bytes());
        matches!(
            ScalarRanges::from_bytes(64, &bytes),
            Err(ScalarRangesError::Range { dim, .. }) if dim == at % 64
        )
    };
    for (at, value) in [(7, f32::NAN), (7, f32::INFINITY), (71, f32::NAN), (71, -1e-9)] {
        assert!(is_refused(at, value), "{value} at {at}");
    }
    assert!(is_refused(127, f32::MAX), "the last level overflows");
    assert!(!is_refused(71, 0.0));
}

#[test]
fn a_record_is_as_long_as_its_parts() {
    let shape = ScalarRecord { padded: 768, bits: 8, metric: Metric::L2 };
    assert_eq!(shape.len(), 768 + 4);
    assert_eq!(ScalarRecord { bits: 4, ..shape }.len(), 384 + 4);
}
