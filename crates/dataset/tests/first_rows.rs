//! A base cut to its first rows reads as if its files ended there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use dataset::{Base, DatasetError, Dtype, VectorWriter};

/// Files of 4, 0 and 3 rows x 2: row r holds 2r and 2r + 1.
fn base(folder: &std::path::Path) -> Base {
    let parts = [0..4, 4..4, 4..7].map(|rows: std::ops::Range<u8>| {
        let path = folder.join(format!("from{}to{}.u8bin", rows.start, rows.end));
        let mut writer = VectorWriter::create(&path, 2, Dtype::U8).unwrap();
        for row in rows {
            writer.write_raw(&[2 * row, 2 * row + 1]).unwrap();
        }
        writer.finish().unwrap();
        path
    });
    Base::open(&parts).unwrap()
}

#[test]
fn rows_up_to_the_cut_are_read_and_later_ones_are_out_of_range() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..=7 {
        let cut = base(folder.path()).first_rows(n).unwrap();
        assert_eq!(cut.n(), n);
        let mut all = vec![0.0; n as usize * 2];
        cut.read_f32(0, &mut all).unwrap();
        assert!(all.iter().copied().eq((0..n as u16 * 2).map(f32::from)));
        let mut one = [0.0; 2];
        let mut raw = [0; 2];
        for row in n..9 {
            let refused = cut.read_f32(row, &mut one);
            assert!(
                matches!(refused, Err(DatasetError::RowsOutOfRange { n: found, .. }) if found == n)
            );
            assert!(cut.read_raw(row, &mut raw).is_err());
            assert!(cut.gather_f32(&[row], &mut one).is_err());
        }
    }
}

#[test]
fn a_gather_that_begins_before_the_cut_and_ends_beyond_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let cut = base(folder.path()).first_rows(2).unwrap();
    let mut out = [0.0; 4];
    cut.gather_f32(&[0, 1], &mut out).unwrap();
    assert_eq!(out, [0.0, 1.0, 2.0, 3.0]);
    assert!(cut.gather_f32(&[1, 2], &mut out).is_err());
}

#[test]
fn more_rows_than_there_are_is_an_error_with_both_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let error = base(folder.path()).first_rows(8).unwrap_err().to_string();
    assert!(error.contains("+8 asked for, there are 7"), "{error}");
}

#[test]
fn another_number_of_rows_of_the_same_files_shows_in_the_fingerprint() {
    let folder = tempfile::tempdir().unwrap();
    let whole = base(folder.path());
    let was = whole.fingerprint().unwrap();
    let is = whole.first_rows(5).unwrap().fingerprint().unwrap();
    assert_eq!(was.changes(&is), ["the base was 7 rows x 2 u8, is 5 rows x 2 u8"]);
}
