//! NumPy headers: all that NumPy writes is read or refused with the way out; damage never
//! panics and never passes for data.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use dataset::{Base, DatasetError, Dtype};
use proptest::prelude::*;

fn npy(version: u8, dict: &str, data: usize) -> Vec<u8> {
    let mut file = [b"\x93NUMPY", &[version, 0][..]].concat();
    match version {
        1 => file.extend_from_slice(&(dict.len() as u16).to_le_bytes()),
        _ => file.extend_from_slice(&(dict.len() as u32).to_le_bytes()),
    }
    file.extend_from_slice(dict.as_bytes());
    file.resize(file.len() + data, 0);
    file
}

fn dict(descr: &str, order: &str, shape: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}          \n")
}

fn open(dir: &Path, content: &[u8]) -> Result<Base, DatasetError> {
    let path = dir.join("x.npy");
    fs_err::write(&path, content).unwrap();
    Base::open(&[path])
}

#[test]
fn all_versions_and_spellings_of_little_endian_types_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let types = [
        (Dtype::F32, ["'<f4'", "'=f4'", "'|f4'", "'f4'"]),
        (Dtype::F16, ["'<f2'", "'=f2'", "'|f2'", "\"<f2\""]),
        (Dtype::F64, ["'<f8'", "'=f8'", "'|f8'", "'f8'"]),
        (Dtype::U8, ["'<u1'", "'=u1'", "'|u1'", "'>u1'"]),
        (Dtype::I8, ["'<i1'", "'=i1'", "'|i1'", "\"|i1\""]),
    ];
    for (dtype, descrs) in types {
        for descr in descrs {
            for version in 1..=3 {
                let file = npy(version, &dict(descr, "False", "(6, 5)"), 30 * dtype.size());
                let base = open(dir.path(), &file).unwrap();
                assert_eq!((base.n(), base.dim(), base.dtype()), (6, 5, dtype), "{descr}");
            }
        }
    }
}

#[test]
fn keys_may_come_in_any_order_and_numbers_in_old_spelling() {
    let dir = tempfile::tempdir().unwrap();
    for text in [
        "{'shape':(6L,5L),'fortran_order':False,'descr':'<f4'}",
        "{ \"fortran_order\" : False ,\n 'descr': '<f4', 'shape' : ( 6 , 5 , ) , } \n",
    ] {
        let base = open(dir.path(), &npy(1, text, 120)).unwrap();
        assert_eq!((base.n(), base.dim()), (6, 5));
    }
}

#[test]
fn arrays_of_another_kind_are_refused_with_the_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let convert = "np.ascontiguousarray(x, dtype=np.float32)";
    let cases = [
        (dict("'>f4'", "False", "(6, 5)"), "big-endian", convert),
        (dict("'<f4'", "True", "(6, 5)"), "Fortran order", convert),
        (dict("'<i4'", "False", "(6, 5)"), "<i4", convert),
        (dict("'|O'", "False", "(6, 5)"), "|O", convert),
        (dict("'|b1'", "False", "(6, 5)"), "|b1", convert),
        (dict("'<f4'", "False", "(30,)"), "1 dimension", "reshape"),
        (dict("'<f4'", "False", "(2, 3, 5)"), "3 dimension", "reshape"),
        (dict("'<f4'", "False", "()"), "0 dimension", "reshape"),
        (dict("[('a', '<f4'), ('b', '<f4')]", "False", "(15,)"), "structured", "field"),
    ];
    for (header, problem, remedy) in cases {
        let message = open(dir.path(), &npy(1, &header, 120)).unwrap_err().to_string();
        assert!(message.contains("x.npy") && message.contains(problem), "{message}");
        assert!(message.contains(remedy), "{message}");
    }
}

