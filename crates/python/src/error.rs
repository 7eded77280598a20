//! Errors as Python exceptions: what Python has a type for gets it, the rest is
//! `rabitq_ssd.Error`.
//!
//! ```text
//! wrong value, wrong dim, NaN     ValueError        nothing at a path    FileNotFoundError
//! wrong type                      TypeError         something at a path  FileExistsError
//! query out of time               SearchTimeoutError, a SearchError and a TimeoutError
//! everything else                 BuildError, OpenError, SearchError, all of them Error
//! ```
//! Messages of the library name options as the command line does; here they are arguments.

use std::io;
use std::path::Path;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyFileExistsError, PyFileNotFoundError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use rabitq_ssd::cluster::ClusterError;
use rabitq_ssd::dataset::DatasetError;
use rabitq_ssd::{BuildError, OpenError, SearchError};

create_exception!(rabitq_ssd, Error, PyException, "Base of the errors of this package.");

/// Python's `BuildError`, `OpenError` and `SearchError`, by the names they have there.
pub(crate) mod kind {
    use super::{Error, create_exception};

    create_exception!(rabitq_ssd, BuildError, Error, "An index could not be built.");
    create_exception!(rabitq_ssd, OpenError, Error, "An index could not be opened.");
    create_exception!(rabitq_ssd, SearchError, Error, "A query has no answer.");
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<Error>())?;
    module.add("BuildError", py.get_type::<kind::BuildError>())?;
    module.add("OpenError", py.get_type::<kind::OpenError>())?;
    module.add("SearchError", py.get_type::<kind::SearchError>())
}

/// `on_invalid skip` for `--on-invalid skip`: options of the command line as arguments.
fn in_python(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(at) = rest.find("--") {
        let (before, option) = rest.split_at(at);
        let option = &option[2..];
        let end =
            option.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(option.len());
        let (name, after) = option.split_at(end);
        text.push_str(before);
        match name {
            "out" => text.push_str("dir"),
            name => text.push_str(&name.replace('-', "_")),
        }
        rest = after;
    }
    text + rest
}

fn message(error: &dyn std::error::Error) -> String {
    in_python(&error.to_string())
}

pub(crate) fn value(error: &dyn std::error::Error) -> PyErr {
    PyValueError::new_err(message(error))
}

/// Errors of files, by what the system said.
pub(crate) fn file(error: &io::Error) -> PyErr {
    match error.kind() {
        io::ErrorKind::NotFound => PyFileNotFoundError::new_err(error.to_string()),
        io::ErrorKind::AlreadyExists => PyFileExistsError::new_err(error.to_string()),
        _ => Error::new_err(error.to_string()),
    }
}

pub(crate) fn dataset(error: &DatasetError) -> PyErr {
    match error {
        DatasetError::Io(io) if io.kind() == io::ErrorKind::NotFound => file(io),
        DatasetError::UnknownDtype { .. } => value(error),
        other => kind::BuildError::new_err(message(other)),
    }
}

pub(crate) fn build(error: &BuildError) -> PyErr {
    match error {
        BuildError::Dataset(inner) => dataset(inner),
        BuildError::Exists(_) => PyFileExistsError::new_err(message(error)),
        BuildError::Option { .. }
        | BuildError::Empty(_)
        | BuildError::InvalidRows { .. }
        | BuildError::Budget { .. }
        | BuildError::BuildMemory { .. }
        | BuildError::NothingToResume(_)
        | BuildError::Resume { .. } => value(error),
        other => kind::BuildError::new_err(message(other)),
    }
}

/// Of the index in `dir`: a directory that is there and no index is another matter.
pub(crate) fn open(error: &OpenError, dir: &Path) -> PyErr {
    match error {
        OpenError::Unreadable { .. } if !dir.exists() => {
            PyFileNotFoundError::new_err(message(error))
        }
        other => kind::OpenError::new_err(message(other)),
    }
}

pub(crate) fn search(py: Python<'_>, error: &SearchError) -> PyErr {
    match error {
        SearchError::TimedOut { .. } => timed_out(py, message(error)).unwrap_or_else(|e| e),
        SearchError::Dim { .. } | SearchError::Query { .. } | SearchError::Option { .. } => {
            value(error)
        }
        other => kind::SearchError::new_err(message(other)),
    }
}

/// Of a type made in Python, where a type can have two bases.
fn timed_out(py: Python<'_>, message: String) -> PyResult<PyErr> {
    static KIND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let kind = KIND.import(py, "rabitq_ssd._errors", "SearchTimeoutError")?;
    Ok(PyErr::from_value(kind.call1((message,))?))
}

pub(crate) fn cluster(error: &ClusterError) -> PyErr {
    Error::new_err(message(error))
}
