//! `Index`: an index on disk, open for searching.
//!
//! The library keeps idle readers and scratch between searches; what a call adds is taking the
//! arguments, and two arrays. Batches are watched for Ctrl-C; one query is answered where it stands.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rabitq_ssd::evaluate::Tuning;
use rabitq_ssd::{
    Cancel, Index as Library, IndexInfo, Metric, OpenOptions, SearchError, SearchOptions,
    SearchResult, SearchStats, available_threads,
};

use crate::arrays::{Queries, Table, named, to_python};
use crate::{error, files, options, watch};

/// Queries whose results are held twice, as the library gives them and as rows of the arrays.
const STRETCH: usize = 10_000;

/// An index on disk, open for searching.
///
/// Made by `rabitq_ssd.open` and `rabitq_ssd.build`. Any number of threads may search it at once;
/// it is pickled by path, and a forked process opens it anew. As a context manager it closes.
#[pyclass(frozen, module = "rabitq_ssd", name = "Index", weakref)]
pub(crate) struct Index {
    dir: PathBuf,
    /// As given to `open`, for pickling.
    how: (String, String, Option<f64>),
    options: OpenOptions,
    open: Mutex<Option<Open>>,
    tuning: Mutex<Option<Tuning>>,
    info: IndexInfo,
}

/// An index and the process that opened it: its readers work in no other.
struct Open {
    index: Arc<Library>,
    process: u32,
}

impl Index {
    /// The index, if it is not closed.
    pub(crate) fn opened(&self) -> PyResult<Arc<Library>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(found) = open.as_mut() else {
            return Err(PyValueError::new_err("the index is closed"));
        };
        if found.process != std::process::id() {
            let index =
                Library::open(&self.dir, &self.options).map_err(|e| error::open(&e, &self.dir))?;
            let of_parent = std::mem::replace(&mut found.index, Arc::new(index));
            // Its readers share rings with the parent process: they are not to be torn down here.
            std::mem::forget(of_parent);
            found.process = std::process::id();
        }
        Ok(Arc::clone(&found.index))
    }

    pub(crate) fn dir(&self) -> &PathBuf {
        &self.dir
    }

    /// What it was when it was opened.
    pub(crate) fn at_open(&self) -> &IndexInfo {
        &self.info
    }

    /// Sets what was found for a recall; looks into the file only when it does not know.
    fn tuned(&self, k: usize, recall: f64, o: &mut SearchOptions) -> PyResult<()> {
        if !(recall > 0.0 && recall <= 1.0) {
            return Err(PyValueError::new_err(format!("recall {recall} is not in (0, 1]")));
        }
        let mut known = self.tuning.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|tuning| tuning.point(k, recall).is_none()) {
            let read = Tuning::read(&self.dir, &self.info.uuid).map_err(|e| error::file(&e))?;
            *known = Some(read);
        }
        let tuning = known.as_ref();
        if let Some(point) = tuning.and_then(|tuning| tuning.point(k, recall)) {
            point.apply(o);
            return Ok(());
        }
        let points = tuning.map_or(&[][..], Tuning::points);
        let points: Vec<String> =
            points.iter().map(|p| format!("{} at k {}", p.target_recall, p.k)).collect();
        let points = if points.is_empty() { "none".into() } else { points.join(", ") };
        Err(PyValueError::new_err(format!(
            "recall {recall} at k {k}: the index knows {points}; call rabitq_ssd.tune, or give nprobe"
        )))
    }
}

/// Opens the index in `dir`.
#[pyfunction]
#[pyo3(signature = (dir, io_backend, direct, io_timeout))]
fn open_index(
    py: Python<'_>,
    dir: PathBuf,
    io_backend: &Bound<'_, PyAny>,
    direct: &Bound<'_, PyAny>,
    io_timeout: Option<f64>,
) -> PyResult<Index> {
    let o = options::open(io_backend, direct, io_timeout)?;
    let index = py.detach(|| Library::open(&dir, &o)).map_err(|e| error::open(&e, &dir))?;
    Ok(Index {
        dir,
        how: (io_backend.extract()?, direct.extract()?, io_timeout),
        options: o,
        info: index.info(),
        open: Mutex::new(Some(Open { index: Arc::new(index), process: std::process::id() })),
        tuning: Mutex::default(),
    })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Index>()?;
    module.add_function(wrap_pyfunction!(open_index, module)?)
}

/// The search arguments as given.
struct Given<'a, 'py> {
    k: Option<&'a Bound<'py, PyAny>>,
    nprobe: Option<&'a Bound<'py, PyAny>>,
    recall: Option<f64>,
    alpha: Option<f32>,
    epsilon: Option<f32>,
    inflight: Option<&'a Bound<'py, PyAny>>,
    pipeline: Option<&'a Bound<'py, PyAny>>,
    timeout: Option<f64>,
    deterministic: bool,
}

