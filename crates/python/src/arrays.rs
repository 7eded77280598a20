//! Queries in and results out, as NumPy arrays.
//!
//! ```text
//! queries   (dim,) or (n, dim); C-contiguous float32 is searched where it lies, the rest is copied
//! results   distances float32, ids int64: (k,) or (n, k), what is missing is infinitely far and -1
//! ```
//! Ids are uint64 only where one of them does not fit in int64.

use numpy::{
    Element, PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use rabitq_ssd::{Metric, SearchResult};
use serde::Serialize;

/// Queries of an index's dim.
pub(crate) struct Queries<'py> {
    values: PyReadonlyArrayDyn<'py, f32>,
    /// Number of queries.
    pub(crate) n: usize,
    /// Whether there is one, given without an axis for more.
    pub(crate) single: bool,
}

impl<'py> Queries<'py> {
    /// Takes the array as it is, or converts whatever NumPy makes an array of numbers of.
    pub(crate) fn of(given: &Bound<'py, PyAny>, dim: usize) -> PyResult<Self> {
        let array = match given.cast::<PyArrayDyn<f32>>() {
            Ok(array) if array.is_c_contiguous() && array.is_aligned() => array.clone(),
            _ => converted(given)?.cast_into::<PyArrayDyn<f32>>()?,
        };
        let (n, found) = match *array.shape() {
            [dim] => (1, dim),
            [n, dim] => (n, dim),
            ref shape => {
                let problem = format!("queries must have 1 or 2 axes, found shape {shape:?}");
                return Err(PyValueError::new_err(problem));
            }
        };
        if found != dim {
            let problem = format!("the queries have {found} dims, the index has {dim}");
            return Err(PyValueError::new_err(problem));
        }
        let single = array.ndim() == 1;
        Ok(Self { values: array.try_readonly()?, n, single })
    }

    pub(crate) fn values(&self) -> PyResult<&[f32]> {
        Ok(self.values.as_slice()?)
    }
}

fn converted<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static CONVERT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    CONVERT.import(given.py(), "rabitq_ssd._arrays", "queries")?.call1((given,))
}

/// Distances and ids of a batch, `k` columns each.
pub(crate) struct Table {
    distances: Vec<f32>,
    ids: Vec<u64>,
    k: usize,
}

impl Table {
    /// Room for `n` rows of `k`.
    pub(crate) fn new(n: usize, k: usize) -> PyResult<Self> {
        let mut table = Self { distances: Vec::new(), ids: Vec::new(), k };
        let reserved = n.checked_mul(k).is_some_and(|all| {
            table.distances.try_reserve_exact(all).is_ok()
                && table.ids.try_reserve_exact(all).is_ok()
        });
        match reserved {
            true => Ok(table),
            false => Err(PyMemoryError::new_err(format!("no memory for {n} x {k} results"))),
        }
    }

    /// Appends the neighbours of the next query.
    pub(crate) fn add(&mut self, result: &SearchResult, metric: Metric) {
        let missing = self.k.saturating_sub(result.ids.len());
        let worst = if metric == Metric::L2 { f32::INFINITY } else { f32::NEG_INFINITY };
        self.ids.extend(&result.ids);
        self.ids.extend(std::iter::repeat_n(u64::MAX, missing));
        self.distances.extend(&result.scores);
        self.distances.extend(std::iter::repeat_n(worst, missing));
    }

    /// Everything at once, as ground truth comes.
    pub(crate) fn whole(k: usize, ids: Vec<u64>, distances: Vec<f32>) -> Self {
        Self { distances, ids, k }
    }

    /// As arrays of one axis or two.
    pub(crate) fn into_arrays<'py>(
        self,
        py: Python<'py>,
        single: bool,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        // What is missing has no distance to be found by; an id of u64::MAX may also be real.
        let large = |(&id, d): (&u64, &f32)| id > i64::MAX as u64 && d.is_finite();
        let wide = self.ids.iter().zip(&self.distances).any(large);
        let ids = if wide {
            shaped(py, self.ids, self.k, single)?
        } else {
            // u64::MAX becomes -1.
            let ids: Vec<i64> = self.ids.into_iter().map(u64::cast_signed).collect();
            shaped(py, ids, self.k, single)?
        };
        Ok((shaped(py, self.distances, self.k, single)?, ids))
    }
}

fn shaped<T: Element>(
    py: Python<'_>,
    values: Vec<T>,
    k: usize,
    single: bool,
) -> PyResult<Bound<'_, PyAny>> {
    let rows = values.len() / k.max(1);
    let array = PyArray1::from_vec(py, values);
    if single { Ok(array.into_any()) } else { Ok(array.reshape([rows, k])?.into_any()) }
}

/// The named tuple of distances and ids, and of `stats` if there are any.
pub(crate) fn named<'py>(
    py: Python<'py>,
    (distances, ids): (Bound<'py, PyAny>, Bound<'py, PyAny>),
    stats: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    static PLAIN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static COUNTED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    match stats {
        None => PLAIN.import(py, "rabitq_ssd._arrays", "SearchResult")?.call1((distances, ids)),
        Some(stats) => COUNTED
            .import(py, "rabitq_ssd._arrays", "SearchResultStats")?
            .call1((distances, ids, stats)),
    }
}

/// Anything that has a JSON form, as dicts and lists.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    value: &impl Serialize,
) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let text = serde_json::to_string(value).map_err(|e| PyValueError::new_err(e.to_string()))?;
    LOADS.import(py, "json", "loads")?.call1((text,))
}
