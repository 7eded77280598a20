//! A header is believed only when the file's size bears it out; the error says what would fit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use dataset::{Base, DatasetError, Format, LooksLike};

fn bin(dir: &Path, name: &str, rows: u32, dim: u32, data: usize) -> PathBuf {
    let header: Vec<u8> = [rows, dim].iter().flat_map(|v| v.to_le_bytes()).collect();
    file(dir, name, &[header, vec![0; data]].concat())
}

fn file(dir: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = dir.join(name);
    fs_err::write(&path, content).unwrap();
    path
}

fn refusal(path: &Path) -> DatasetError {
    Base::open(&[path]).expect_err("must be refused")
}

#[test]
fn missing_rows_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = bin(dir.path(), "x.fbin", 1000, 32, 900 * 128);
    let message = refusal(&path).to_string();
    let expected =
        "header says 1000 rows x 32 f32 = 128008 bytes, the file holds 115208: 900 rows fit";
    assert_eq!(message, format!("{}: {expected}", path.display()));
}

#[test]
fn trailing_bytes_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let message = refusal(&bin(dir.path(), "x.fbin", 1000, 32, 1000 * 128 + 5)).to_string();
    assert!(
        message.ends_with("the file holds 128013: 1000 rows fit and 5 bytes are left over"),
        "{message}"
    );
    let whole_rows_more = refusal(&bin(dir.path(), "y.u8bin", 10, 3, 36)).to_string();
    assert!(whole_rows_more.ends_with("the file holds 44: 12 rows fit"), "{whole_rows_more}");
}

#[test]
fn bytes_named_as_floats_are_recognised_and_floats_named_as_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let message = refusal(&bin(dir.path(), "x.fbin", 1000, 32, 32_000)).to_string();
    assert!(message.contains(": 250 rows fit; the size fits one byte per value"), "{message}");
    assert!(message.contains(".u8bin or .i8bin"), "{message}");
    let guess = |path: &Path| match refusal(path) {
        DatasetError::SizeMismatch { looks_like, .. } => looks_like,
        other => panic!("{other}"),
    };
    let fbin = Some(LooksLike::Vectors(Format::Fbin));
    assert_eq!(guess(&bin(dir.path(), "x.i8bin", 1000, 32, 128_000)), fbin);
    let half = Some(LooksLike::Vectors(Format::F16bin));
    assert_eq!(guess(&bin(dir.path(), "x.u8bin", 1000, 32, 64_000)), half);
    assert_eq!(guess(&bin(dir.path(), "z.u8bin", 1000, 32, 64_001)), None);
}

#[test]
fn files_of_other_programs_are_recognised() {
    let dir = tempfile::tempdir().unwrap();
    let cases: [(&[u8], &str); 5] = [
        (b"\x93NUMPY\x01\x00v\x00{'descr': '<f4'", ".npy"),
        (b"\x89HDF\r\n\x1a\n\0\0\0\0\0\0\0\0", "HDF5"),
        (b"PAR1\x15\x04\x15\x04\x15\x04\x15\x04", "Parquet"),
        (b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0", "zip"),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\0\0\0", "gzip"),
    ];
    for (content, name) in cases {
        for extension in ["fbin", "fvecs", "npy"] {
            let message =
                refusal(&file(dir.path(), &format!("x.{extension}"), content)).to_string();
            let itself = extension == "npy" && name == ".npy";
            assert!(itself || message.contains(name), "{message}");
        }
    }
    let row = [&3i32.to_le_bytes()[..], &[0; 12]].concat();
    let fvecs = refusal(&file(dir.path(), "v.fbin", &row.repeat(5))).to_string();
    assert!(fvecs.contains("looks like .fvecs"), "{fvecs}");
}

#[test]
fn zero_and_huge_dims_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (rows, dim, data) in [(0, 0, 0), (10, 0, 40), (0, 1 << 31, 0), (0, 65_537, 0)] {
        let error = refusal(&bin(dir.path(), "x.fbin", rows, dim, data));
        assert!(matches!(error, DatasetError::DimOutOfRange { .. }), "{error}");
    }
    for dim in [0i32, -1, i32::MIN, 1 << 30] {
        let error = refusal(&file(dir.path(), "x.fvecs", &dim.to_le_bytes()));
        assert!(matches!(error, DatasetError::DimOutOfRange { .. }), "{error}");
    }
}

#[test]
fn a_header_alone_is_a_base_of_no_rows() {
    let dir = tempfile::tempdir().unwrap();
    let base = Base::open(&[bin(dir.path(), "x.fbin", 0, 32, 0)]).unwrap();
    assert_eq!((base.n(), base.dim()), (0, 32));
    base.read_f32(0, &mut []).unwrap();
    assert_eq!(base.locate(0).1, 0);
    let counted = refusal(&bin(dir.path(), "y.fbin", 7, 32, 0)).to_string();
    assert!(counted.ends_with("= 904 bytes, the file holds 8: 0 rows fit"), "{counted}");
}