impl Given<'_, '_> {
    fn options(&self, index: &Index) -> PyResult<SearchOptions> {
        let mut o = SearchOptions { deterministic: self.deterministic, ..SearchOptions::default() };
        if let Some(k) = self.k {
            o.k = options::count("k", k)?;
        }
        match (self.nprobe, self.recall) {
            (Some(_), Some(_)) => {
                return Err(PyValueError::new_err("give nprobe or recall, not both"));
            }
            (Some(nprobe), None) => o.nprobe = options::count("nprobe", nprobe)?,
            (None, Some(recall)) => index.tuned(o.k, recall, &mut o)?,
            (None, None) => o.nprobe = o.nprobe.min(index.info.nlist).max(1),
        }
        match self.alpha {
            Some(alpha) if self.deterministic && alpha != 1.0 => {
                return Err(PyValueError::new_err(format!(
                    "alpha {alpha} contradicts deterministic, which needs alpha 1"
                )));
            }
            Some(alpha) => o.alpha = alpha,
            None if self.deterministic => o.alpha = 1.0,
            None => {}
        }
        o.epsilon = self.epsilon.unwrap_or(o.epsilon);
        o.inflight = self.inflight.map(|given| options::count("inflight", given)).transpose()?;
        if let Some(pipeline) = self.pipeline {
            o.pipeline = options::name("pipeline", pipeline)?;
        }
        o.timeout = self.timeout.map(|given| options::seconds("timeout", given)).transpose()?;
        Ok(o)
    }
}

#[pymethods]
impl Index {
    #[pyo3(
        signature = (queries, k=None, nprobe=None, recall=None, threads=None, alpha=None,
                     epsilon=None, inflight=None, pipeline=None, timeout=None,
                     deterministic=false, return_stats=false),
        text_signature = "($self, queries, k=10, nprobe=None, recall=None, threads=None, \
                          alpha=None, epsilon=None, inflight=None, pipeline=None, timeout=None, \
                          deterministic=False, return_stats=False)"
    )]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    /// Find the nearest rows of each query.
    ///
    /// Parameters
    /// ----------
    /// queries : array of shape (dim,) or (n, dim)
    ///     C-contiguous float32 is searched without a copy; other numbers are converted.
    /// k : int
    ///     Neighbours of each query.
    /// nprobe : int, optional
    ///     Lists to visit, by default 128; more find more and take longer. More than `nlist` is all.
    /// recall : float, optional
    ///     Instead of `nprobe`: the cheapest search that reached this recall in `rabitq_ssd.tune`.
    /// threads : int, optional
    ///     Threads the queries are spread over; by default 1 for one query, all cores for more.
    /// alpha : float, optional
    ///     Share of the results, in (0, 1], that a page must beat to be read after the scan; 0.4.
    /// epsilon : float, optional
    ///     Width of the bounds in standard deviations; 1.9.
    /// inflight : int, optional
    ///     Reads in flight for each query; 16 up to 16 threads, 8 above.
    /// pipeline : {"naive", "coalesced", "overlapped", "scheduled", "full", "fifo"}, optional
    ///     How reads are issued; "full".
    /// timeout : float, optional
    ///     Seconds that the answer to each query may take; by default as long as it takes.
    /// deterministic : bool
    ///     The same results on every run whatever the timing of reads; implies alpha 1.
    /// return_stats : bool
    ///     Also return counters, summed over the queries.
    ///
    /// Returns
    /// -------
    /// (distances, ids), and stats if asked for
    ///     float32 and int64 arrays of shape (n, k), or (k,) for one query of shape (dim,), nearest
    ///     first: squared distances ascending for l2, inner products or cosines descending. Missing
    ///     results have id -1 and distance inf (-inf for ip and cosine). Ids are uint64 if one does
    ///     not fit in int64.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the dims differ, a query holds NaN or infinities (its row is named), or an option is
    ///     out of range.
    /// TypeError
    ///     If the queries are not numbers.
    /// SearchTimeoutError
    ///     If a query takes longer than `timeout`; also a SearchError and a TimeoutError.
    /// SearchError
    ///     If the disk fails or a page is damaged; the index stays usable.
    ///
    /// Examples
    /// --------
    /// >>> distances, ids = index.search(queries, k=10, nprobe=64)  # doctest: +SKIP
    fn search<'py>(
        &self,
        py: Python<'py>,
        queries: &Bound<'py, PyAny>,
        k: Option<&Bound<'py, PyAny>>,
        nprobe: Option<&Bound<'py, PyAny>>,
        recall: Option<f64>,
        threads: Option<&Bound<'py, PyAny>>,
        alpha: Option<f32>,
        epsilon: Option<f32>,
        inflight: Option<&Bound<'py, PyAny>>,
        pipeline: Option<&Bound<'py, PyAny>>,
        timeout: Option<f64>,
        deterministic: bool,
        return_stats: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given =
            Given { k, nprobe, recall, alpha, epsilon, inflight, pipeline, timeout, deterministic };
        let o = given.options(self)?;
        let index = self.opened()?;
        let queries = Queries::of(queries, self.info.dim)?;
        let threads = match threads {
            Some(threads) => options::threads("threads", threads)?,
            None if queries.n <= 1 => 1,
            None => all_threads(),
        };
        let mut answers = Answers {
            table: Table::new(queries.n, o.k)?,
            sums: SearchStats::default(),
            metric: self.info.metric,
        };
        let values = queries.values()?;
        if queries.n == 1 {
            py.detach(|| answers.one(&index, values, &o))
        } else {
            let cancel = Cancel::default();
            let o = SearchOptions { cancel: Some(cancel.clone()), ..o };
            watch::search(py, &cancel, || answers.batch(&index, values, &o, threads))?
        }
        .map_err(|e| error::search(py, &e))?;
        let Answers { table, sums, .. } = answers;
        let stats = if return_stats { Some(to_python(py, &sums)?) } else { None };
        named(py, table.into_arrays(py, queries.single)?, stats)
    }

    /// Close the index. Searches that run come to their end; new ones raise ValueError.
    fn close(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Describe the index: parameters, sizes and how it is read, as `rabitq-ssd info --json` does.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.opened()?.info())
    }

    /// Compare every byte with its checksum.
    ///
    /// Returns a dict: `ok`, `problem` and `files`, each with `name`, `bytes`, `ok`, `problem` and
    /// `bad_pages`. `progress(stage, done, total)` is called now and then; what it raises stops it.
    #[pyo3(signature = (progress=None))]
    fn verify<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        files::verify(py, self.dir.clone(), progress)
    }

    /// Whether `close` was called.
    #[getter]
    fn closed(&self) -> bool {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Directory of the index.
    #[getter]
    fn path(&self) -> &PathBuf {
        &self.dir
    }

    /// Values in a row.
    #[getter]
    fn dim(&self) -> usize {
        self.info.dim
    }

    /// Rows.
    #[getter]
    fn n(&self) -> u64 {
        self.info.n
    }

    /// Rows, as other libraries call it.
    #[getter]
    fn ntotal(&self) -> u64 {
        self.info.n
    }

    /// Inverted lists.
    #[getter]
    fn nlist(&self) -> usize {
        self.info.nlist
    }

    /// How vectors are compared: "l2", "ip" or "cosine".
    #[getter]
    fn metric(&self) -> String {
        self.info.metric.to_string()
    }

    /// What records on disk hold: "split", "f32", "u8", "sq8" or "sq4".
    #[getter]
    fn record(&self) -> String {
        self.info.record.to_string()
    }

    /// Sign bits of each row in RAM.
    #[getter]
    fn prefix_dims(&self) -> usize {
        self.info.prefix_dims
    }

    /// Bits for each dim of "split" records.
    #[getter]
    fn bits(&self) -> u32 {
        self.info.bits
    }

    /// Bytes in RAM, scratch of searching threads apart.
    #[getter]
    fn resident_bytes(&self) -> u64 {
        self.info.resident_bytes
    }

    fn __len__(&self) -> usize {
        self.info.n as usize
    }

    fn __repr__(&self) -> String {
        let i = &self.info;
        let closed = if self.closed() { ", closed" } else { "" };
        format!(
            "<rabitq_ssd.Index {:?}: {} x {}, {}, {} lists, {} records{closed}>",
            self.dir.display().to_string(),
            i.n,
            i.dim,
            i.metric,
            i.nlist,
            i.record
        )
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyTuple>) {
        self.close();
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (io_backend, direct, io_timeout) = self.how.clone();
        let open = py.import("rabitq_ssd._core")?.getattr("open_index")?;
        let dir = self.dir.clone();
        Ok((open, (dir, io_backend, direct, io_timeout).into_pyobject(py)?.into_any()))
    }
}

