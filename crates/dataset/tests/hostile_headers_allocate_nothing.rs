//! A header that declares terabytes costs no memory. Alone in its file: it watches the peak of
//! the whole process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use dataset::{Base, GroundTruth};

fn peak_virtual_kib() -> u64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmPeak:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn declared_sizes_do_not_drive_allocations() {
    let dir = tempfile::tempdir().unwrap();
    let before = peak_virtual_kib();
    let numbers = [0u32, 1, 1000, 65_536, 1 << 31, u32::MAX];
    for (rows, dim) in numbers.iter().flat_map(|&r| numbers.map(|d| (r, d))) {
        let content: Vec<u8> =
            [rows, dim, 7, 7, 7, 7].iter().flat_map(|v| v.to_le_bytes()).collect();
        for extension in ["fbin", "u8bin", "i8bin", "f16bin", "fvecs", "bvecs", "npy", "ivecs"] {
            let path = dir.path().join(format!("x.{extension}"));
            fs_err::write(&path, &content).unwrap();
            // What opens all the same, as rows of an .fvecs may, is no larger than the file.
            let values = Base::open(&[&path]).map_or(0, |base| base.n() * base.dim() as u64);
            assert!(values <= 24, "{rows} x {dim} {extension}");
            let truth = GroundTruth::read(&path);
            assert!(truth.is_err() || truth.unwrap().ids.len() <= 6);
        }
    }
    for (version, len) in [(1u8, u32::from(u16::MAX)), (2, u32::MAX), (3, 1 << 31)] {
        let content = [b"\x93NUMPY", &[version, 0][..], &len.to_le_bytes()].concat();
        let path = dir.path().join("x.npy");
        fs_err::write(&path, content).unwrap();
        assert!(Base::open(&[&path]).is_err());
    }
    let grown = peak_virtual_kib() - before;
    assert!(grown < 256 << 10, "grew by {grown} KiB");
}
