//! `build` and `estimate`: from vector files to an index, and what that takes.

use std::path::PathBuf;

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rabitq_ssd::dataset::{Base, Dtype};
use rabitq_ssd::{
    BaseShape, BuildError, BuildOptions, BuildSeconds, Estimate, discard_unfinished_build,
};
use serde::Serialize;

use crate::arrays::to_python;
use crate::error;
use crate::options;
use crate::watch::{self, Stop};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(build, module)?)?;
    module.add_function(wrap_pyfunction!(estimate, module)?)?;
    module.add_function(wrap_pyfunction!(estimate_shape, module)?)
}

/// The files as one base, or its first rows.
pub(crate) fn open_base(paths: &[PathBuf], rows: Option<u64>) -> PyResult<Base> {
    let base = Base::open(paths).map_err(|e| error::dataset(&e))?;
    let (Some(rows), n) = (rows, base.n()) else { return Ok(base) };
    base.first_rows(rows).map_err(|_| {
        PyValueError::new_err(format!("rows {rows}: the base has {n} rows; give at most that"))
    })
}

/// Builds an index of the rows of vector files in the directory `out`; returns zero rows, rows left
/// out, and seconds. What is stopped leaves nothing unless it is `resumable`.
#[pyfunction]
#[pyo3(signature = (paths, out, options, *, rows=None, ids=None, overwrite=false, resume=false, resumable=true, progress=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python half")]
fn build(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    out: PathBuf,
    options: &Bound<'_, PyDict>,
    rows: Option<u64>,
    ids: Option<PyReadonlyArray1<'_, u64>>,
    overwrite: bool,
    resume: bool,
    resumable: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(u64, u64, f64)> {
    let base = open_base(&paths, rows)?;
    let ids = ids.map(|ids| ids.as_slice().map(<[u64]>::to_vec)).transpose()?;
    let o = BuildOptions { ids, overwrite, resume, ..options::build(options, base.n())? };
    let report = watch::run(py, progress, Stop::Wait, move |progress| {
        let outcome = rabitq_ssd::Index::build(&base, &out, &o, progress);
        if !resumable && matches!(outcome, Err(BuildError::Interrupted { .. })) {
            discard_unfinished_build(&out)?;
        }
        outcome
    })?
    .map_err(|e| error::build(&e))?;
    Ok((report.zero_rows, report.skipped_rows, report.total_seconds))
}

/// What an estimate says, as `rabitq-ssd estimate --json` does.
#[derive(Serialize)]
struct Needs {
    #[serde(flatten)]
    estimate: Estimate,
    seconds: BuildSeconds,
    total_seconds: f64,
    available_disk_bytes: Option<u64>,
}

/// What an index of the rows of vector files would take.
#[pyfunction]
#[pyo3(signature = (paths, dir, options, *, rows=None))]
fn estimate<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    dir: PathBuf,
    options: &Bound<'_, PyDict>,
    rows: Option<u64>,
) -> PyResult<Bound<'py, PyAny>> {
    let base = open_base(&paths, rows)?;
    needs(py, (&base).into(), dir, options)
}

/// What an index of so many rows would take.
#[pyfunction]
fn estimate_shape<'py>(
    py: Python<'py>,
    n: u64,
    dim: usize,
    dtype: &str,
    dir: PathBuf,
    options: &Bound<'_, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype: Dtype = dtype.parse().map_err(|e| error::dataset(&e))?;
    needs(py, BaseShape { n, dim, dtype }, dir, options)
}

fn needs<'py>(
    py: Python<'py>,
    shape: BaseShape,
    dir: PathBuf,
    options: &Bound<'_, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let o = options::build(options, shape.n)?;
    let needs = watch::run(py, None, Stop::Leave, move |_| {
        let estimate = Estimate::of(shape, &o)?;
        let seconds = estimate.seconds(&dir, &o)?;
        let available_disk_bytes = Estimate::available(&dir);
        Ok(Needs { estimate, seconds, total_seconds: seconds.total(), available_disk_bytes })
    })?
    .map_err(|e| error::build(&e))?;
    to_python(py, &needs)
}
