//! The lists in the order of the index: those of one group of the coarse quantizer lie together.

use codec::Rotation;
use rayon::prelude::*;

use super::assign::Assignment;
use super::grouping::group;
use super::plan::BuildPlan;
use crate::coarse::Centroids;
use crate::config::CentroidKind;
use crate::error::BuildError;

/// The mean squared distance of a list's rows from its centroid is at least so many times the
/// squared rounding of the centroid, or the list is too tight to be rounded.
const TIGHT: f64 = 100.0;
/// Too many rows are in such lists when they are more than 1 in this many.
const FEW: u64 = 100;

/// Every list: where its rows are, and its centroid.
pub(crate) struct Lists {
    /// Where each list starts among the rows of the index; one more entry for the end.
    pub(crate) offsets: Vec<u64>,
    /// What the index holds of each centroid.
    pub(crate) centroids: Centroids,
    /// Where each list of the assignment went.
    positions: Vec<u32>,
    /// Where each group of the coarse quantizer starts among the lists.
    pub(crate) groups: Vec<u32>,
    /// Rotated centroids of the groups.
    pub(crate) group_centroids: Vec<f32>,
}

impl Lists {
    /// Rotates `centroids`, orders the lists by group where there are groups, and rounds the
    /// centroids if the plan says so. Under [`CentroidKind::Auto`] they are not rounded after all
    /// where too many rows are in tight lists: then `plan` is to change.
    pub(crate) fn new(
        centroids: &[f32],
        counts: &[u64],
        assignment: &Assignment,
        asked: CentroidKind,
        rotation: &Rotation,
        plan: &BuildPlan,
        pool: &rayon::ThreadPool,
    ) -> Result<Self, BuildError> {
        let padded = plan.padded_dim;
        let mut rotated = vec![0f32; counts.len() * padded];
        pool.install(|| {
            rotated
                .par_chunks_exact_mut(padded)
                .zip(centroids.par_chunks_exact(plan.dim))
                .for_each(|(out, c)| rotation.apply(c, out));
        });
        let mut order: Vec<u32> = (0..counts.len() as u32).collect();
        let (mut groups, mut group_centroids) = (Vec::new(), Vec::new());
        if plan.coarse_lists > 0 && !counts.is_empty() {
            let grouping = group(&rotated, padded, plan.coarse_lists, plan.seed, pool)?;
            grouping.permute(&mut rotated, padded);
            (order, groups, group_centroids) =
                (grouping.order, grouping.starts, grouping.centroids);
        }
        let mut positions = vec![0; counts.len()];
        for (position, &list) in (0..).zip(&order) {
            positions[list as usize] = position;
        }
        let offsets = offsets(order.iter().map(|&list| counts[list as usize]));
        let metric = plan.metric.of_codes();
        let mut centroids = None;
        if plan.centroids == CentroidKind::I8 {
            let rounded = Centroids::rounded(&rotated, padded, metric);
            let spread = match asked {
                CentroidKind::Auto => Some(assignment.spread(counts)?),
                CentroidKind::I8 | CentroidKind::F32 => None,
            };
            let tight = spread.map_or(0, |spread| {
                let rounding = rounded.rounding(&rotated).zip(&order);
                let tight = rounding.filter(|(r, list)| r * TIGHT > spread[**list as usize]);
                tight.map(|(_, &list)| counts[list as usize]).sum()
            });
            centroids = (tight <= counts.iter().sum::<u64>() / FEW).then_some(rounded);
        }
        let centroids = centroids.unwrap_or_else(|| Centroids::from_f32(rotated, padded, metric));
        Ok(Self { offsets, centroids, positions, groups, group_centroids })
    }

    /// The position of a list of the assignment.
    pub(crate) fn position(&self, list: u32) -> u32 {
        self.positions[list as usize]
    }
}

/// Where each list starts among the rows of the index, and the end, by the rows of the lists in
/// their order.
fn offsets(counts: impl Iterator<Item = u64>) -> Vec<u64> {
    let ends = counts.scan(0u64, |end, count| {
        *end += count;
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

/// For the checkpoint: the rows of each list, then the centroids.
pub(crate) fn counts_to_bytes(counts: &[u64], centroids: &[f32]) -> Vec<u8> {
    let mut bytes: Vec<u8> = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
    bytes.extend(centroids.iter().flat_map(|v| v.to_le_bytes()));
    bytes
}

/// What [`counts_to_bytes`] gave; `None` when it does not fit the plan.
pub(crate) fn counts_from_bytes(plan: &BuildPlan, bytes: &[u8]) -> Option<(Vec<u64>, Vec<f32>)> {
    let (counts, centroids) = bytes.split_at_checked(plan.nlist * 8)?;
    let counts = counts.as_chunks().0.iter().map(|&b| u64::from_le_bytes(b)).collect();
    let centroids: Vec<f32> =
        centroids.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
    let fits = centroids.len() == plan.nlist * plan.dim;
    (fits && centroids.iter().all(|v| v.is_finite())).then_some((counts, centroids))
}

#[cfg(test)]
mod tests {
    #[test]
    fn lists_go_on_beyond_32_bits() {
        let most = u64::from(u32::MAX);
        let offsets = super::offsets([most, 0, 6, most].into_iter());
        assert_eq!(offsets, [0, most, most, (1 << 32) + 5, (1 << 33) + 4]);
    }
}
