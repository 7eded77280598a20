//! Lists without rows get rows of their own.
//!
//! ```text
//! for each empty list   donor = list with the largest summed error (halved for each row taken)
//!                       row   = the farthest row of the donor that is not taken
//! ```
//!
//! The errors and sizes of the lists tell which donors give how many rows; only then are the rows
//! of the donors looked for, and those taken read.

use super::ClusterError;
use super::lloyd::Assignment;
use super::waves::gather;
use crate::Rows;

/// Rows read at a time.
const GATHERED: usize = 64;

/// An empty list that gets the row of rank `rank` of a donor, the farthest being 0.
struct Gift {
    list: u32,
    donor: u32,
    rank: u32,
}

/// Moves the centroid of every empty list onto a far row of a list with a large error. Where all
/// errors are 0 (no more distinct rows than lists) the centroid stays.
pub(super) fn refill_empty(
    rows: &dyn Rows,
    assignment: &Assignment,
    counts: &[u32],
    centroids: &mut [f32],
) -> Result<(), ClusterError> {
    if counts.iter().all(|&n| n > 0) {
        return Ok(());
    }
    let gifts = share_rows(assignment, counts);
    let mut moves = find_rows(assignment, counts, &gifts);
    moves.sort_unstable();
    let dim = rows.dim();
    let mut values = vec![0f32; dim * GATHERED.min(moves.len())];
    for moves in moves.chunks(GATHERED) {
        let values = &mut values[..moves.len() * dim];
        let chosen: Vec<u32> = moves.iter().map(|&(row, _)| row).collect();
        gather(rows, &chosen, values)?;
        for (row, &(_, list)) in values.chunks_exact(dim).zip(moves) {
            centroids[list as usize * dim..][..dim].copy_from_slice(row);
        }
    }
    Ok(())
}

/// Which list gives to which empty one.
fn share_rows(assignment: &Assignment, counts: &[u32]) -> Vec<Gift> {
    let mut error = vec![0f64; counts.len()];
    for (&list, &dist2) in assignment.lists.iter().zip(&assignment.dist2) {
        error[list as usize] += f64::from(dist2);
    }
    let mut taken = vec![0u32; counts.len()];
    let mut gifts = Vec::new();
    for list in (0..counts.len()).filter(|&list| counts[list] == 0) {
        let donors = error.iter().copied().enumerate();
        let Some((donor, _)) = donors
            .filter(|(_, e)| e.is_finite() && *e > 0.0)
            .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
        else {
            break;
        };
        gifts.push(Gift { list: list as u32, donor: donor as u32, rank: taken[donor] });
        taken[donor] += 1;
        error[donor] = if taken[donor] < counts[donor] { error[donor] / 2.0 } else { 0.0 };
    }
    gifts
}

/// The row of every gift, as (row, list).
fn find_rows(assignment: &Assignment, counts: &[u32], gifts: &[Gift]) -> Vec<(u32, u32)> {
    let mut gives = vec![false; counts.len()];
    gifts.iter().for_each(|gift| gives[gift.donor as usize] = true);
    let list_of = |row: u32| assignment.lists[row as usize];
    let dist2 = |row: u32| assignment.dist2[row as usize];
    let total: usize = (0..counts.len()).filter(|&l| gives[l]).map(|l| counts[l] as usize).sum();
    let mut far: Vec<u32> = Vec::with_capacity(total);
    far.extend((0..assignment.lists.len() as u32).filter(|&row| gives[list_of(row) as usize]));
    far.sort_unstable_by(|&a, &b| {
        list_of(a).cmp(&list_of(b)).then(dist2(b).total_cmp(&dist2(a))).then(a.cmp(&b))
    });
    let first_of = |donor: u32| far.partition_point(|&row| list_of(row) < donor);
    gifts.iter().map(|g| (far[first_of(g.donor) + g.rank as usize], g.list)).collect()
}
