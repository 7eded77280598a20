//! The least nprobe that reaches a recall.
//!
//! Recall rises with nprobe, up to the noise that the timing of reads adds when alpha is below 1.
//! So the search treats it as monotone:
//!
//! ```text
//! 1, 2, 4, 8, ... until the target is reached       a bracket: (too few, enough]
//! bisect the bracket, one unmeasured round a step   the least nprobe that is enough
//! measure it; while noise puts it below the target, go on with a few per cent more lists
//! ```
//! The row that is reported has reached its target in the rounds it reports.

use std::collections::BTreeMap;

use super::{BenchRow, Repeat, Setting, Trial};
use crate::SearchError;

/// What is known of recall against nprobe, everything else fixed: targets asked for one after
/// another share their measurements.
#[derive(Clone, Debug, Default)]
pub struct RecallCurve {
    known: BTreeMap<usize, f64>,
}

impl RecallCurve {
    /// Measured (nprobe, recall), by nprobe.
    pub fn points(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.known.iter().map(|(&nprobe, &recall)| (nprobe, recall))
    }
}

/// A setting found by its recall.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OperatingPoint {
    /// The row reaches the target.
    Reached(BenchRow),
    /// Visiting every list does not reach it; the row of that.
    OutOfReach(BenchRow),
}

impl OperatingPoint {
    /// The measured row, reached or not.
    #[must_use]
    pub fn into_row(self) -> BenchRow {
        match self {
            Self::Reached(row) | Self::OutOfReach(row) => row,
        }
    }
}

impl Trial<'_> {
    /// Find the least nprobe whose recall is at least `target`, if any is; `setting` gives
    /// everything but nprobe, `curve` what is known of it.
    ///
    /// # Errors
    /// The first query that fails.
    pub fn least_nprobe(
        &self,
        target: f64,
        setting: &Setting,
        curve: &mut RecallCurve,
    ) -> Result<Option<usize>, SearchError> {
        least(self.nlist(), target, |nprobe| {
            if let Some(&recall) = curve.known.get(&nprobe) {
                return Ok(recall);
            }
            let recall = self.recall(&setting.at(nprobe))?;
            curve.known.insert(nprobe, recall);
            Ok(recall)
        })
    }

    /// Find and measure the least nprobe whose recall is at least `target`; `setting` gives
    /// everything but nprobe, `curve` what is known of it.
    ///
    /// # Errors
    /// The first query that fails.
    pub fn operating_point(
        &self,
        target: f64,
        setting: &Setting,
        curve: &mut RecallCurve,
        repeat: Repeat,
    ) -> Result<OperatingPoint, SearchError> {
        let mut nprobe = self.least_nprobe(target, setting, curve)?.unwrap_or(self.nlist());
        loop {
            let mut row = self.measure(&setting.at(nprobe), repeat)?;
            row.target_recall = Some(target);
            if row.recall >= target {
                return Ok(OperatingPoint::Reached(row));
            }
            if nprobe >= self.nlist() {
                return Ok(OperatingPoint::OutOfReach(row));
            }
            nprobe = (nprobe + 1 + nprobe / 32).min(self.nlist());
        }
    }
}

/// The least of `1..=most` whose recall reaches `target`, if any does; doubling, then bisection.
fn least<E>(
    most: usize,
    target: f64,
    mut recall: impl FnMut(usize) -> Result<f64, E>,
) -> Result<Option<usize>, E> {
    let (mut low, mut high) = (0, 1.min(most));
    while high > low && recall(high)? < target {
        low = high;
        high = (2 * high).min(most);
    }
    if high == low {
        return Ok(None);
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if recall(middle)? < target {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(Some(high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn found(most: usize, first: usize) -> (Option<usize>, usize) {
        let mut calls = 0;
        let found = least::<Infallible>(most, 0.9, |nprobe| {
            calls += 1;
            Ok(if nprobe >= first { 0.9 } else { 0.1 })
        });
        (found.unwrap_or_else(|never| match never {}), calls)
    }

    #[test]
    fn the_least_nprobe_is_found_wherever_it_is() {
        for most in [1, 2, 3, 16, 100, 293] {
            for first in 1..=most {
                assert_eq!(found(most, first).0, Some(first), "{first} of {most}");
            }
            assert_eq!(found(most, most + 1).0, None, "{most}");
        }
    }

    #[test]
    fn rounds_grow_with_the_logarithm_of_the_answer() {
        assert!(found(1_000_000, 700_000).1 <= 41);
    }
}
