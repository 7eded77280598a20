//! Sets of rows: small in memory, the same after a round trip through bytes, damage refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use dataset::RowSet;
use proptest::prelude::*;

fn set(rows: impl IntoIterator<Item = u64>) -> RowSet {
    let mut set = RowSet::default();
    set.extend(rows);
    set
}

#[test]
fn half_of_the_rows_take_one_bit_for_every_row() {
    let n = 4_000_000;
    let every_second = set((0..n).step_by(2));
    assert_eq!(every_second.len(), n / 2);
    let bits = n / 8;
    assert!((bits..bits * 102 / 100 + 8192).contains(&every_second.bytes()));
    assert!(every_second.bytes() <= RowSet::most_bytes(n));
}

#[test]
fn the_bound_on_memory_holds_around_the_change_of_representation() {
    for rows in [1, 3, 4095, 4096, 4097, 65_536] {
        assert!(set(0..rows).bytes() <= RowSet::most_bytes(65_536), "{rows}");
    }
    assert_eq!(set([]).bytes(), 0);
    assert!(set([5, 1 << 40]).bytes() < 300);
}

#[test]
fn cut_and_flipped_bytes_are_refused() {
    for rows in [set([]), set([3, 70_000, u64::MAX]), set(0..5000)] {
        let bytes = rows.to_bytes();
        for len in (0..bytes.len()).step_by(1 + bytes.len() / 64) {
            assert!(RowSet::from_bytes(&bytes[..len]).is_err(), "{len}");
        }
        for at in (0..bytes.len()).step_by(1 + bytes.len() / 64) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert!(RowSet::from_bytes(&damaged).is_err(), "{at}");
        }
    }
}

/// Bytes of a set with a checksum that fits whatever they say.
fn sealed(content: &[&[u8]]) -> Vec<u8> {
    let mut bytes = content.concat();
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

#[test]
fn bytes_that_contradict_themselves_are_refused_whatever_their_checksum() {
    let one = |high: u64, rows: u32| [&high.to_le_bytes()[..], &rows.to_le_bytes()].concat();
    let (count, low) = (|n: u64| n.to_le_bytes(), |low: u16| low.to_le_bytes());
    assert!(RowSet::from_bytes(&sealed(&[&count(1), &one(2, 1), &low(9)])).is_ok());
    for (bytes, problem) in [
        (sealed(&[&count(u64::MAX)]), "ends too early"),
        (sealed(&[&count(1), &one(2, 2), &low(9)]), "ends too early"),
        (sealed(&[&count(1), &one(2, u32::MAX), &low(9)]), "ends too early"),
        (sealed(&[&count(0), &low(9)]), "left over"),
        (sealed(&[&count(1), &one(2, 0)]), "rows are wrong"),
        (sealed(&[&count(1), &one(2, 2), &low(9), &low(9)]), "rows are wrong"),
        (sealed(&[&count(1), &one(2, 5000), &[255; 8192]]), "rows are wrong"),
        (sealed(&[&count(1), &one(1 << 48, 1), &low(9)]), "not in order"),
        (sealed(&[&count(2), &one(2, 1), &low(9), &one(2, 1), &low(9)]), "not in order"),
    ] {
        let error = RowSet::from_bytes(&bytes).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}, expected {problem}");
    }
}

proptest! {
    #[test]
    fn a_set_is_the_same_after_a_round_trip_through_bytes(
        runs in prop::collection::vec((0u64..300_000, 1u64..9000, 1u64..5), 0..6),
        far in any::<u64>(),
    ) {
        let rows = runs
            .into_iter()
            .flat_map(|(start, len, step)| (start..start + len * step).step_by(step as usize));
        let set = set(rows.chain([far]));
        let read = RowSet::from_bytes(&set.to_bytes()).unwrap();
        prop_assert_eq!(&read, &set);
        prop_assert!(read.iter().eq(set.iter()));
    }
}
