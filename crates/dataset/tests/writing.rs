//! A written file is complete or absent, and holds the values or an error says which it cannot.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use dataset::{Base, DatasetError, Dtype, Rounding, VectorWriter};

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs_err::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_dropped_writer_leaves_no_trace_and_the_old_file_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.fbin");
    fs_err::write(&path, b"old").unwrap();
    let mut writer = VectorWriter::create(&path, 2, Dtype::F32).unwrap();
    writer.write_f32(&[1.0; 4]).unwrap();
    assert_eq!(names(dir.path()).len(), 2);
    assert_eq!(fs_err::read(&path).unwrap(), b"old");
    drop(writer);
    assert_eq!(names(dir.path()), ["x.fbin"]);
    assert_eq!(fs_err::read(&path).unwrap(), b"old");
}

#[test]
fn finish_replaces_the_old_file_and_leaves_nothing_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.fbin");
    fs_err::write(&path, b"old").unwrap();
    let mut writer = VectorWriter::create(&path, 2, Dtype::F32).unwrap();
    writer.write_f32(&[1.0, 2.0]).unwrap();
    writer.write_f32(&[3.0, 4.0, 5.0, 6.0]).unwrap();
    assert_eq!(writer.finish().unwrap(), 3);
    let numbers = [3u32, 2].map(u32::to_le_bytes).concat();
    let values = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0].map(f32::to_le_bytes).concat();
    assert_eq!(fs_err::read(&path).unwrap(), [numbers, values].concat());
    assert_eq!(names(dir.path()), ["x.fbin"]);
}

#[test]
fn the_published_file_has_the_permissions_of_any_new_file() {
    let dir = tempfile::tempdir().unwrap();
    let mode =
        |name: &str| fs_err::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
    fs_err::write(dir.path().join("plain"), b"").unwrap();
    VectorWriter::create(&dir.path().join("x.npy"), 2, Dtype::F32).unwrap().finish().unwrap();
    assert_eq!(mode("x.npy"), mode("plain"));
}

#[test]
fn a_value_that_does_not_fit_is_named_with_its_row() {
    let dir = tempfile::tempdir().unwrap();
    for (extension, dtype, value) in [
        ("u8bin", Dtype::U8, 256.0),
        ("u8bin", Dtype::U8, -1.0),
        ("u8bin", Dtype::U8, 1.5),
        ("u8bin", Dtype::U8, f32::NAN),
        ("i8bin", Dtype::I8, 128.0),
        ("i8bin", Dtype::I8, -129.0),
        ("i8bin", Dtype::I8, f32::INFINITY),
        ("f16bin", Dtype::F16, 65_520.0),
    ] {
        let path = dir.path().join(format!("x.{extension}"));
        let mut writer = VectorWriter::create(&path, 2, dtype).unwrap();
        writer.write_f32(&[1.0; 6]).unwrap();
        let message = writer.write_f32(&[2.0, 2.0, 2.0, value]).unwrap_err().to_string();
        assert!(message.contains("row 4, component 1"), "{message}");
        assert!(message.contains(&format!("{value} is no {dtype} value")), "{message}");
        drop(writer);
        assert_eq!(names(dir.path()), [""; 0]);
    }
}

#[test]
fn rounding_and_clamping_are_done_when_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let write = |extension: &str, dtype, rounding, values: &[f32]| {
        let path = dir.path().join(format!("x.{extension}"));
        let mut writer = VectorWriter::create(&path, 1, dtype).unwrap().rounding(rounding);
        writer.write_f32(values)?;
        writer.finish()?;
        let mut read = vec![0.0; values.len()];
        Base::open(&[path])?.read_f32(0, &mut read)?;
        Ok::<_, DatasetError>(read)
    };
    let nearest = write("u8bin", Dtype::U8, Rounding::Nearest, &[0.5, 1.5, 254.6, -0.4]).unwrap();
    assert_eq!(nearest, [0.0, 2.0, 255.0, 0.0]);
    assert!(write("u8bin", Dtype::U8, Rounding::Nearest, &[255.6]).is_err());
    let clamped = write("i8bin", Dtype::I8, Rounding::Clamp, &[-1e9, 1e9, f32::INFINITY]).unwrap();
    assert_eq!(clamped, [-128.0, 127.0, 127.0]);
    assert!(write("i8bin", Dtype::I8, Rounding::Clamp, &[f32::NAN]).is_err());
    let halves = write("f16bin", Dtype::F16, Rounding::Clamp, &[1e9, -1e9, 0.1]).unwrap();
    assert_eq!(halves, [65_504.0, -65_504.0, 0.099_975_586]);
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_only_files_are_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let (file, link) = (dir.path().join("a.fbin"), dir.path().join("link.fbin"));
    std::fs::write(&file, b"old").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    VectorWriter::create(&link, 1, Dtype::F32).unwrap().finish().unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(std::fs::read(&file).unwrap().len(), 8);

    let socket = dir.path().join("s.fbin");
    let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let message = VectorWriter::create(&socket, 1, Dtype::F32).unwrap_err().to_string();
    assert!(message.contains("s.fbin") && message.contains("a file to write"), "{message}");
    assert!(!socket.symlink_metadata().unwrap().is_file());
    assert_eq!(names(dir.path()), ["a.fbin", "link.fbin", "s.fbin"]);
}

#[test]
fn an_extension_that_does_not_go_with_the_type_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (name, dtype) in [
        ("x.fbin", Dtype::U8),
        ("x.u8bin", Dtype::I8),
        ("x.bvecs", Dtype::F32),
        ("x.npy", Dtype::F64),
        ("x.fbin", Dtype::F64),
    ] {
        let message =
            VectorWriter::create(&dir.path().join(name), 2, dtype).unwrap_err().to_string();
        assert!(message.contains(&format!("cannot hold {dtype} values")), "{message}");
    }
    for dim in [0, 65_537] {
        assert!(VectorWriter::create(&dir.path().join("x.fbin"), dim, Dtype::F32).is_err());
    }
    assert!(VectorWriter::create(&dir.path().join("no/x.fbin"), 1, Dtype::F32).is_err());
    assert!(VectorWriter::create(&dir.path().join("x.csv"), 1, Dtype::F32).is_err());
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn more_rows_than_the_header_counts_are_refused_beforehand() {
    let dir = tempfile::tempdir().unwrap();
    let room = |name: &str, dtype, rows| {
        VectorWriter::create(&dir.path().join(name), 1, dtype).unwrap().check_room(rows)
    };
    let most = u64::from(u32::MAX);
    room("x.u8bin", Dtype::U8, most).unwrap();
    assert!(matches!(
        room("x.u8bin", Dtype::U8, most + 1),
        Err(DatasetError::TooManyRows { rows, .. }) if rows == most + 1
    ));
    room("x.npy", Dtype::U8, u64::MAX).unwrap();
    room("x.bvecs", Dtype::U8, u64::MAX).unwrap();
}

#[test]
fn type_names_round_trip() {
    for dtype in [Dtype::F32, Dtype::F16, Dtype::U8, Dtype::I8, Dtype::F64] {
        assert_eq!(dtype.to_string().parse::<Dtype>().unwrap(), dtype);
    }
    assert!("float".parse::<Dtype>().unwrap_err().to_string().contains("f32, f16, u8, i8"));
}
