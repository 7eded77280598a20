//! Exact neighbours, measured settings and operating points, as the commands `groundtruth`,
//! `bench` and `tune` give them.

use std::path::PathBuf;

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rabitq_ssd::evaluate::{
    BenchRow, RecallCurve, Repeat, Setting, Trial, Truth, TunedPoint, Tuning, ground_truth,
    with_self, without_self,
};
use rabitq_ssd::{Metric, SearchError, SearchOptions};

use crate::arrays::{Queries, Table, to_python};
use crate::build::open_base;
use crate::index::Index;
use crate::watch::{self, Stop};
use crate::{error, options};

/// Rounds of a measurement of `tune`, after one that does not count.
const TUNE_ROUNDS: usize = 3;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(groundtruth, module)?)?;
    module.add_function(wrap_pyfunction!(measure, module)?)?;
    module.add_function(wrap_pyfunction!(tune, module)?)
}

/// Distances and row numbers of the `k` exact neighbours of each query; with `out`, also a file.
#[pyfunction]
#[pyo3(signature = (paths, queries, k, metric, *, rows, threads, out, progress))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python half")]
fn groundtruth<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    queries: &Bound<'py, PyAny>,
    k: usize,
    metric: &Bound<'py, PyAny>,
    rows: Option<u64>,
    threads: Option<&Bound<'py, PyAny>>,
    out: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let metric: Metric = options::name("metric", metric)?;
    let threads = options::threads_or_all(threads)?;
    let base = open_base(&paths, rows)?;
    let queries = Queries::of(queries, base.dim())?.values()?.to_vec();
    let exact = watch::run(py, progress, Stop::Leave, move |progress| {
        ground_truth(&base, &queries, k, metric, threads, progress)
    })?
    .map_err(|e| error::cluster(&e))?;
    let truth = exact.truth;
    if let Some(out) = out {
        py.detach(|| truth.write(&out)).map_err(|e| error::dataset(&e))?;
    }
    let table = Table::whole(truth.k, truth.ids, truth.distances.unwrap_or_default());
    table.into_arrays(py, false)
}

/// Exact neighbours: how many of each query, their ids, their distances if those are known.
type Neighbours<'py> = (usize, PyReadonlyArray1<'py, u64>, Option<PyReadonlyArray1<'py, f32>>);

/// What is measured: queries and their neighbours, in the ids of the index.
struct Asked {
    queries: Vec<f32>,
    truth: Truth,
}

impl Asked {
    fn new<'py>(
        index: &Index,
        queries: &Bound<'py, PyAny>,
        (k, ids, scores): &Neighbours<'py>,
    ) -> PyResult<Self> {
        let info = index.at_open();
        let queries = Queries::of(queries, info.dim)?;
        let scores = scores.as_ref().map(|scores| scores.as_slice().map(<[f32]>::to_vec));
        let truth = Truth::new(*k, info.metric, ids.as_slice()?.to_vec(), scores.transpose()?)
            .map_err(|e| error::value(&e))?;
        if queries.n == 0 || truth.queries() != queries.n {
            return Err(PyValueError::new_err(format!(
                "the ground truth is of {} queries, given are {}",
                truth.queries(),
                queries.n
            )));
        }
        Ok(Self { queries: queries.values()?.to_vec(), truth })
    }

    fn check_k(&self, k: usize) -> PyResult<()> {
        if (1..=self.truth.k()).contains(&k) {
            return Ok(());
        }
        let most = self.truth.k();
        Err(PyValueError::new_err(format!("k {k}: the ground truth holds {most} neighbours")))
    }
}

