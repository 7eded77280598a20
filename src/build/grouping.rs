//! Groups of lists for the coarse quantizer: the lists are ordered so that those of a group lie
//! together.

use cluster::{AssignMethod, Assigner, KmeansOptions, RowSlice, kmeans};

use crate::error::BuildError;

/// The lists in the order of their groups.
pub(crate) struct Grouping {
    /// The list, as numbered before, at each place.
    pub(crate) order: Vec<u32>,
    /// Where each group starts among the places, and the end: one more than groups.
    pub(crate) starts: Vec<u32>,
    /// Centroids of the groups, as the lists' ones.
    pub(crate) centroids: Vec<f32>,
}

/// Groups lists by their centroids (rows of `dim` values): k-means over them, lists of a group in
/// the order they had.
pub(crate) fn group(
    lists: &[f32],
    dim: usize,
    groups: usize,
    seed: u64,
    pool: &rayon::ThreadPool,
) -> Result<Grouping, BuildError> {
    let mut options = KmeansOptions::default();
    options.seed = seed;
    let rows = RowSlice::new(lists, dim)?;
    let centroids = kmeans(&rows, groups, &options, pool, &|_| {})?;
    let nlist = lists.len() / dim;
    let (mut of, mut distance) = (vec![0u32; nlist], vec![0f32; nlist]);
    let assigner = Assigner::new(&centroids, dim, AssignMethod::Flat, pool)?;
    assigner.assign(lists, &mut of, &mut distance);
    drop(assigner);
    let mut order: Vec<u32> = (0..nlist as u32).collect();
    order.sort_by_key(|&list| (of[list as usize], list));
    let mut starts = vec![0; groups + 1];
    of.iter().for_each(|&group| starts[group as usize + 1] += 1);
    (0..groups).for_each(|group| starts[group + 1] += starts[group]);
    Ok(Grouping { order, starts, centroids })
}

impl Grouping {
    /// Puts rows of `dim` values, one per list, into the order of the groups, in place.
    pub(crate) fn permute(&self, rows: &mut [f32], dim: usize) {
        let mut placed = vec![false; self.order.len()];
        let mut first = vec![0f32; dim];
        for start in 0..placed.len() {
            if placed[start] {
                continue;
            }
            // One cycle: every place takes from the next, the last one what the first one held.
            first.copy_from_slice(&rows[start * dim..][..dim]);
            let mut place = start;
            loop {
                placed[place] = true;
                let from = self.order[place] as usize;
                if from == start {
                    break;
                }
                rows.copy_within(from * dim..(from + 1) * dim, place * dim);
                place = from;
            }
            rows[place * dim..][..dim].copy_from_slice(&first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Grouping;

    #[test]
    fn rows_go_where_the_order_says() {
        let order = vec![3, 1, 0, 5, 2, 4];
        let rows: Vec<f32> = (0..12).map(|v| v as f32).collect();
        let expected: Vec<f32> =
            order.iter().flat_map(|&list| [2.0 * list as f32, 2.0 * list as f32 + 1.0]).collect();
        let grouping = Grouping { order, starts: vec![0, 6], centroids: Vec::new() };
        let mut permuted = rows;
        grouping.permute(&mut permuted, 2);
        assert_eq!(permuted, expected);
    }
}
