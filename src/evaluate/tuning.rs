//! Operating points of an index: for a recall, the cheapest search that reaches it.
//!
//! ```text
//! for each alpha and epsilon    a curve of recall against nprobe (operating_point.rs)
//! for each target recall        the least nprobe on each curve, measured; the fastest is kept
//! tuning.json                   beside the index, outside its identity; replaced point by point
//! ```
//! Recall is measured against exact neighbours of queries that are not in the index, or of rows of
//! it that are left out of their own neighbours ([`with_self`]).

use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{BenchRow, OperatingPoint, RecallCurve, Repeat, Setting, Trial};
use crate::store::{TUNING, regular};
use crate::{SearchError, SearchOptions};

/// The search that reaches a recall with the least time, of those tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TunedPoint {
    /// Neighbours wanted.
    pub k: usize,
    /// The recall asked for.
    pub target_recall: f64,
    /// The recall measured.
    pub recall: f64,
    /// Lists to visit.
    pub nprobe: usize,
    /// See [`SearchOptions::alpha`].
    pub alpha: f32,
    /// See [`SearchOptions::epsilon`].
    pub epsilon: f32,
    /// Queries it was measured with.
    pub queries: usize,
    /// Threads it was measured on.
    pub threads: usize,
    /// Queries a second.
    pub qps: f64,
    /// Mean latency in milliseconds.
    pub mean_ms: f64,
    /// Pages read for a query.
    pub pages_per_query: f64,
}

/// The operating points of an index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// The index they were measured on.
    uuid: String,
    points: Vec<TunedPoint>,
}

impl Tuning {
    /// None yet, of the index with this uuid.
    #[must_use]
    pub fn new(uuid: &str) -> Self {
        Self { uuid: uuid.into(), points: Vec::new() }
    }

    /// What is stored beside the index in `dir`; none where there is nothing, or it is of another
    /// index.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn read(dir: &Path, uuid: &str) -> io::Result<Self> {
        let path = dir.join(TUNING);
        let text = match regular::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::new(uuid)),
            Err(error) => return Err(error),
        };
        let damaged = |problem: &dyn std::fmt::Display| {
            let problem = format!("{}: {problem}; run `tune` again", path.display());
            io::Error::new(io::ErrorKind::InvalidData, problem)
        };
        let found: Self = serde_json::from_slice(&text).map_err(|error| damaged(&error))?;
        // A number too large for its type would be written back as null.
        if !found.points.iter().all(TunedPoint::is_finite) {
            return Err(damaged(&"a value is infinite"));
        }
        Ok(if found.uuid == uuid { found } else { Self::new(uuid) })
    }

    /// Stores the points beside the index in `dir`, in place of what was there.
    ///
    /// # Errors
    /// When the file cannot be written; what was there stays.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        // With the usual mode, as the other files of the index: others may read them too.
        let mut file = tempfile::Builder::new().prefix(".tuning-").make_in(dir, |path| {
            fs_err::OpenOptions::new().write(true).create_new(true).open(path)
        })?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.as_file().sync_all()?;
        file.persist(dir.join(TUNING)).map_err(|error| error.error)?;
        Ok(())
    }

    /// The points, by k and target.
    #[must_use]
    pub fn points(&self) -> &[TunedPoint] {
        &self.points
    }

    /// Takes a point, in place of the one for the same k and target.
    pub fn add(&mut self, point: TunedPoint) {
        self.points.retain(|p| (p.k, p.target_recall) != (point.k, point.target_recall));
        self.points.push(point);
        self.points.sort_by(|a, b| a.k.cmp(&b.k).then(a.target_recall.total_cmp(&b.target_recall)));
    }

    /// The point for `k` neighbours at a recall of at least `recall`: the least such target of that
    /// k, or else of the least larger k, whose lists hold more than enough.
    #[must_use]
    pub fn point(&self, k: usize, recall: f64) -> Option<&TunedPoint> {
        self.points.iter().find(|p| p.k >= k && p.target_recall >= recall && p.recall >= recall)
    }
}

impl Trial<'_> {
    /// The fastest of the `searches` at the least nprobe with which each reaches `target`; `None`
    /// when none does. `curves` holds what is known of each, one curve for each search.
    ///
    /// # Errors
    /// The first query that fails.
    pub fn tune(
        &self,
        target: f64,
        searches: &[Setting],
        curves: &mut [RecallCurve],
        repeat: Repeat,
    ) -> Result<Option<BenchRow>, SearchError> {
        let mut best: Option<BenchRow> = None;
        for (setting, curve) in searches.iter().zip(curves) {
            let point = self.operating_point(target, setting, curve, repeat)?;
            let OperatingPoint::Reached(row) = point else { continue };
            if best.as_ref().is_none_or(|best| row.qps > best.qps) {
                best = Some(row);
            }
        }
        Ok(best)
    }
}

