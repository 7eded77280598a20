//! Converted files hold the same rows in another format or type.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ops::ControlFlow;

use dataset::{Base, DatasetError, Dtype, Rounding, VectorWriter, convert};

const DIM: usize = 300;
const ROWS: usize = 9000; // more than one batch

fn source(dir: &std::path::Path) -> (Base, Vec<f32>) {
    let values: Vec<f32> = (0..ROWS * DIM).map(|i| (i * 31 % 128) as f32).collect();
    let path = dir.join("source.u8bin");
    let mut writer = VectorWriter::create(&path, DIM, Dtype::U8).unwrap();
    writer.write_f32(&values).unwrap();
    writer.finish().unwrap();
    (Base::open(&[path]).unwrap(), values)
}

#[test]
fn every_target_holds_the_same_rows_and_progress_reaches_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let (source, values) = source(dir.path());
    for (name, dtype, expected) in [
        ("x.fbin", None, Dtype::F32),
        ("x.i8bin", None, Dtype::I8),
        ("x.f16bin", Some(Dtype::F16), Dtype::F16),
        ("x.bvecs", None, Dtype::U8),
        ("x.npy", None, Dtype::U8),
        ("y.npy", Some(Dtype::F32), Dtype::F32),
    ] {
        let (target, mut told) = (dir.path().join(name), Vec::new());
        let rows = convert(&source, &target, dtype, Rounding::Exact, &mut |done, all| {
            told.push((done, all));
            ControlFlow::Continue(())
        });
        assert_eq!(rows.unwrap(), ROWS as u64);
        assert!(told.len() > 1 && told.is_sorted());
        assert_eq!(told.last(), Some(&(ROWS as u64, ROWS as u64)));
        let base = Base::open(&[&target]).unwrap();
        assert_eq!(base.dtype(), expected);
        let mut read = vec![0.0; values.len()];
        base.read_f32(0, &mut read).unwrap();
        assert!(read == values, "{name}");
    }
}

#[test]
fn a_file_may_be_converted_onto_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (source, _) = source(dir.path());
    let path = source.paths()[0].clone();
    let before = fs_err::read(&path).unwrap();
    let stopped =
        convert(&source, &path, None, Rounding::Exact, &mut |_, _| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(DatasetError::Interrupted)));
    assert!(fs_err::read(&path).unwrap() == before, "stopped, it leaves what was there");
    convert(&source, &path, None, Rounding::Exact, &mut |_, _| ControlFlow::Continue(())).unwrap();
    assert!(fs_err::read(&path).unwrap() == before);
}

#[test]
fn a_value_that_does_not_fit_leaves_no_target() {
    let dir = tempfile::tempdir().unwrap();
    let (path, target) = (dir.path().join("x.fbin"), dir.path().join("y.u8bin"));
    let mut writer = VectorWriter::create(&path, 1, Dtype::F32).unwrap();
    writer.write_f32(&[1.0, 2.0, 2.5]).unwrap();
    writer.finish().unwrap();
    let base = Base::open(&[&path]).unwrap();
    match convert(&base, &target, None, Rounding::Exact, &mut |_, _| ControlFlow::Continue(()))
        .unwrap_err()
    {
        DatasetError::Value { row, value, .. } => assert_eq!((row, value), (2, 2.5)),
        other => panic!("{other}"),
    }
    assert!(!target.exists());
    convert(&base, &target, None, Rounding::Nearest, &mut |_, _| ControlFlow::Continue(()))
        .unwrap();
    assert_eq!(fs_err::read(&target).unwrap()[8..], [1, 2, 2]);
}