/// What the queries of a call have been answered so far.
struct Answers {
    table: Table,
    sums: SearchStats,
    metric: Metric,
}

impl Answers {
    fn one(
        &mut self,
        index: &Library,
        query: &[f32],
        o: &SearchOptions,
    ) -> Result<(), SearchError> {
        self.add(&index.search(query, o)?);
        Ok(())
    }

    fn batch(
        &mut self,
        index: &Library,
        queries: &[f32],
        o: &SearchOptions,
        threads: usize,
    ) -> Result<(), SearchError> {
        for (stretch, queries) in queries.chunks(STRETCH * index.dim()).enumerate() {
            let results = index.search_batch(queries, o, threads);
            results.map_err(|e| of_batch(e, stretch * STRETCH))?.iter().for_each(|r| self.add(r));
        }
        Ok(())
    }

    fn add(&mut self, result: &SearchResult) {
        self.table.add(result, self.metric);
        self.sums += result.stats;
    }
}

/// The error with the number of the query in the whole batch.
fn of_batch(error: SearchError, before: usize) -> SearchError {
    match error {
        SearchError::Query { query, reason } => {
            SearchError::Query { query: before + query, reason }
        }
        other => other,
    }
}

/// Asking the system takes as long as a search.
fn all_threads() -> usize {
    static ALL: OnceLock<usize> = OnceLock::new();
    *ALL.get_or_init(available_threads)
}
