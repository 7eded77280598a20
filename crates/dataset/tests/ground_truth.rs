//! Ground truth comes back as it was written; a file of any other size is refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use dataset::{DatasetError, GroundTruth};

fn truth() -> GroundTruth {
    let ids: Vec<u64> = (0..12).map(|i| i * 1000).chain([0, 7, u64::from(u32::MAX)]).collect();
    let distances = (0..15).map(|i| i as f32 * 0.5).collect();
    GroundTruth { queries: 5, k: 3, ids, distances: Some(distances) }
}

#[test]
fn what_was_written_is_read_with_and_without_scores() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("gt.bin");
    let scored = truth();
    let bare = GroundTruth { distances: None, ..truth() };
    let none = GroundTruth { k: 10, ..GroundTruth::default() };
    for truth in [scored, bare, none] {
        truth.write(&path).unwrap();
        assert_eq!(GroundTruth::read(&path).unwrap(), truth);
    }
}

#[test]
fn the_layout_is_header_then_row_numbers_then_scores() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("gt.bin");
    truth().write(&path).unwrap();
    let bytes = fs_err::read(&path).unwrap();
    assert_eq!(bytes.len(), 8 + 15 * 8);
    assert_eq!(bytes[..8], [5, 0, 0, 0, 3, 0, 0, 0]);
    assert_eq!(bytes[8 + 4..8 + 8], 1000u32.to_le_bytes());
    assert_eq!(bytes[8 + 15 * 4 + 4..][..4], 0.5f32.to_le_bytes());
    let read = GroundTruth::read(&path).unwrap();
    assert_eq!(read.ids_of(4), [0, 7, u64::from(u32::MAX)]);
    assert_eq!(read.distances_of(1), Some([1.5, 2.0, 2.5].as_slice()));
}

#[test]
fn every_other_size_is_refused_with_the_sizes_that_would_do() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("gt.bin");
    truth().write(&path).unwrap();
    let whole = [fs_err::read(&path).unwrap(), vec![0; 9]].concat();
    for len in 0..whole.len() {
        fs_err::write(&path, &whole[..len]).unwrap();
        match GroundTruth::read(&path) {
            Ok(read) => assert!(match len {
                68 => read.distances.is_none(),
                128 => read.distances.is_some(),
                _ => false,
            }),
            Err(DatasetError::Empty { .. }) => assert_eq!(len, 0),
            Err(DatasetError::ShortHeader { .. }) => assert!(len < 8),
            Err(error) => {
                let message = error.to_string();
                assert!(message.contains("5 queries x 3 = 68 bytes"), "{message}");
                assert!(message.contains(&format!("128 with scores, the file holds {len}")));
            }
        }
    }
    assert!(matches!(GroundTruth::read(dir.path()), Err(DatasetError::Directory { .. })));
}

#[test]
fn ivecs_files_are_read_row_by_row() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("gt.ivecs");
    let read = |values: &[i32]| {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        fs_err::write(&path, bytes).unwrap();
        GroundTruth::read(&path)
    };
    let truth = read(&[2, 10, 11, 2, 20, 21, 2, 30, i32::MAX]).unwrap();
    assert_eq!((truth.queries, truth.k, truth.distances), (3, 2, None));
    assert_eq!(truth.ids, [10, 11, 20, 21, 30, 0x7fff_ffff]);
    assert!(matches!(
        read(&[2, 10, 11, 3, 20, 21]),
        Err(DatasetError::RowDim { row: 1, expected: 2, found: 3, .. })
    ));
    assert!(matches!(
        read(&[2, 10, 11, 2, 20, -1]),
        Err(DatasetError::TruthId { query: 1, rank: 1, id: -1, .. })
    ));
    assert!(matches!(read(&[2, 10, 11, 2]), Err(DatasetError::PartialRow { .. })));
    assert!(matches!(read(&[0, 1]), Err(DatasetError::DimOutOfRange { .. })));
    assert!(matches!(read(&[-1, 1]), Err(DatasetError::DimOutOfRange { .. })));
}

#[test]
fn what_the_format_cannot_hold_is_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("gt.bin");
    let mut large = truth();
    large.ids[7] = 1 << 32;
    let message = large.write(&path).unwrap_err().to_string();
    assert!(message.contains("query 2, rank 1: row number 4294967296"), "{message}");
    let mut short = truth();
    short.ids.pop();
    assert!(matches!(short.write(&path), Err(DatasetError::TruthShape { ids: 14, .. })));
    let mut scores = truth();
    scores.distances = Some(vec![0.0; 3]);
    assert!(matches!(scores.write(&path), Err(DatasetError::TruthShape { .. })));
    let huge = GroundTruth { queries: usize::MAX, k: 2, ..GroundTruth::default() };
    assert!(matches!(huge.write(&path), Err(DatasetError::TruthShape { .. })));
    let ivecs = truth().write(&dir.path().join("gt.ivecs"));
    assert!(matches!(ivecs, Err(DatasetError::TruthExtension { .. })));
    assert_eq!(fs_err::read_dir(dir.path()).unwrap().count(), 0);
}
