//! Every row to its nearest centroid; then the order of the rows: by list, by distance to the
//! centroid within a list (paper §4.1), by row among equals.

use cluster::{AssignMethod, Assigner};
use dataset::Base;
use rayon::prelude::*;

use super::prepare::prepare;
use super::survey::Survey;
use super::train::Trained;
use crate::config::Metric;
use crate::error::BuildError;
use crate::progress::Progress;

/// The rows of the base in the order of the index.
pub(crate) struct Lists {
    /// Where each list starts in `rows`; one more entry for the end.
    pub(crate) offsets: Vec<u64>,
    /// Row numbers by position.
    pub(crate) rows: Vec<u64>,
}

/// A row and where it goes.
#[derive(Clone, Copy)]
struct Placed {
    list: u32,
    distance: f32,
    row: u64,
}

/// Assigns every listed row.
pub(crate) fn assign(
    base: &Base,
    survey: &Survey,
    trained: &Trained,
    metric: Metric,
    pool: &rayon::ThreadPool,
    progress: &dyn Progress,
) -> Result<Lists, BuildError> {
    let nlist = trained.centroids.len() / base.dim();
    if nlist == 0 {
        return Ok(Lists { offsets: vec![0], rows: Vec::new() });
    }
    let mut placed: Vec<Placed> = Vec::with_capacity(survey.stored() as usize);
    let assigner = Assigner::new(&trained.centroids, base.dim(), AssignMethod::Auto, pool)?;
    let block = super::block_rows(base.dim());
    let starts: Vec<u64> = (0..base.n()).step_by(block as usize).collect();
    for wave in starts.chunks(rayon::current_num_threads() * 4) {
        progress.update("assign", wave[0], base.n());
        let blocks: Vec<Vec<Placed>> = wave
            .par_iter()
            .map(|&start| {
                let rows = block.min(base.n() - start);
                assign_block(base, survey, &assigner, metric, &trained.mean, start, rows)
            })
            .collect::<Result<_, BuildError>>()?;
        blocks.iter().for_each(|b| placed.extend_from_slice(b));
    }
    progress.update("assign", base.n(), base.n());
    placed.par_sort_unstable_by(|a, b| {
        a.list.cmp(&b.list).then(a.distance.total_cmp(&b.distance)).then(a.row.cmp(&b.row))
    });
    let mut offsets = vec![0u64; nlist + 1];
    placed.iter().for_each(|p| offsets[p.list as usize + 1] += 1);
    (0..nlist).for_each(|l| offsets[l + 1] += offsets[l]);
    Ok(Lists { offsets, rows: placed.iter().map(|p| p.row).collect() })
}

fn assign_block(
    base: &Base,
    survey: &Survey,
    assigner: &Assigner,
    metric: Metric,
    mean: &[f32],
    start: u64,
    rows: u64,
) -> Result<Vec<Placed>, BuildError> {
    let dim = base.dim();
    let mut values = vec![0f32; rows as usize * dim];
    base.read_f32(start, &mut values)?;
    let listed: Vec<bool> =
        (start..start + rows).map(|row| survey.all_listed() || survey.listed(row)).collect();
    for (row, listed) in values.chunks_exact_mut(dim).zip(&listed) {
        if *listed {
            prepare(row, metric, mean);
        } else {
            row.fill(0.0);
        }
    }
    let mut list = vec![0u32; rows as usize];
    let mut distance = vec![0f32; rows as usize];
    assigner.assign(&values, &mut list, &mut distance);
    Ok((0..rows as usize)
        .filter(|&i| listed[i])
        .map(|i| Placed { list: list[i], distance: distance[i], row: start + i as u64 })
        .collect())
}
