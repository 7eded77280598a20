//! Ground truth by brute force: the exact neighbours of every query.

use std::error::Error;
use std::sync::Mutex;

use cluster::{ClusterError, RowSource, exact_neighbours};
use dataset::{Base, DatasetError, GroundTruth, RowCheck, check_rows};

use crate::{Metric, Progress};

/// What [`ground_truth`] found.
#[derive(Clone, Debug)]
pub struct Exact {
    /// Row numbers and scores. Its k is smaller than asked for where the base has fewer valid rows.
    pub truth: GroundTruth,
    /// Rows of the base that no index holds (NaN, infinities, overflowing norms): never neighbours.
    pub invalid_rows: u64,
}

/// The `k` nearest rows of every query (whole rows of the base's dim), exactly, ties by row number.
///
/// # Errors
/// When k is 0, a query is not finite, the base cannot be read, or `progress` is cancelled.
pub fn ground_truth(
    base: &Base,
    queries: &[f32],
    k: usize,
    metric: Metric,
    threads: usize,
    progress: &dyn Progress,
) -> Result<Exact, ClusterError> {
    let metric = match metric {
        Metric::L2 => cluster::Metric::L2,
        Metric::Ip => cluster::Metric::Ip,
        Metric::Cosine => cluster::Metric::Cosine,
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.max(1))
        .build()
        .map_err(|error| ClusterError::Thread { source: std::io::Error::other(error) })?;
    let rows = ValidRows { base, check: Mutex::default(), progress };
    let n = base.n();
    let told = |share: f64| progress.update("compare", (share * n as f64) as u64, n);
    told(0.0);
    let found = exact_neighbours(&rows, queries, k, metric, None, &pool, &told)?;
    let truth = GroundTruth {
        queries: queries.len() / base.dim().max(1),
        k: found.k,
        ids: found.ids,
        distances: Some(found.scores),
    };
    let check = rows.check.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(Exact { truth, invalid_rows: check.invalid().len() })
}

/// A base whose invalid rows read as NaN, which makes them nobody's neighbour.
struct ValidRows<'a> {
    base: &'a Base,
    check: Mutex<RowCheck>,
    /// Asked before every read: a failed one is how the comparison is stopped.
    progress: &'a dyn Progress,
}

impl RowSource for ValidRows<'_> {
    fn n(&self) -> u64 {
        self.base.n()
    }

    fn dim(&self) -> usize {
        self.base.dim()
    }

    fn read_f32(&self, start: u64, out: &mut [f32]) -> Result<(), Box<dyn Error + Send + Sync>> {
        if self.progress.cancelled() {
            return Err(Box::new(DatasetError::Interrupted));
        }
        self.base.read_f32(start, out)?;
        let dim = self.base.dim();
        let mut found = RowCheck::default();
        check_rows(out, dim, start, &mut found);
        for row in found.invalid().iter() {
            let at = (row - start) as usize * dim;
            out[at..at + dim].fill(f32::NAN);
        }
        self.check.lock().unwrap_or_else(std::sync::PoisonError::into_inner).merge(&found);
        Ok(())
    }
}
