//! Every format is read as its layout says, and comes back as it was written.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use dataset::{Base, Dtype, VectorWriter};
use half::f16;

const FORMATS: [(&str, Dtype); 11] = [
    ("fbin", Dtype::F32),
    ("u8bin", Dtype::U8),
    ("i8bin", Dtype::I8),
    ("f16bin", Dtype::F16),
    ("fvecs", Dtype::F32),
    ("bvecs", Dtype::U8),
    ("npy", Dtype::F32),
    ("npy", Dtype::F16),
    ("npy", Dtype::U8),
    ("npy", Dtype::I8),
    ("FBIN", Dtype::F32),
];

/// Values that every type holds exactly, different in every row and component.
fn rows(n: usize, dim: usize, first: usize) -> Vec<f32> {
    (0..n * dim).map(|i| ((first * dim + i) * 37 % 127) as f32).collect()
}

fn write(path: &Path, dim: usize, dtype: Dtype, values: &[f32]) {
    let mut writer = VectorWriter::create(path, dim, dtype).unwrap();
    writer.write_f32(values).unwrap();
    assert_eq!(writer.finish().unwrap(), (values.len() / dim) as u64);
}

fn bytes(path: &Path, content: &[u8]) -> PathBuf {
    fs_err::write(path, content).unwrap();
    path.to_path_buf()
}

#[test]
fn every_format_returns_what_was_written_for_odd_and_large_dims() {
    let dir = tempfile::tempdir().unwrap();
    for (extension, dtype) in FORMATS {
        for dim in [1, 3, 7, 65, 5000] {
            let values = rows(11, dim, 0);
            let path = dir.path().join(format!("x.{extension}"));
            write(&path, dim, dtype, &values);
            let base = Base::open(&[&path]).unwrap();
            assert_eq!((base.n(), base.dim(), base.dtype()), (11, dim, dtype));
            let mut read = vec![0.0; 11 * dim];
            base.read_f32(0, &mut read).unwrap();
            assert_eq!(read, values, "{extension} {dtype} dim {dim}");
            let mut two = vec![0.0; 2 * dim];
            base.read_f32(4, &mut two).unwrap();
            assert_eq!(two, values[4 * dim..6 * dim]);
            let mut raw = vec![0; 11 * dim * dtype.size()];
            base.read_raw(0, &mut raw).unwrap();
            let mut packed = Vec::new();
            dtype.encode(&values, dataset::Rounding::Exact, &mut packed).unwrap();
            assert_eq!(raw, packed, "{extension} {dtype} dim {dim}");
        }
    }
}

#[test]
fn hand_made_files_are_read_as_their_layouts_say() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let header: Vec<u8> = [2u32, 2].iter().flat_map(|v| v.to_le_bytes()).collect();
    let floats = [1.5f32, -2.0, 0.25, 1e20];
    let f32s: Vec<u8> = floats.iter().flat_map(|v| v.to_le_bytes()).collect();
    let f64s: Vec<u8> = floats.iter().flat_map(|&v| f64::from(v).to_le_bytes()).collect();
    let f16s: Vec<u8> =
        [1.5f32, -2.0, 0.25, 8.0].iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect();
    let npy = |descr: &str, data: &[u8]| {
        let dict =
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (2, 2), }}     \n");
        [b"\x93NUMPY\x01\x00", &(dict.len() as u16).to_le_bytes()[..], dict.as_bytes(), data]
            .concat()
    };
    let rowwise = |row: &dyn Fn(usize) -> Vec<u8>| {
        (0..2).flat_map(|r| [2i32.to_le_bytes().to_vec(), row(r)].concat()).collect::<Vec<u8>>()
    };
    let cases = [
        (bytes(&at("a.fbin"), &[&header, &f32s[..]].concat()), floats),
        (bytes(&at("a.u8bin"), &[&header[..], &[0, 1, 128, 255]].concat()), [0., 1., 128., 255.]),
        (bytes(&at("a.i8bin"), &[&header[..], &[0, 1, 128, 255]].concat()), [0., 1., -128., -1.]),
        (bytes(&at("a.f16bin"), &[&header, &f16s[..]].concat()), [1.5, -2.0, 0.25, 8.0]),
        (bytes(&at("a.fvecs"), &rowwise(&|r| f32s[r * 8..][..8].to_vec())), floats),
        (bytes(&at("a.bvecs"), &rowwise(&|r| vec![r as u8, 255])), [0., 255., 1., 255.]),
        (bytes(&at("f4.npy"), &npy("<f4", &f32s)), floats),
        (bytes(&at("f8.npy"), &npy("<f8", &f64s)), floats),
        (bytes(&at("f2.npy"), &npy("<f2", &f16s)), [1.5, -2.0, 0.25, 8.0]),
        (bytes(&at("u1.npy"), &npy("|u1", &[0, 1, 128, 255])), [0., 1., 128., 255.]),
        (bytes(&at("i1.npy"), &npy("|i1", &[0, 1, 128, 255])), [0., 1., -128., -1.]),
    ];
    for (path, expected) in cases {
        let mut read = [0.0; 4];
        Base::open(&[&path]).unwrap().read_f32(0, &mut read).unwrap();
        assert_eq!(read, expected, "{}", path.display());
    }
}

