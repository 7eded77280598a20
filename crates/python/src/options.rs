//! Keyword arguments, checked: a wrong type is a TypeError, a wrong value a ValueError, and both
//! name the argument.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rabitq_ssd::{BuildOptions, OpenOptions, Prefix, available_threads};

/// Threads beyond this only contend.
const MOST_THREADS: usize = 1024;

/// A whole number of at least 1.
pub(crate) fn count(name: &str, given: &Bound<'_, PyAny>) -> PyResult<usize> {
    match whole(name, given)? {
        0 => Err(PyValueError::new_err(format!("{name} must be at least 1, found 0"))),
        number => Ok(number as usize),
    }
}

/// A whole number that is not negative.
pub(crate) fn whole(name: &str, given: &Bound<'_, PyAny>) -> PyResult<u64> {
    given.extract::<u64>().map_err(|error| {
        let found = given.repr().map_or_else(|_| "it".into(), |repr| repr.to_string());
        if error.is_instance_of::<PyOverflowError>(given.py()) {
            PyValueError::new_err(format!("{name} is out of range: {found}"))
        } else {
            PyTypeError::new_err(format!("{name} must be a whole number, found {found}"))
        }
    })
}

/// A number of threads.
pub(crate) fn threads(name: &str, given: &Bound<'_, PyAny>) -> PyResult<usize> {
    match count(name, given)? {
        threads if threads <= MOST_THREADS => Ok(threads),
        threads => {
            let problem = format!("{name} must be at most {MOST_THREADS}, found {threads}");
            Err(PyValueError::new_err(problem))
        }
    }
}

/// A time above 0.
pub(crate) fn seconds(name: &str, given: f64) -> PyResult<Duration> {
    match Duration::try_from_secs_f64(given) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => {
            let problem = format!("{name} must be a number of seconds above 0, found {given}");
            Err(PyValueError::new_err(problem))
        }
    }
}

/// One of the names that `T` knows.
pub(crate) fn name<T>(name: &str, given: &Bound<'_, PyAny>) -> PyResult<T>
where
    T: FromStr<Err: Display>,
{
    let text: String = given
        .extract()
        .map_err(|_| PyTypeError::new_err(format!("{name} must be a string, found {given:?}")))?;
    text.parse().map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
}

/// The arguments that describe an index and its build; what is not among them keeps the default.
pub(crate) fn build(given: &Bound<'_, PyDict>, rows: u64) -> PyResult<BuildOptions> {
    let get = |name: &'static str| -> PyResult<Option<(&'static str, Bound<'_, PyAny>)>> {
        Ok(given.get_item(name)?.filter(|value| !value.is_none()).map(|value| (name, value)))
    };
    let preset: String = given.get_item("preset")?.map_or(Ok("default".into()), |p| p.extract())?;
    let mut o = match preset.as_str() {
        "paper" => BuildOptions::paper(rows),
        _ => BuildOptions::default(),
    };
    if let Some((key, value)) = get("metric")? {
        o.metric = name(key, &value)?;
    }
    if let Some((key, value)) = get("nlist")? {
        o.nlist = Some(count(key, &value)?);
    }
    if let Some((key, value)) = get("bits")? {
        let bits = count(key, &value)?;
        if !(2..=9).contains(&bits) {
            return Err(PyValueError::new_err(format!("bits must be 2 to 9, found {bits}")));
        }
        o.bits = bits as u32;
    }
    if let Some((key, value)) = get("record")? {
        o.record = name(key, &value)?;
    }
    if let Some((key, value)) = get("prefix_dims")? {
        o.prefix = Prefix::Dims(count(key, &value)?);
    }
    if let Some((key, value)) = get("memory")? {
        o.prefix = Prefix::Memory(whole(key, &value)?);
    }
    if let Some((key, value)) = get("coarse")? {
        o.coarse = name(key, &value)?;
    }
    if let Some((key, value)) = get("bound")? {
        o.bound = name(key, &value)?;
    }
    if let Some((key, value)) = get("list_order")? {
        o.list_order = name(key, &value)?;
    }
    if let Some((key, value)) = get("centroids")? {
        o.centroids = name(key, &value)?;
    }
    if let Some((key, value)) = get("seed")? {
        o.seed = whole(key, &value)?;
    }
    if let Some((key, value)) = get("threads")? {
        o.threads = threads(key, &value)?;
    }
    if let Some((key, value)) = get("build_memory")? {
        o.build_memory = Some(whole(key, &value)?);
    }
    if let Some((key, value)) = get("on_invalid")? {
        o.on_invalid = name(key, &value)?;
    }
    Ok(o)
}

/// How an index is opened. A timeout of 0 seconds, or `None`, waits for ever.
pub(crate) fn open(
    io_backend: &Bound<'_, PyAny>,
    direct: &Bound<'_, PyAny>,
    io_timeout: Option<f64>,
) -> PyResult<OpenOptions> {
    let io_timeout = match io_timeout {
        None | Some(0.0) => None,
        Some(given) => Some(seconds("io_timeout", given)?),
    };
    Ok(OpenOptions {
        backend: name("io_backend", io_backend)?,
        direct: name("direct", direct)?,
        io_timeout,
    })
}

/// The threads asked for, or all the machine offers.
pub(crate) fn threads_or_all(given: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    given.map_or_else(|| Ok(available_threads()), |given| threads("threads", given))
}