/// Measures one setting at `nprobe`, or at the least nprobe that reaches each of `recalls`.
#[pyfunction]
#[pyo3(signature = (index, queries, truth, *, k, nprobe, recalls, alpha, epsilon, inflight, pipeline, threads, rounds, warmup))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python half")]
fn measure<'py>(
    py: Python<'py>,
    index: &Index,
    queries: &Bound<'py, PyAny>,
    truth: Neighbours<'py>,
    k: usize,
    nprobe: Option<usize>,
    recalls: Vec<f64>,
    alpha: Option<f32>,
    epsilon: Option<f32>,
    inflight: Option<usize>,
    pipeline: &Bound<'py, PyAny>,
    threads: Option<&Bound<'py, PyAny>>,
    rounds: usize,
    warmup: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let asked = Asked::new(index, queries, &truth)?;
    asked.check_k(k)?;
    let (library, info) = (index.opened()?, index.at_open().clone());
    let d = SearchOptions::default();
    let options = SearchOptions {
        k,
        nprobe: nprobe.unwrap_or(d.nprobe.min(info.nlist).max(1)),
        alpha: alpha.unwrap_or(d.alpha),
        epsilon: epsilon.unwrap_or(d.epsilon),
        inflight,
        pipeline: options::name("pipeline", pipeline)?,
        ..d
    };
    let setting = Setting { options, threads: options::threads_or_all(threads)? };
    let repeat = Repeat { rounds, warmup };
    let rows = watch::run(py, None, Stop::Leave, move |_| {
        let trial = Trial::new(&library, &info, &asked.queries, &asked.truth);
        if recalls.is_empty() {
            return Ok(vec![trial.measure(&setting, repeat)?]);
        }
        let mut curve = RecallCurve::default();
        let at = |&target: &f64| {
            Ok(trial.operating_point(target, &setting, &mut curve, repeat)?.into_row())
        };
        recalls.iter().map(at).collect()
    })?;
    let rows: Vec<BenchRow> = rows.map_err(|e| error::search(py, &e))?;
    to_python(py, &rows)
}

/// Finds the cheapest search for each recall and keeps it in the index. With `with_self`, the first
/// neighbour of each query is the query itself.
#[pyfunction]
#[pyo3(signature = (index, queries, truth, *, with_self, k, recalls, alpha, epsilon, threads, progress))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python half")]
fn tune<'py>(
    py: Python<'py>,
    index: &Index,
    queries: &Bound<'py, PyAny>,
    truth: Neighbours<'py>,
    with_self: bool,
    k: Vec<usize>,
    recalls: Vec<f64>,
    alpha: Vec<f32>,
    epsilon: Vec<f32>,
    threads: Option<&Bound<'py, PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let asked = Asked::new(index, queries, &truth)?;
    for &k in &k {
        asked.check_k(k + usize::from(with_self))?;
    }
    let (library, info, dir) = (index.opened()?, index.at_open().clone(), index.dir().clone());
    let threads = options::threads_or_all(threads)?;
    let pairs: Vec<(f32, f32)> =
        alpha.iter().flat_map(|&a| epsilon.iter().map(move |&e| (a, e))).collect();
    let job = Job { recalls, pairs, threads, with_self };
    let uuid = info.uuid.clone();
    let points = watch::run(py, progress, Stop::Leave, move |progress| {
        let trial = Trial::new(&library, &info, &asked.queries, &asked.truth);
        let mut points = Vec::new();
        let total = (k.len() * job.recalls.len()) as u64;
        let mut done = 0;
        for &k in &k {
            let mut told = || {
                progress.update("tune", done, total);
                done += 1;
            };
            points.extend(job.points(&trial, k, asked.truth.queries(), &mut told)?);
            if progress.cancelled() {
                break;
            }
        }
        Ok(points)
    })?;
    let points: Vec<TunedPoint> = points.map_err(|e: SearchError| error::search(py, &e))?;
    let mut tuning = Tuning::read(&dir, &uuid).map_err(|e| error::file(&e))?;
    points.iter().cloned().for_each(|point| tuning.add(point));
    tuning.write(&dir).map_err(|e| error::file(&e))?;
    to_python(py, &points)
}

/// What a tuning tries.
struct Job {
    recalls: Vec<f64>,
    /// Every alpha with every epsilon.
    pairs: Vec<(f32, f32)>,
    threads: usize,
    with_self: bool,
}

impl Job {
    /// The points of one k, those recalls left out that all lists do not reach.
    fn points(
        &self,
        trial: &Trial<'_>,
        k: usize,
        queries: usize,
        told: &mut dyn FnMut(),
    ) -> Result<Vec<TunedPoint>, SearchError> {
        let asked = k + usize::from(self.with_self);
        let setting = |&(alpha, epsilon): &(f32, f32)| Setting {
            options: SearchOptions { k: asked, alpha, epsilon, ..SearchOptions::default() },
            threads: self.threads,
        };
        let settings: Vec<Setting> = self.pairs.iter().map(setting).collect();
        let mut curves = vec![RecallCurve::default(); settings.len()];
        let repeat = Repeat { rounds: TUNE_ROUNDS, warmup: true };
        let mut points = Vec::new();
        for &target in &self.recalls {
            told();
            let within = if self.with_self { with_self(target, k) } else { target };
            if let Some(row) = trial.tune(within, &settings, &mut curves, repeat)? {
                let recall = if self.with_self { without_self(row.recall, k) } else { row.recall };
                points.push(TunedPoint::of(&row, k, target, recall, queries));
            }
        }
        Ok(points)
    }
}