#[test]
fn f64_is_handed_out_raw_as_f32() {
    let dir = tempfile::tempdir().unwrap();
    let dict = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1), }";
    let data: Vec<u8> = [1.5f64, 1e300, 0.1].iter().flat_map(|v| v.to_le_bytes()).collect();
    let file = [b"\x93NUMPY\x03\x00", &(dict.len() as u32).to_le_bytes()[..], dict.as_bytes()];
    let path = bytes(&dir.path().join("d.npy"), &[&file.concat()[..], &data].concat());
    let base = Base::open(&[&path]).unwrap();
    assert_eq!((base.dtype(), base.raw_dtype()), (Dtype::F64, Dtype::F32));
    let mut raw = [0; 12];
    base.read_raw(0, &mut raw).unwrap();
    let expected: Vec<u8> =
        [1.5f32, f32::INFINITY, 0.1].iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(raw.as_slice(), expected);
}

#[test]
fn several_files_read_as_one_across_their_borders() {
    let dir = tempfile::tempdir().unwrap();
    let dim = 7;
    let all = rows(30, dim, 0);
    // Formats may differ and a file may have no rows, as long as dim and type agree.
    let parts = [("a.fbin", 0..10), ("b.npy", 10..10), ("c.npy", 10..13), ("d.fvecs", 13..30)];
    let paths: Vec<PathBuf> = parts
        .iter()
        .map(|(name, range)| {
            let path = dir.path().join(name);
            write(&path, dim, Dtype::F32, &all[range.start * dim..range.end * dim]);
            path
        })
        .collect();
    let base = Base::open(&paths).unwrap();
    assert_eq!((base.n(), base.paths()), (30, paths.as_slice()));
    for start in 0..30 {
        for count in 0..=30 - start {
            let mut read = vec![0.0; count * dim];
            base.read_f32(start as u64, &mut read).unwrap();
            assert_eq!(read, all[start * dim..(start + count) * dim]);
            let mut raw = vec![0; count * dim * 4];
            base.read_raw(start as u64, &mut raw).unwrap();
            let expected: Vec<u8> = read.iter().flat_map(|v| v.to_le_bytes()).collect();
            assert_eq!(raw, expected);
        }
    }
    assert_eq!(base.locate(9), (paths[0].as_path(), 9));
    assert_eq!(base.locate(10), (paths[2].as_path(), 0));
    assert_eq!(base.locate(29), (paths[3].as_path(), 16));
}

#[test]
fn gathered_rows_equal_rows_read_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    for (extension, dtype, dim) in
        [("fvecs", Dtype::F32, 5000), ("u8bin", Dtype::U8, 3), ("npy", Dtype::F16, 65)]
    {
        let paths = [0, 1].map(|part| {
            let path = dir.path().join(format!("{part}.{extension}"));
            write(&path, dim, dtype, &rows(150, dim, part * 150));
            path
        });
        let base = Base::open(&paths).unwrap();
        let sparse: Vec<u64> = (0..300).step_by(7).collect();
        let dense: Vec<u64> = (0..300).collect();
        // Repeats and descending rows are slower, not wrong.
        let odd = vec![299, 0, 149, 149, 150, 20, 19, 18];
        for chosen in [sparse, dense, odd, vec![]] {
            let mut gathered = vec![0.0; chosen.len() * dim];
            base.gather_f32(&chosen, &mut gathered).unwrap();
            for (&row, found) in chosen.iter().zip(gathered.chunks_exact(dim)) {
                let mut expected = vec![0.0; dim];
                base.read_f32(row, &mut expected).unwrap();
                assert_eq!(found, expected, "{extension} row {row}");
            }
        }
    }
}

#[test]
fn rows_past_the_end_are_an_error_and_not_a_short_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.u8bin");
    write(&path, 3, Dtype::U8, &rows(5, 3, 0));
    let base = Base::open(&[&path]).unwrap();
    let mut two = [0.0; 6];
    base.read_f32(3, &mut two).unwrap();
    for start in [4, 5, u64::MAX] {
        let message = base.read_f32(start, &mut two).unwrap_err().to_string();
        assert!(message.contains("there are 5"), "{message}");
    }
    assert!(base.gather_f32(&[4, 5], &mut two).is_err());
    base.read_f32(5, &mut []).unwrap();
}

#[test]
fn threads_may_read_one_base_at_the_same_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.bvecs");
    let all = rows(2000, 65, 0);
    write(&path, 65, Dtype::U8, &all);
    let base = Base::open(&[path]).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (base, all) = (&base, &all);
            scope.spawn(move || {
                for start in (thread * 100..1900).step_by(250) {
                    let mut read = vec![0.0; 100 * 65];
                    base.read_f32(start as u64, &mut read).unwrap();
                    assert_eq!(read, all[start * 65..][..6500]);
                }
            });
        }
    });
}
