//! The ranges of scalar records, from a sample of the residuals that will be encoded.
//!
//! ```text
//! rows of a sample ─ read them ─ rotate, less the centroid ─ one range for each column
//! ```
//! The rows are drawn afresh: the sample of the clustering has few rows when there are few lists.

use codec::{ScalarRange, ScalarRanges};
use dataset::{Base, sample_rows};
use rayon::prelude::*;

use super::assign::{Assignment, Place};
use super::encode::residual;
use super::lists::Lists;
use super::train::Trained;
use crate::error::BuildError;
use crate::store::shape::Shape;

/// Rows of the sample. Of a Gaussian, so many reach beyond ±4 deviations.
const SAMPLE_ROWS: usize = 1 << 15;
/// Most values the sample holds (64 MiB of f32).
const SAMPLE_VALUES: usize = 1 << 24;
/// Rows that one thread reads at a time.
const BLOCK: usize = 1 << 10;
/// The span of the file that a thread reads.
const READING: u64 = 1 << 20;

/// Bytes that [`train`] takes: the sample and what the threads read it with.
pub(crate) fn bytes(dim: usize, padded: usize, n: u64, threads: u64) -> u64 {
    let rows = n.min(SAMPLE_ROWS.min(SAMPLE_VALUES / padded) as u64);
    let block = BLOCK as u64 * dim as u64 * 4 + READING + 4 * rows;
    rows * (padded as u64 * 4 + 64) + threads * block
}

/// Fits a range to every dim of the rotated residuals.
pub(crate) fn train(
    base: &Base,
    trained: &Trained,
    lists: &Lists,
    assignment: &Assignment,
    shape: &Shape,
    seed: u64,
) -> Result<ScalarRanges, BuildError> {
    let padded = shape.padded_dim;
    let rows = sample(base.n(), assignment, SAMPLE_ROWS.min(SAMPLE_VALUES / padded), seed)?;
    let mut residuals = vec![0f32; rows.len() * padded];
    residuals.par_chunks_mut(BLOCK * padded).zip(rows.par_chunks(BLOCK)).try_for_each(
        |(out, rows)| -> Result<(), BuildError> {
            let numbers: Vec<u64> = rows.iter().map(|&(row, _)| row).collect();
            let mut values = vec![0f32; rows.len() * shape.dim];
            base.gather_f32(&numbers, &mut values)?;
            let mut c = vec![0f32; padded];
            let values = values.chunks_exact_mut(shape.dim).zip(out.chunks_exact_mut(padded));
            for ((value, out), (_, place)) in values.zip(rows) {
                lists.centroids.read(lists.position(place.list), &mut c);
                residual(value, shape.metric, trained, &c, out);
            }
            Ok(())
        },
    )?;
    let bits = shape.scalar().bits;
    let ranges: Vec<ScalarRange> = (0..padded)
        .into_par_iter()
        .map_with(Vec::new(), |column: &mut Vec<f32>, dim| {
            column.clear();
            column.extend(residuals.iter().skip(dim).step_by(padded));
            ScalarRange::fit(bits, column)
        })
        .collect();
    Ok(ScalarRanges::new(&ranges))
}

/// Listed rows, drawn uniformly, ascending. Where most rows are in no list, the sample is of all
/// that are.
fn sample(
    n: u64,
    assignment: &Assignment,
    count: usize,
    seed: u64,
) -> Result<Vec<(u64, Place)>, BuildError> {
    let mut rows = Vec::with_capacity(count);
    for row in sample_rows(n, count as u64, seed) {
        let place = assignment.place(row)?;
        rows.extend(place.is_listed().then_some((row, place)));
    }
    if rows.len() >= count / 2 {
        return Ok(rows);
    }
    rows.clear();
    assignment.each(|start, places| {
        let listed = (start..).zip(super::assign::entries(places)).filter(|(_, p)| p.is_listed());
        rows.extend(listed.take(count.saturating_sub(rows.len())));
        Ok(())
    })?;
    Ok(rows)
}
