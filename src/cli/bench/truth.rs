//! Ground truth that fits the queries and the index, or an error that says what it does not fit.

use std::path::Path;

use rabitq_ssd::IndexInfo;
use rabitq_ssd::dataset::GroundTruth;
use rabitq_ssd::evaluate::Truth;

use crate::cli::console::Console;
use crate::cli::failure::usage;
use crate::cli::ids;

/// The queries of a run: their file and their number.
pub(crate) struct Asked<'a> {
    pub(crate) file: &'a Path,
    pub(crate) n: usize,
}

/// Ground truth of the queries for searches of every k in `ks`, in the ids that the index returns.
pub(crate) fn read(
    console: &Console,
    info: &IndexInfo,
    queries: &Asked<'_>,
    truth_file: &Path,
    ids_file: Option<&Path>,
    ks: &[usize],
) -> anyhow::Result<Truth> {
    let file = truth_file.display();
    let mut truth = GroundTruth::read(truth_file)?;
    if truth.queries != queries.n {
        anyhow::bail!(
            "{file} is ground truth of {} queries, {} holds {}",
            truth.queries,
            queries.file.display(),
            queries.n
        );
    }
    if queries.n == 0 {
        anyhow::bail!("{} holds no queries", queries.file.display());
    }
    if let Some(k) = ks.iter().find(|&&k| k > truth.k) {
        return Err(usage(format!(
            "--k {k} is beyond the ground truth, which holds {} neighbours of each query: \
             run `groundtruth --k {k}`",
            truth.k
        )));
    }
    match ids_file {
        Some(path) => rename_rows(&mut truth, path)?,
        None if info.external_ids => console.warn(format_args!(
            "the index returns external ids: without --ids, {file} must hold those as well"
        )),
        None => check_rows(&truth, info, truth_file)?,
    }
    Truth::new(truth.k, info.metric, truth.ids, truth.distances)
        .map_err(|error| anyhow::anyhow!("{file}: {error}"))
}

/// Row numbers that the base of the index does not have come from another base.
fn check_rows(truth: &GroundTruth, info: &IndexInfo, path: &Path) -> anyhow::Result<()> {
    let rows = info.n + info.skipped_rows;
    match truth.ids.iter().find(|&&row| row >= rows) {
        None => Ok(()),
        Some(row) => anyhow::bail!(
            "{} names row {row}, but the index was built from {rows} rows: it is no ground truth \
             of this base",
            path.display()
        ),
    }
}

/// From row numbers to the external ids that stand for them.
pub(crate) fn rename_rows(truth: &mut GroundTruth, ids_path: &Path) -> anyhow::Result<()> {
    let names = ids::read(ids_path)?;
    for row in &mut truth.ids {
        *row = usize::try_from(*row).ok().and_then(|row| names.get(row).copied()).ok_or_else(
            || {
                anyhow::anyhow!(
                    "{} has no id for row {row} of the ground truth",
                    ids_path.display()
                )
            },
        )?;
    }
    Ok(())
}