impl TunedPoint {
    /// The point that a row is, for `k` neighbours at `target`.
    #[must_use]
    pub fn of(row: &BenchRow, k: usize, target: f64, recall: f64, queries: usize) -> Self {
        Self {
            k,
            target_recall: target,
            recall,
            nprobe: row.nprobe,
            alpha: row.alpha,
            epsilon: row.epsilon,
            queries,
            threads: row.threads,
            qps: row.qps,
            mean_ms: row.mean_ms,
            pages_per_query: row.pages_per_query,
        }
    }

    fn is_finite(&self) -> bool {
        let measured =
            [self.target_recall, self.recall, self.qps, self.mean_ms, self.pages_per_query];
        measured.iter().all(|v| v.is_finite()) && (self.alpha + self.epsilon).is_finite()
    }

    /// Sets what the point fixes of a search.
    pub fn apply(&self, options: &mut SearchOptions) {
        (options.nprobe, options.alpha, options.epsilon) = (self.nprobe, self.alpha, self.epsilon);
    }
}

/// Recall among k + 1 neighbours, the first of which is the query itself and always found, that
/// means a recall of `recall` among the k others; and back by [`without_self`].
#[must_use]
pub fn with_self(recall: f64, k: usize) -> f64 {
    (recall * k as f64 + 1.0) / (k as f64 + 1.0)
}

/// See [`with_self`].
#[must_use]
pub fn without_self(recall: f64, k: usize) -> f64 {
    (recall * (k as f64 + 1.0) - 1.0) / k as f64
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn point(k: usize, target: f64, nprobe: usize) -> TunedPoint {
        TunedPoint {
            k,
            target_recall: target,
            recall: target + 0.001,
            nprobe,
            alpha: 0.4,
            epsilon: 1.9,
            queries: 100,
            threads: 2,
            qps: 1000.0,
            mean_ms: 1.0,
            pages_per_query: 30.0,
        }
    }

    #[test]
    fn the_least_target_that_is_enough_is_taken_and_a_larger_k_stands_in() {
        let mut tuning = Tuning::new("u");
        for (k, target, nprobe) in [(100, 0.95, 90), (10, 0.99, 200), (10, 0.9, 20), (10, 0.95, 1)]
        {
            tuning.add(point(k, target, nprobe));
        }
        tuning.add(point(10, 0.95, 50));
        let nprobe = |k, recall| tuning.point(k, recall).map(|p| p.nprobe);
        assert_eq!(nprobe(10, 0.9), Some(20));
        assert_eq!(nprobe(10, 0.92), Some(50), "added again, it was replaced");
        assert_eq!(nprobe(1, 0.97), Some(200));
        assert_eq!(nprobe(50, 0.9), Some(90));
        assert_eq!(nprobe(10, 0.999), None);
        assert_eq!(nprobe(101, 0.9), None);
    }

    #[test]
    fn points_come_back_unless_they_are_of_another_index() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Tuning::read(dir.path(), "u").unwrap(), Tuning::new("u"));
        let mut tuning = Tuning::new("u");
        tuning.add(point(10, 0.9, 20));
        tuning.write(dir.path()).unwrap();
        assert_eq!(Tuning::read(dir.path(), "u").unwrap(), tuning);
        assert_eq!(Tuning::read(dir.path(), "v").unwrap(), Tuning::new("v"));
        std::fs::write(dir.path().join("tuning.json"), "{").unwrap();
        let refused = || Tuning::read(dir.path(), "u").unwrap_err().to_string();
        let error = refused();
        assert!(error.contains("tuning.json") && error.contains("tune"), "{error}");
        let text = serde_json::to_string(&tuning).unwrap().replace("0.4", "1e300");
        std::fs::write(dir.path().join("tuning.json"), text).unwrap();
        assert!(refused().contains("infinite"), "{}", refused());
    }

    #[test]
    fn a_pipe_in_place_of_the_points_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let made =
            std::process::Command::new("mkfifo").arg(dir.path().join("tuning.json")).status();
        assert!(made.unwrap().success());
        let error = Tuning::read(dir.path(), "u").unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }

    #[test]
    fn recall_with_and_without_the_query_itself_are_one_another_s_inverse() {
        // Nine of ten others, and itself: ten of eleven.
        assert!((with_self(0.9, 10) - 10.0 / 11.0).abs() < 1e-12);
        assert!((without_self(with_self(0.37, 7), 7) - 0.37).abs() < 1e-12);
    }
}
