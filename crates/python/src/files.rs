//! Vector files and index directories as a whole: info, verify, generate, convert, rows of a file.

use std::ops::ControlFlow;
use std::path::PathBuf;

use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rabitq_ssd::dataset::{
    self, DatasetError, Dtype, Format, GroundTruth, Rounding, sample_rows, synth,
};
use rabitq_ssd::{IndexInfo, OpenOptions, Progress};

use crate::arrays::to_python;
use crate::build::open_base;
use crate::watch::{self, Stop};
use crate::{error, options};

/// Seed of the rows that stand in for queries.
const SAMPLE_SEED: u64 = 0x7e57;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(info, module)?)?;
    module.add_function(wrap_pyfunction!(verify, module)?)?;
    module.add_function(wrap_pyfunction!(generate, module)?)?;
    module.add_function(wrap_pyfunction!(convert, module)?)?;
    module.add_function(wrap_pyfunction!(read, module)?)?;
    module.add_function(wrap_pyfunction!(read_truth, module)?)
}

/// What the index in `dir` is; what searches hold in RAM is not read.
#[pyfunction]
fn info(py: Python<'_>, dir: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    let info = py.detach(|| IndexInfo::read(&dir, &OpenOptions::default()));
    to_python(py, &info.map_err(|e| error::open(&e, &dir))?)
}

/// Compares every byte of the index in `dir` with its checksums.
#[pyfunction]
#[pyo3(signature = (dir, progress=None))]
pub(crate) fn verify(
    py: Python<'_>,
    dir: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyAny>> {
    let at = dir.clone();
    let report = watch::run(py, progress, Stop::Leave, move |p| rabitq_ssd::verify(&at, p))?
        .map_err(|e| error::open(&e, &dir))?;
    let dict = to_python(py, &report)?;
    dict.set_item("ok", report.ok())?;
    Ok(dict)
}

/// Writes synthetic vectors shaped like embeddings, and queries of the same distribution.
#[pyfunction]
#[pyo3(signature = (out, n, dim, *, seed, dtype, spectrum, norms, queries, queries_out, threads, progress))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python half")]
fn generate(
    py: Python<'_>,
    out: PathBuf,
    n: u64,
    dim: usize,
    seed: u64,
    dtype: Option<&str>,
    spectrum: &str,
    norms: &str,
    queries: u64,
    queries_out: Option<PathBuf>,
    threads: Option<&Bound<'_, PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let natural = Format::from_path(&out).ok().and_then(Format::dtype);
    let dtype = dtype.map(str::parse).transpose().map_err(|e: DatasetError| error::value(&e))?;
    let spec = synth::Spec {
        n,
        dim,
        seed,
        spectrum: match spectrum {
            "power" => synth::Spectrum::Power,
            "flat" => synth::Spectrum::Flat,
            other => return Err(unknown("spectrum", other, "power, flat")),
        },
        norms: match norms {
            "unit" => synth::Norms::Unit,
            "spread" => synth::Norms::Spread,
            other => return Err(unknown("norms", other, "unit, spread")),
        },
        dtype: dtype.or(natural).unwrap_or(Dtype::F32),
    };
    let threads = options::threads_or_all(threads)?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|e| error::Error::new_err(e.to_string()))?;
    watch::run(py, progress, Stop::Wait, move |progress| {
        let mut told = |done, total| tell(progress, "generate", done, total);
        synth::generate(&spec, queries, &out, queries_out.as_deref(), &pool, &mut told)
    })?
    .map_err(|e| error::dataset(&e))
}

/// Copies the rows of vector files to one file; returns its shape and value type.
#[pyfunction]
#[pyo3(signature = (paths, target, *, dtype, rounding, rows, progress))]
fn convert<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    target: PathBuf,
    dtype: Option<&str>,
    rounding: &str,
    rows: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let dtype = dtype.map(str::parse).transpose().map_err(|e: DatasetError| error::value(&e))?;
    let rounding = match rounding {
        "exact" => Rounding::Exact,
        "nearest" => Rounding::Nearest,
        "clamp" => Rounding::Clamp,
        other => return Err(unknown("rounding", other, "exact, nearest, clamp")),
    };
    let source = open_base(&paths, rows)?;
    let natural = Format::from_path(&target).map_err(|e| error::value(&e))?.dtype();
    let found = dtype.or(natural).unwrap_or(source.raw_dtype());
    let (dict, dim) = (PyDict::new(py), source.dim());
    let n = watch::run(py, progress, Stop::Wait, move |progress| {
        let mut told = |done, total| tell(progress, "convert", done, total);
        dataset::convert(&source, &target, dtype, rounding, &mut told)
    })?
    .map_err(|e| error::dataset(&e))?;
    dict.set_item("n", n)?;
    dict.set_item("dim", dim)?;
    dict.set_item("dtype", found.to_string())?;
    Ok(dict)
}

/// Tells where a stage is, and whether to go on.
fn tell(progress: &dyn Progress, stage: &'static str, done: u64, total: u64) -> ControlFlow<()> {
    progress.update(stage, done, total);
    if progress.cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Rows of vector files as float32: all, the first `rows`, or `sample` of them, always the same.
#[pyfunction]
#[pyo3(signature = (paths, *, rows=None, sample=None))]
fn read<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    rows: Option<u64>,
    sample: Option<u64>,
) -> PyResult<Bound<'py, PyAny>> {
    let base = open_base(&paths, rows)?;
    let dim = base.dim();
    let values = py.detach(|| {
        let picked = sample.map(|count| sample_rows(base.n(), count, SAMPLE_SEED));
        let count = picked.as_ref().map_or(base.n() as usize, Vec::len);
        let mut values = vec![0.0f32; count * dim];
        match &picked {
            Some(picked) => base.gather_f32(picked, &mut values)?,
            None => base.read_f32(0, &mut values)?,
        }
        Ok(values)
    });
    let values: Vec<f32> = values.map_err(|e: DatasetError| error::dataset(&e))?;
    let rows = values.len() / dim;
    Ok(PyArray1::from_vec(py, values).reshape([rows, dim])?.into_any())
}

/// A ground truth file: k, ids and distances, if it holds them; both flat.
#[pyfunction]
fn read_truth(py: Python<'_>, path: PathBuf) -> PyResult<Truth<'_>> {
    let truth = py.detach(|| GroundTruth::read(&path)).map_err(|e| error::dataset(&e))?;
    let distances = truth.distances.map(|distances| PyArray1::from_vec(py, distances));
    Ok((truth.k, PyArray1::from_vec(py, truth.ids), distances))
}

type Truth<'py> = (usize, Bound<'py, PyArray1<u64>>, Option<Bound<'py, PyArray1<f32>>>);

fn unknown(what: &str, found: &str, expected: &str) -> PyErr {
    PyValueError::new_err(format!("{what}: unknown {found:?}, expected one of {expected}"))
}