#[test]
fn empty_and_shortened_headers_name_both_sizes() {
    let dir = tempfile::tempdir().unwrap();
    for extension in ["fbin", "u8bin", "i8bin", "f16bin", "fvecs", "bvecs", "npy"] {
        let name = format!("x.{extension}");
        let empty = refusal(&file(dir.path(), &name, b""));
        assert!(matches!(empty, DatasetError::Empty { .. }), "{empty}");
        refusal(&file(dir.path(), &name, b"\x01\0\0"));
    }
    let message = refusal(&file(dir.path(), "x.fbin", &[1, 0, 0, 0, 1, 0, 0])).to_string();
    assert!(message.contains("needs 8 bytes, the file holds 7"), "{message}");
}

#[test]
fn a_row_that_ends_early_or_states_another_dim_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let row = |dim: i32| [&dim.to_le_bytes()[..], &[0; 12]].concat();
    let cut = [row(3), row(3), vec![0; 5]].concat();
    let message = refusal(&file(dir.path(), "x.fvecs", &cut)).to_string();
    assert!(message.contains("dim 3, so rows of 16 bytes, the file holds 37"), "{message}");
    assert!(message.contains("2 rows fit and 5 bytes are left over"), "{message}");

    let mixed = [row(3), row(3), row(4), row(3)].concat();
    let base = Base::open(&[file(dir.path(), "y.fvecs", &mixed)]).unwrap();
    let mut rows = [0.0; 12];
    for result in [
        base.read_f32(0, &mut rows),
        base.read_raw(1, &mut [0; 24]),
        base.gather_f32(&[2], &mut rows[..3]),
    ] {
        let message = result.unwrap_err().to_string();
        assert!(message.contains("row 2 says dim 4, the first row says 3"), "{message}");
    }
    base.read_f32(3, &mut rows[..3]).unwrap();
}

#[test]
fn what_is_no_file_is_said_so_without_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs_err::create_dir(at("d.fbin")).unwrap();
    assert!(matches!(refusal(&at("d.fbin")), DatasetError::Directory { .. }));
    let missing = refusal(&at("missing.fbin"));
    assert!(missing.to_string().contains("missing.fbin"), "{missing}");
    assert!(matches!(missing, DatasetError::Io(e) if e.kind() == std::io::ErrorKind::NotFound));
    assert!(std::process::Command::new("mkfifo").arg(at("p.fbin")).status().unwrap().success());
    assert!(matches!(refusal(&at("p.fbin")), DatasetError::NotAFile { .. }));
    let unknown = refusal(&file(dir.path(), "x.csv", b"1,2")).to_string();
    for format in Format::ALL {
        assert!(unknown.contains(&format!(".{}", format.extension())), "{unknown}");
    }
    assert!(matches!(Base::open::<&str>(&[]), Err(DatasetError::NoFiles)));
}

#[test]
fn files_that_differ_are_both_named_with_both_values() {
    let dir = tempfile::tempdir().unwrap();
    let a = bin(dir.path(), "a.fbin", 2, 32, 256);
    let b = bin(dir.path(), "b.fbin", 2, 33, 264);
    let c = bin(dir.path(), "c.u8bin", 2, 32, 64);
    let dims = Base::open(&[&a, &b]).unwrap_err().to_string();
    assert!(["a.fbin", "b.fbin", "dim 32", "dim 33"].iter().all(|w| dims.contains(w)), "{dims}");
    let types = Base::open(&[&a, &c]).unwrap_err().to_string();
    assert!(["a.fbin", "c.u8bin", "f32", "u8"].iter().all(|w| types.contains(w)), "{types}");
}

#[test]
fn a_file_cut_while_it_is_read_is_an_error_with_the_offset() {
    let dir = tempfile::tempdir().unwrap();
    for (name, width) in [("x.fbin", 4), ("x.u8bin", 1)] {
        let path = bin(dir.path(), name, 100, 8, 800 * width);
        let base = Base::open(&[&path]).unwrap();
        fs_err::OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(8 + 400 * width as u64 + 3)
            .unwrap();
        let mut rows = vec![0.0; 100 * 8];
        match base.read_f32(0, &mut rows).unwrap_err() {
            DatasetError::Truncated { path: named, offset, expected, found } => {
                let width = width as u64;
                assert_eq!((named, offset), (path.clone(), 8));
                assert_eq!((expected, found), (800 * width, 400 * width + 3));
            }
            other => panic!("{other}"),
        }
        base.read_f32(0, &mut rows[..400]).unwrap();
        // An open file that is unlinked can still be read.
        fs_err::remove_file(&path).unwrap();
        base.read_f32(0, &mut rows[..400]).unwrap();
    }
}
