//! Samples are distinct, ascending, in range, uniform and the same every time.

use dataset::sample_rows;
use proptest::prelude::*;

#[test]
fn asking_for_all_rows_or_more_returns_all() {
    for (n, count) in [(0, 0), (0, 5), (1, 1), (10, 10), (10, u64::MAX)] {
        assert!(sample_rows(n, count, 3).into_iter().eq(0..n));
    }
    assert_eq!(sample_rows(10, 0, 3), [0; 0]);
}

#[test]
fn a_few_rows_of_very_many_cost_little() {
    let rows = sample_rows(u64::MAX, 1000, 9);
    assert_eq!(rows.len(), 1000);
    assert!(rows.is_sorted_by(|a, b| a < b));
    assert!(rows[0] < u64::MAX / 50 && rows[999] > u64::MAX / 50 * 49);
}

#[test]
fn every_row_is_equally_likely() {
    // 20,000 samples of 5 from 20, and of 1 from 100 (the sparse way): chi squared.
    for (n, count, rounds) in [(20u64, 5u64, 20_000u64), (100, 1, 40_000)] {
        let mut hits = vec![0u32; n as usize];
        for seed in 0..rounds {
            sample_rows(n, count, seed).into_iter().for_each(|row| hits[row as usize] += 1);
        }
        let expected = (rounds * count) as f64 / n as f64;
        let chi: f64 = hits.iter().map(|&h| (f64::from(h) - expected).powi(2) / expected).sum();
        let freedom = n as f64 - 1.0;
        assert!(chi < freedom + 5.0 * (2.0 * freedom).sqrt(), "{n} {count}: chi squared {chi}");
    }
}

#[test]
fn the_sample_of_a_seed_never_changes() {
    // Stored indexes depend on it: a change of this line is a change of the format.
    assert_eq!(sample_rows(1_000_000, 5, 42), [87_698, 427_735, 841_668, 878_318, 924_704]);
}

proptest! {
    #[test]
    fn samples_are_distinct_ascending_and_in_range(n in 1u64..5000, share in 0.0..1.0f64, seed: u64) {
        let count = (n as f64 * share) as u64;
        let rows = sample_rows(n, count, seed);
        prop_assert_eq!(rows.len() as u64, count);
        prop_assert!(rows.is_sorted_by(|a, b| a < b));
        prop_assert!(rows.last().is_none_or(|&last| last < n));
        prop_assert_eq!(sample_rows(n, count, seed), rows);
    }
}
