//! The ranges of scalar records, from a sample of the residuals that will be encoded.
//!
//! ```text
//! positions of a sample ─ read the rows ─ rotate, less the centroid ─ one range for each column
//! ```
//! The rows are drawn afresh: the sample of the clustering has few rows when there are few lists.

use codec::{ScalarRange, ScalarRanges};
use dataset::{Base, sample_rows};
use rayon::prelude::*;

use super::assign::Lists;
use super::encode::{read_rows, residual};
use super::train::Trained;
use crate::error::BuildError;
use crate::store::shape::Shape;

/// Rows of the sample. Of a Gaussian, so many reach beyond ±4 deviations.
const SAMPLE_ROWS: usize = 1 << 15;
/// Most values the sample holds (128 MiB of f32).
const SAMPLE_VALUES: usize = 1 << 25;
/// Rows that one thread reads at a time.
const BLOCK: usize = 1 << 10;

/// Fits a range to every dim of the rotated residuals.
pub(crate) fn train(
    base: &Base,
    trained: &Trained,
    lists: &Lists,
    shape: &Shape,
    seed: u64,
) -> Result<ScalarRanges, BuildError> {
    let padded = shape.padded_dim;
    let count = SAMPLE_ROWS.min(SAMPLE_VALUES / padded) as u64;
    let positions = sample_rows(lists.rows.len() as u64, count, seed);
    let mut residuals = vec![0f32; positions.len() * padded];
    residuals.par_chunks_mut(BLOCK * padded).zip(positions.par_chunks(BLOCK)).try_for_each(
        |(out, positions)| -> Result<(), BuildError> {
            let rows: Vec<u64> = positions.iter().map(|&p| lists.rows[p as usize]).collect();
            let mut values = read_rows(base, &rows)?;
            let rows = values.chunks_exact_mut(shape.dim).zip(out.chunks_exact_mut(padded));
            for ((row, out), &position) in rows.zip(positions) {
                let list = lists.offsets.partition_point(|&o| o <= position) - 1;
                let c = &trained.rotated[list * padded..(list + 1) * padded];
                residual(row, shape.metric, trained, c, out);
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
