//! Factors, estimates and bounds of fixed cases, computed from the definitions in f64 elsewhere.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use codec::{
    Estimator, ExtraCode, ExtraFactors, Factors, ListTerms, Metric, PrefixCodes, Query, Scan,
    SplitRecord, TableBits, Thresholds, prefix_factors, sign_code,
};
use serde_json::Value;
use simd::{BatchBounds, Kernels};

const EPSILON: f32 = 1.9;

struct Case {
    name: String,
    m: usize,
    bits: u32,
    residual: Vec<f32>,
    centroid: Vec<f32>,
    query: Vec<f32>,
    code: Vec<u32>,
    metrics: [(Metric, Value); 2],
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
}

fn floats(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|value| number(value) as f32).collect()
}

fn cases() -> Vec<Case> {
    let all: Value = serde_json::from_str(include_str!("golden.json")).unwrap();
    let load = |case: &Value| Case {
        name: format!("{} of {} dims", case["kind"], case["padded_dim"]),
        m: case["prefix_dims"].as_u64().unwrap() as usize,
        bits: case["bits"].as_u64().unwrap() as u32,
        residual: floats(&case["residual"]),
        centroid: floats(&case["centroid"]),
        query: floats(&case["query"]),
        code: floats(&case["code"]).into_iter().map(|code| code as u32).collect(),
        metrics: [(Metric::L2, case["l2"].clone()), (Metric::Ip, case["ip"].clone())],
    };
    all.as_array().unwrap().iter().map(load).collect()
}

impl Case {
    fn list(&self, metric: Metric) -> ListTerms {
        let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
            let pairs = self.query.iter().zip(&self.centroid);
            pairs.map(|(&q, &c)| f(f64::from(q), f64::from(c))).sum()
        };
        let y2 = sum(&|q, c| (q - c) * (q - c));
        let term = match metric {
            Metric::L2 => y2,
            Metric::Ip => -sum(&|q, c| q * c),
        };
        ListTerms { term: term as f32, y: y2.sqrt() as f32 }
    }

    /// `N Y`: what errors are relative to.
    fn scale(&self) -> f64 {
        let norm = self.residual.iter().map(|&r| f64::from(r).powi(2)).sum::<f64>().sqrt();
        let list = self.list(Metric::L2);
        norm * f64::from(list.y) + f64::from(list.term)
    }

    /// Scans the case alone in slot 5: lower bound, upper bound and prefix sum.
    fn scan(&self, factors: Factors, metric: Metric, query: &Query) -> (f32, f32, f32) {
        let mut code = vec![0; self.residual.len() / 8];
        sign_code(&self.residual, &mut code);
        let mut codes = PrefixCodes::new(self.m, 32);
        codes.set(5, &code[..self.m / 8], factors);
        let scan = Scan { kernels: Kernels::best(), query, codes: &codes, epsilon: EPSILON };
        let everything = Thresholds { prune: f32::INFINITY, seed: f32::INFINITY };
        let mut out = BatchBounds::default();
        let (survivors, _) = scan.batch(0, 1 << 5, &self.list(metric), everything, &mut out);
        assert_eq!(survivors, 1 << 5);
        (out.lower[5], out.upper[5], out.estimate_sum[5])
    }
}

fn close(found: f32, expected: f64, tolerance: f64, what: &str) {
    let off = (f64::from(found) - expected).abs();
    assert!(off <= tolerance, "{what}: {found}, expected {expected} within {tolerance:e}");
}

fn check_factors(factors: Factors, expected: &Value, scale: f64, what: &str) {
    let [add, rescale, error] = [0, 1, 2].map(|i| number(&expected[i]));
    close(factors.add, add, 2e-7 * add.abs().max(scale), &format!("{what} add"));
    close(factors.rescale, rescale, 1e-7 * rescale.abs(), &format!("{what} rescale"));
    if error.is_finite() {
        close(factors.error, error, 2e-7 * error, &format!("{what} error"));
        assert!(f64::from(factors.error) >= error * (1.0 - 1e-12), "{what}: error rounded down");
    } else {
        assert!(factors.error >= 1e29 && factors.error.is_finite(), "{what}: {}", factors.error);
    }
}

#[test]
fn prefix_factors_follow_their_definitions() {
    for case in cases() {
        for (metric, expected) in &case.metrics {
            for (estimator, key) in
                [(Estimator::PerVector, "factors"), (Estimator::Paper, "paper_factors")]
            {
                let Case { residual, centroid, m, .. } = &case;
                let factors = prefix_factors(residual, centroid, *m, *metric, estimator);
                let what = format!("{}, {metric:?}, {estimator:?}", case.name);
                check_factors(factors, &expected[key], case.scale(), &what);
            }
        }
    }
}

