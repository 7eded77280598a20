//! Rows beyond 2^32, in several files and in one: sparse files, whose holes take no disk.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use dataset::{Base, DatasetError};

const LIMIT: u64 = 1 << 32;
const HALF: u64 = 1 << 31;
/// Rows that hold something else than zeros, at every border there is.
const MARKED: [u64; 9] =
    [0, HALF - 1, HALF, HALF + 1, LIMIT - 1, LIMIT, LIMIT + 1, LIMIT + 3, LIMIT + 4];
const N: u64 = LIMIT + 5;

/// A file of `len` bytes of which only `header` is written; `None` where that takes real disk.
fn sparse(path: &Path, header: &[u8], len: u64) -> Option<File> {
    let file = File::create(path).unwrap();
    file.write_all_at(header, 0).unwrap();
    if let Err(error) = file.set_len(len) {
        eprintln!("skipped: no file of {len} bytes here ({error})");
        return None;
    }
    let taken = file.metadata().unwrap().blocks() * 512;
    if taken > 1 << 20 {
        eprintln!("skipped: no sparse files here ({len} bytes take {taken})");
        return None;
    }
    Some(file)
}

/// Component `c` of a marked row: never 0, and different for neighbours.
fn value(row: u64, c: usize) -> u8 {
    let place = MARKED.iter().position(|&marked| marked == row);
    place.map_or(0, |place| (10 * (place + 1) + c) as u8)
}

fn mark(file: &File, header: u64, dim: usize, rows: std::ops::Range<u64>) {
    for row in MARKED.into_iter().filter(|row| rows.contains(row)) {
        let values: Vec<u8> = (0..dim).map(|c| value(row, c)).collect();
        file.write_all_at(&values, header + (row - rows.start) * dim as u64).unwrap();
    }
}

/// 2^31, 2^31 and 5 rows.
fn three_files(folder: &Path, dim: usize) -> Option<Vec<PathBuf>> {
    let borders = [0, HALF, LIMIT, N];
    let parts = borders.windows(2).enumerate().map(|(part, border)| {
        let (rows, path) = (border[0]..border[1], folder.join(format!("part{part}.u8bin")));
        let count = rows.end - rows.start;
        let header = [(count as u32).to_le_bytes(), (dim as u32).to_le_bytes()].concat();
        let file = sparse(&path, &header, 8 + count * dim as u64)?;
        mark(&file, 8, dim, rows);
        Some(path)
    });
    parts.collect()
}

/// All rows in one NumPy file.
fn one_file(folder: &Path, dim: usize) -> Option<Vec<PathBuf>> {
    let path = folder.join("all.npy");
    let dict = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({N}, {dim}), }}");
    let header = [b"\x93NUMPY\x01\x00\x76\x00", dict.as_bytes()].concat();
    let file = sparse(&path, &header, 128 + N * dim as u64)?;
    file.write_all_at(&vec![b' '; 127 - header.len()], header.len() as u64).unwrap();
    file.write_all_at(b"\n", 127).unwrap();
    mark(&file, 128, dim, 0..N);
    Some(vec![path])
}

fn expected(rows: impl IntoIterator<Item = u64>, dim: usize) -> Vec<f32> {
    rows.into_iter().flat_map(|row| (0..dim).map(move |c| f32::from(value(row, c)))).collect()
}

fn check_reads(base: &Base) {
    let dim = base.dim();
    assert_eq!(base.n(), N);
    for start in [0, HALF - 3, HALF - 1, HALF, LIMIT - 4, LIMIT - 1, LIMIT, N - 6] {
        let rows = start..(start + 6).min(N);
        let mut read = vec![-1.0; (rows.end - rows.start) as usize * dim];
        base.read_f32(start, &mut read).unwrap();
        assert_eq!(read, expected(rows.clone(), dim), "from {start}");
        let mut raw = vec![0; read.len()];
        base.read_raw(start, &mut raw).unwrap();
        assert!(raw.iter().map(|&v| f32::from(v)).eq(read), "from {start}");
    }
    let mut gathered = vec![-1.0; MARKED.len() * dim];
    base.gather_f32(&MARKED, &mut gathered).unwrap();
    assert_eq!(gathered, expected(MARKED, dim));
    let backwards: Vec<u64> = MARKED.iter().rev().copied().collect();
    base.gather_f32(&backwards, &mut gathered).unwrap();
    assert_eq!(gathered, expected(backwards, dim));
    let mut one = vec![0.0; dim];
    for beyond in [N, N + LIMIT, u64::MAX] {
        let refused = base.gather_f32(&[beyond], &mut one);
        assert!(matches!(refused, Err(DatasetError::RowsOutOfRange { n: N, .. })), "{beyond}");
    }
}

#[test]
fn rows_around_2_to_the_32_are_read_from_several_files() {
    for dim in [1, 3] {
        let folder = tempfile::tempdir().unwrap();
        let Some(paths) = three_files(folder.path(), dim) else { return };
        let base = Base::open(&paths).unwrap();
        check_reads(&base);
        for (row, file, within) in [
            (HALF - 1, 0, HALF - 1),
            (HALF, 1, 0),
            (LIMIT - 1, 1, HALF - 1),
            (LIMIT, 2, 0),
            (N - 1, 2, 4),
        ] {
            assert_eq!(base.locate(row), (&*paths[file], within));
        }
    }
}

#[test]
fn rows_around_2_to_the_32_are_read_from_one_numpy_file() {
    let folder = tempfile::tempdir().unwrap();
    let Some(paths) = one_file(folder.path(), 3) else { return };
    let base = Base::open(&paths).unwrap();
    check_reads(&base);
    assert_eq!(base.locate(LIMIT + 1), (&*paths[0], LIMIT + 1));
}

#[test]
fn a_window_may_end_on_either_side_of_2_to_the_32() {
    let folder = tempfile::tempdir().unwrap();
    let Some(paths) = three_files(folder.path(), 1) else { return };
    for rows in [LIMIT - 1, LIMIT, LIMIT + 2] {
        let base = Base::open(&paths).unwrap().first_rows(rows).unwrap();
        let mut last = [0.0];
        base.read_f32(rows - 1, &mut last).unwrap();
        assert_eq!(last, [f32::from(value(rows - 1, 0))]);
        assert!(base.read_f32(rows, &mut last).is_err());
    }
}

#[test]
fn a_format_that_counts_rows_in_32_bits_refuses_more_before_it_writes() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("all.u8bin");
    let Some(paths) = three_files(folder.path(), 1) else { return };
    let source = Base::open(&paths).unwrap();
    let rounding = dataset::Rounding::Exact;
    let refused =
        dataset::convert(&source, &target, None, rounding, &mut |_, _| ControlFlow::Continue(()));
    assert!(matches!(refused, Err(DatasetError::TooManyRows { rows: N, .. })), "{refused:?}");
    assert!(!target.exists());
}

#[test]
fn samples_reach_beyond_2_to_the_32() {
    let rows = dataset::sample_rows(1 << 40, 1000, 1);
    assert!(rows.is_sorted_by(|a, b| a < b) && rows.len() == 1000);
    assert!(rows.iter().filter(|&&row| row > LIMIT).count() > 990);
}
