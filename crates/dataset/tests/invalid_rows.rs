//! Rows that arithmetic cannot survive are found, named and counted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use dataset::{Invalid, InvalidReason, RowCheck, RowSet, check_rows};
use proptest::prelude::*;

fn check(rows: &[f32], dim: usize, start: u64) -> RowCheck {
    let mut found = RowCheck::default();
    check_rows(rows, dim, start, &mut found);
    found
}

#[test]
fn nan_and_infinite_components_are_found_wherever_they_stand() {
    for dim in [1, 3, 16, 17, 65] {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for place in 0..dim {
                let mut rows = vec![0.5; 4 * dim];
                rows[2 * dim + place] = bad;
                let found = check(&rows, dim, 100);
                let expected = Invalid { row: 102, reason: InvalidReason::NonFinite };
                assert_eq!(found.first(), Some(expected));
                assert_eq!(found.invalid().iter().collect::<Vec<_>>(), [102]);
            }
        }
    }
}

#[test]
fn norms_beyond_f32_arithmetic_are_overflows_and_large_ones_are_not() {
    let reason = |row: &[f32]| check(row, row.len(), 0).first().map(|invalid| invalid.reason);
    assert_eq!(reason(&[1e15, 0.0]), None);
    assert_eq!(reason(&[1.001e15, 0.0]), Some(InvalidReason::NormOverflow));
    assert_eq!(reason(&[f32::MAX, 0.0]), Some(InvalidReason::NormOverflow));
    assert_eq!(reason(&[6e14; 4]), Some(InvalidReason::NormOverflow));
    assert_eq!(reason(&[f32::MAX, f32::NAN]), Some(InvalidReason::NonFinite));
}

#[test]
fn zero_rows_are_valid_and_counted_and_short_rows_are_none() {
    let rows = [0.0, -0.0, 1e-30, 1e-30, 1e-19, 0.0, 3.0, 4.0];
    let found = check(&rows, 2, 0);
    assert_eq!((found.zero_rows(), found.max_norm()), (1, 5.0));
    assert!(found.first().is_none() && found.invalid().is_empty());
    assert_eq!(check(&[2e-38], 1, 0).zero_rows(), 0);
    assert_eq!(check(&[1e-38], 1, 0).zero_rows(), 1, "no normal float");
}

#[test]
fn all_rows_invalid_are_all_counted() {
    let found = check(&vec![f32::NAN; 200_000], 2, 7);
    assert_eq!((found.invalid().len(), found.max_norm()), (100_000, 0.0));
    assert_eq!(found.first().unwrap().row, 7);
    assert!(found.invalid().iter().eq(7..100_007));
}

#[test]
fn merged_checks_do_not_depend_on_their_order() {
    let mut rows = vec![1.0f32; 3000];
    for bad in [5, 700, 701, 2990] {
        rows[bad] = f32::NAN;
    }
    rows[10] = 0.0;
    rows[20] = 9.0;
    let whole = check(&rows, 1, 0);
    let parts: Vec<RowCheck> =
        (0..3).map(|part| check(&rows[part * 1000..][..1000], 1, part as u64 * 1000)).collect();
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let mut merged = RowCheck::default();
        order.iter().for_each(|&part| merged.merge(&parts[part]));
        assert_eq!(merged, whole);
    }
    assert_eq!(whole.first().unwrap().row, 5);
}

proptest! {
    #[test]
    fn a_row_set_behaves_like_a_tree_set(
        runs in prop::collection::vec((0u64..300_000, 1u64..9000, 1u64..5), 0..6),
        far in any::<u64>(),
    ) {
        let rows: Vec<u64> = runs
            .into_iter()
            .flat_map(|(start, len, step)| (start..start + len * step).step_by(step as usize))
            .chain([far])
            .collect();
        let (mut set, mut expected) = (RowSet::default(), BTreeSet::new());
        for &row in &rows {
            prop_assert_eq!(set.insert(row), expected.insert(row));
        }
        prop_assert_eq!(set.len(), expected.len() as u64);
        prop_assert!(set.iter().eq(expected.iter().copied()));
        for probe in rows.iter().flat_map(|&row| [row, row.wrapping_add(1)]) {
            prop_assert_eq!(set.contains(probe), expected.contains(&probe));
        }
    }
}