#[test]
fn damaged_headers_are_refused_with_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let good = dict("'<f4'", "False", "(6, 5)");
    let cases = [
        npy(1, "", 120),
        npy(1, "{", 120),
        npy(1, "{'descr': '<f4', 'shape': (6, 5)}", 120),
        npy(1, "{'descr': '<f4', 'fortran_order': 0, 'shape': (6, 5)}", 120),
        npy(1, "{'descr': '<f4' 'fortran_order': False, 'shape': (6, 5)}", 120),
        npy(1, &good.replace("(6, 5)", "(6, -5)"), 120),
        npy(1, &good.replace("(6, 5)", "(6 5)"), 120),
        npy(1, &good.replace("shape", "shade"), 120),
        npy(1, &good.replace('}', "}}"), 120),
        npy(1, &good.replace("'<f4'", "'<f4"), 120),
    ];
    for case in cases {
        let message = open(dir.path(), &case).unwrap_err().to_string();
        assert!(message.contains("damaged NumPy header at byte"), "{message}");
    }
    let version = open(dir.path(), &npy(4, &good, 120)).unwrap_err().to_string();
    assert!(version.contains("version 4, this build reads 1 to 3"), "{version}");
    let whole = npy(1, &good, 0);
    for len in 6..whole.len() {
        let message = open(dir.path(), &whole[..len]).unwrap_err().to_string();
        assert!(message.contains(&format!("the file holds {len} bytes")), "{message}");
    }
}

#[test]
fn shapes_up_to_2_to_the_64_are_measured_against_the_file() {
    let dir = tempfile::tempdir().unwrap();
    for (shape, rows_fit) in [
        ("(7, 5)", "6 rows fit"),
        ("(5, 5)", "6 rows fit"),
        ("(2147483648, 2147483648)", "0 rows fit"),
        ("(9223372036854775808, 5)", "6 rows fit"),
        ("(9223372036854775808, 9223372036854775808)", "0 rows fit"),
        ("(18446744073709551615, 18446744073709551615)", "0 rows fit"),
        // The product wraps to 0 and to 30 in 64 bits.
        ("(9223372036854775808, 2)", "15 rows fit"),
        ("(9223372036854775823, 2)", "15 rows fit"),
    ] {
        let file = npy(1, &dict("'<f4'", "False", shape), 120);
        let message = open(dir.path(), &file).unwrap_err().to_string();
        assert!(message.contains(rows_fit), "{shape}: {message}");
    }
    let beyond = npy(1, &dict("'<f4'", "False", "(18446744073709551616, 5)"), 120);
    assert!(open(dir.path(), &beyond).unwrap_err().to_string().contains("exceeds 64 bits"));
    let zero = npy(1, &dict("'<f4'", "False", "(5, 0)"), 0);
    assert!(matches!(open(dir.path(), &zero), Err(DatasetError::DimOutOfRange { .. })));
    assert_eq!(open(dir.path(), &npy(1, &dict("'<f4'", "False", "(0, 5)"), 0)).unwrap().n(), 0);
}

/// Whatever opened must be no larger than its file.
fn check_opened(content: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    if let Ok(base) = open(dir.path(), content) {
        let bytes = u128::from(base.n()) * (base.dim() * base.dtype().size()) as u128;
        assert!(bytes < content.len() as u128);
        let mut rows = vec![0.0; base.n() as usize * base.dim()];
        base.read_f32(0, &mut rows).unwrap();
    }
}

proptest! {
    #[test]
    fn random_bytes_behind_the_magic_never_panic(
        version in 0u8..5,
        tail in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        check_opened(&[b"\x93NUMPY", &[version][..], &tail].concat());
    }

    #[test]
    fn flipped_bytes_in_a_good_file_never_panic(
        flips in prop::collection::vec((0usize..100, any::<u8>()), 1..5),
        version in 1u8..4,
        cut in 0usize..200,
    ) {
        let mut file = npy(version, &dict("'<f4'", "False", "(6, 5)"), 120);
        for (at, byte) in flips {
            file[at] = byte;
        }
        file.truncate(file.len().saturating_sub(cut / 2));
        check_opened(&file);
    }

    #[test]
    fn text_in_the_dict_never_panics(text in "[{}()\\[\\]',:0-9a-zTF <>|=L]{0,80}") {
        check_opened(&npy(1, &text, 8));
    }
}
