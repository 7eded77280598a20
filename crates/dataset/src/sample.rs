//! Uniform samples of rows without replacement.
//!
//! ```text
//! Floyd:  for j in n-count .. n:   r = below(j + 1);   add r, or j when r is there already
//! ```
//! `count` draws whatever the ratio; the set is a hash set, or a bitmap of n bits once that is
//! no larger than the result. The rows are the same either way. (Bentley and Floyd, "A sample
//! of brilliance", 1987.)

use std::collections::HashSet;

use crate::rng::Rng;

const DOMAIN: u64 = 0x5a3e;

/// `count` distinct rows of 0 .. `n`, ascending; all of them when `count` is at least `n`.
/// Every set of that size is equally likely, and a seed gives the same one everywhere.
pub fn sample_rows(n: u64, count: u64, seed: u64) -> Vec<u64> {
    if count >= n {
        return (0..n).collect();
    }
    let mut rng = Rng::stream(seed, DOMAIN, n);
    if n / 64 <= count { dense(n, count, &mut rng) } else { sparse(n, count, &mut rng) }
}

fn sparse(n: u64, count: u64, rng: &mut Rng) -> Vec<u64> {
    let mut chosen = HashSet::with_capacity(count as usize);
    for j in n - count..n {
        let row = rng.below(j + 1);
        if !chosen.insert(row) {
            chosen.insert(j);
        }
    }
    let mut rows: Vec<u64> = chosen.into_iter().collect();
    rows.sort_unstable();
    rows
}

fn dense(n: u64, count: u64, rng: &mut Rng) -> Vec<u64> {
    let mut words = vec![0u64; n.div_ceil(64) as usize];
    let insert = |words: &mut [u64], row: u64| {
        let (word, bit) = (&mut words[(row / 64) as usize], 1 << (row % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    };
    for j in n - count..n {
        let row = rng.below(j + 1);
        if !insert(&mut words, row) {
            insert(&mut words, j);
        }
    }
    let mut rows = Vec::with_capacity(count as usize);
    for (start, mut word) in (0..).step_by(64).zip(words) {
        while word != 0 {
            rows.push(start + u64::from(word.trailing_zeros()));
            word &= word - 1;
        }
    }
    rows
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn both_sets_choose_the_same_rows() {
        for (n, count) in [(1, 0), (2, 1), (100, 7), (1000, 999), (4096, 64)] {
            let rng = Rng::stream(3, DOMAIN, n);
            assert_eq!(sparse(n, count, &mut rng.clone()), dense(n, count, &mut rng.clone()));
        }
    }
}
