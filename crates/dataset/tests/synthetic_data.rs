//! Synthetic rows depend on seed and number alone, and have the statistics asked for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;

use dataset::synth::{Norms, Spec, Spectrum, generate};
use dataset::{Base, DatasetError, Dtype};
use rayon::ThreadPoolBuilder;

fn spec(n: u64, dim: usize) -> Spec {
    let (spectrum, norms, dtype) = (Spectrum::Power, Norms::Unit, Dtype::F32);
    Spec { n, dim, seed: 11, spectrum, norms, dtype }
}

fn make(dir: &Path, spec: &Spec, queries: u64, threads: usize) -> (Vec<u8>, Vec<u8>) {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let extension = match spec.dtype {
        Dtype::U8 => "u8bin",
        Dtype::I8 => "i8bin",
        Dtype::F16 => "f16bin",
        _ => "fbin",
    };
    let paths = ["base", "queries"].map(|name| dir.join(name).with_extension(extension));
    let (mut last, total) = (0, spec.n + queries);
    generate(spec, queries, &paths[0], Some(&paths[1]), &pool, &mut |done, all| {
        assert!(done > last && all == total);
        last = done;
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(last, total);
    paths.map(|path| fs_err::read(path).unwrap()).into()
}

/// Rows as f32 of a file's bytes in the type of `spec`.
fn values(spec: &Spec, bytes: &[u8]) -> Vec<f32> {
    let mut values = vec![0.0; (bytes.len() - 8) / spec.dtype.size()];
    spec.dtype.decode(&bytes[8..], &mut values);
    values
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

#[test]
fn bytes_do_not_depend_on_the_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    for (dim, dtype) in [(1, Dtype::F32), (65, Dtype::F32), (100, Dtype::U8), (7, Dtype::F16)] {
        let spec = Spec { dtype, ..spec(3000, dim) };
        let one = make(dir.path(), &spec, 100, 1);
        assert!(one == make(dir.path(), &spec, 100, 3), "dim {dim} {dtype}");
        let other = Spec { seed: 12, ..spec };
        assert!(dim == 1 || one != make(dir.path(), &other, 100, 3));
    }
}

#[test]
fn sets_with_as_many_clusters_begin_alike() {
    let dir = tempfile::tempdir().unwrap();
    for spectrum in [Spectrum::Power, Spectrum::Flat] {
        let (small, large) = (spec(1100, 33), spec(4000, 33));
        let [small, large] = [small, large].map(|spec| Spec { spectrum, ..spec });
        assert_eq!(small.clusters(), large.clusters());
        let [a, b] = [small, large].map(|spec| make(dir.path(), &spec, 50, 2));
        assert!(a.0[8..] == b.0[8..a.0.len()]);
        assert!(a.1 == b.1);
    }
}

#[test]
fn queries_and_rows_are_all_distinct() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(5000, 16);
    let (base, queries) = make(dir.path(), &spec, 1000, 2);
    let rows: HashSet<&[u8]> =
        base[8..].chunks_exact(64).chain(queries[8..].chunks_exact(64)).collect();
    assert_eq!(rows.len(), 6000);
}

#[test]
fn norms_are_one_or_spread_evenly_in_the_logarithm() {
    let dir = tempfile::tempdir().unwrap();
    let unit = spec(2000, 48);
    let spread = Spec { norms: Norms::Spread, ..unit.clone() };
    let norms = |spec: &Spec| -> Vec<f64> {
        let rows = values(spec, &make(dir.path(), spec, 1, 2).0);
        rows.chunks_exact(48).map(|row| dot(row, row).sqrt()).collect()
    };
    assert!(norms(&unit).iter().all(|norm| (norm - 1.0).abs() < 1e-5));
    let spread = norms(&spread);
    assert!(spread.iter().all(|norm| (0.099_99..10.001).contains(norm)));
    for quarter in [0.1, 0.316_23, 1.0, 3.162_3] {
        let inside = spread.iter().filter(|&&n| n >= quarter && n < quarter * 3.162_3).count();
        assert!((400..600).contains(&inside), "{inside} from {quarter}");
    }
}

#[test]
fn a_flat_spectrum_is_isotropic_and_a_power_law_is_not_yet_no_axis_is_special() {
    let dir = tempfile::tempdir().unwrap();
    let dim = 64;
    // Σλ² / (Σλ)² of the second moments = E<x,y>² over pairs of unit rows: 1/dim when isotropic.
    let concentration = |rows: &[f32]| {
        let rows: Vec<&[f32]> = rows.chunks_exact(dim).collect();
        let pairs =
            rows.iter().enumerate().flat_map(|(i, a)| rows[..i].iter().map(move |b| (a, b)));
        let (sum, count) =
            pairs.fold((0.0, 0.0), |(sum, count), (a, b)| (sum + dot(a, b).powi(2), count + 1.0));
        sum / count
    };
    let power = spec(1000, dim);
    let flat = Spec { spectrum: Spectrum::Flat, ..power.clone() };
    let [power, flat] = [power, flat].map(|spec| values(&spec, &make(dir.path(), &spec, 1, 2).0));
    let (power_share, flat_share) = (concentration(&power), concentration(&flat));
    assert!((flat_share * dim as f64 - 1.0).abs() < 0.05, "flat: {flat_share}");
    // About 20 effective directions of 64, fewer because of the clusters.
    assert!((0.04..0.2).contains(&power_share), "power: {power_share}");
    let largest_axis = (0..dim)
        .map(|j| power.iter().skip(j).step_by(dim).map(|&v| f64::from(v).powi(2)).sum::<f64>())
        .fold(0.0, f64::max);
    assert!(largest_axis / 1000.0 < 5.0 / dim as f64, "{largest_axis}");
}

#[test]
fn bytes_use_their_range_around_the_middle() {
    let dir = tempfile::tempdir().unwrap();
    for (dtype, middle) in [(Dtype::U8, 128.0), (Dtype::I8, 0.0)] {
        for (norms, deviation) in [(Norms::Unit, 25.0..40.0), (Norms::Spread, 5.0..40.0)] {
            let spec = Spec { dtype, norms, ..spec(2000, 128) };
            let values = values(&spec, &make(dir.path(), &spec, 1, 2).0);
            let n = values.len() as f64;
            let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
            let variance = values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
            assert!((mean - middle).abs() < 3.0, "{dtype} {norms:?}: mean {mean}");
            assert!(deviation.contains(&variance.sqrt()), "{dtype} {norms:?}: {variance}");
        }
    }
}

#[test]
fn no_rows_and_the_largest_dim_work_and_others_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), &spec(0, 1), 1, 1);
    assert_eq!(Base::open(&[dir.path().join("base.fbin")]).unwrap().n(), 0);
    make(dir.path(), &spec(2, 65_536), 1, 1);
    let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let path = dir.path().join("x.fbin");
    for spec in [spec(1, 0), spec(1, 65_537), spec(1 << 32, 4)] {
        assert!(
            generate(&spec, 0, &path, None, &pool, &mut |_, _| ControlFlow::Continue(())).is_err()
        );
    }
    let bytes = Spec { dtype: Dtype::U8, ..spec(1, 4) };
    let refused = generate(&bytes, 0, &path, None, &pool, &mut |_, _| ControlFlow::Continue(()));
    assert!(matches!(refused, Err(DatasetError::WrongDtype { .. })));
    assert!(!path.exists());
}

#[test]
fn interrupted_work_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let [base, queries] = ["base.fbin", "queries.fbin"].map(|name| folder.path().join(name));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    // The last call comes when all queries are written, but not yet in place.
    for calls in 1..=3 {
        let mut left = calls;
        let mut progress = |_, _| {
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let spec = Spec { dim: 1024, ..spec(5000, 1024) };
        let outcome = generate(&spec, 10, &base, Some(&queries), &pool, &mut progress);
        assert!(matches!(outcome, Err(DatasetError::Interrupted)), "{calls}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