#[test]
fn scanned_bounds_enclose_the_exact_ones_by_no_more_than_the_table_error() {
    let keys = [
        (Estimator::PerVector, "estimate", "lower_bound"),
        (Estimator::Paper, "paper_estimate", "paper_lower_bound"),
    ];
    for case in cases() {
        let mut query = Query::default();
        for bits in [TableBits::Sixteen, TableBits::Eight] {
            query.prepare(&case.query, case.m, bits);
            for (metric, expected) in &case.metrics {
                for (estimator, estimate, bound) in keys {
                    let what = format!("{}, {metric:?}, {estimator:?}, {bits:?}", case.name);
                    let factors =
                        prefix_factors(&case.residual, &case.centroid, case.m, *metric, estimator);
                    let (lower, upper, _) = case.scan(factors, *metric, &query);
                    let widening = f64::from(factors.rescale.abs() * query.table_error())
                        + f64::from(case.list(*metric).slack());
                    let exact = number(&expected[bound]);
                    if exact.is_finite() {
                        let lower = f64::from(lower);
                        assert!(lower <= exact, "{what}: {lower} above {exact}");
                        let lowest = exact - 2.0 * widening - 1e-6 * case.scale();
                        assert!(lower >= lowest, "{what}: {lower} below {lowest}");
                        let middle = (lower as f32 + upper) / 2.0;
                        let tolerance = widening + 1e-6 * case.scale();
                        close(middle, number(&expected[estimate]), tolerance, &what);
                    } else {
                        assert!(lower < -1e25 && upper > 1e25, "{what}: {lower}..{upper}");
                    }
                }
            }
        }
    }
}

#[test]
fn records_score_what_their_codes_mean() {
    for case in cases() {
        let padded = case.residual.len();
        let mut signs = vec![0; padded / 8];
        sign_code(&case.residual, &mut signs);
        let half = 1 << (case.bits - 1);
        let levels: Vec<u8> = case.code.iter().map(|&code| (code & (half - 1)) as u8).collect();
        let mut query = Query::default();
        query.prepare(&case.query, case.m, TableBits::Sixteen);
        for (metric, expected) in &case.metrics {
            let factors = &expected["extra_factors"];
            let [add, rescale] = [0, 1].map(|i| number(&factors[i]) as f32);
            let shape =
                SplitRecord { padded, prefix_dims: case.m, bits: case.bits, metric: *metric };
            let mut record = vec![0xff; shape.len()];
            shape.write(&signs, &levels, ExtraFactors { add, rescale }, &mut record);
            let sum = query.prefix_sum(Kernels::best(), &signs[..case.m / 8]);
            let list = case.list(*metric);
            let score = shape.score(Kernels::best(), &record, &query, sum, &list);
            let tolerance = 2e-6 * case.scale();
            close(score, number(&expected["extra_estimate"]), tolerance, &case.name);
        }
    }
}

#[test]
fn extra_factors_follow_their_definitions_for_the_code_chosen() {
    for case in cases() {
        let mut encoder = ExtraCode::new(case.bits);
        let half = 1 << (case.bits - 1);
        let centre = f64::from((1 << case.bits) - 1) / 2.0;
        for metric in [Metric::L2, Metric::Ip] {
            let Case { residual, centroid, .. } = &case;
            let factors = encoder.encode(Kernels::best(), residual, centroid, metric);
            let (mut n2, mut rv, mut vc, mut cr) = (0.0, 0.0, 0.0, 0.0);
            for ((&r, &c), &low) in residual.iter().zip(centroid).zip(encoder.levels()) {
                let code = i32::from(low) + if r >= 0.0 { half } else { 0 };
                let (r, c, v) = (f64::from(r), f64::from(c), f64::from(code) - centre);
                (n2, rv, vc, cr) = (n2 + r * r, rv + r * v, vc + v * c, cr + c * r);
            }
            let g = if n2 == 0.0 { 0.0 } else { n2 / rv };
            let (add, rescale) = match metric {
                Metric::L2 => (n2 + 2.0 * g * vc, -2.0 * g),
                Metric::Ip => (g * vc - cr, -g),
            };
            close(factors.add, add, 1e-7 * case.scale(), &case.name);
            close(factors.rescale, rescale, 1e-7 * rescale.abs(), &case.name);
        }
    }
}
