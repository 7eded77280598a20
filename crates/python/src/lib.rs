//! The Python package `rabitq_ssd`: its native half. Arrays, iterators and tables become vector
//! files in the Python half (`python/rabitq_ssd`), so that this one knows paths and contiguous
//! arrays only.
//!
//! ```text
//! options.rs   keyword arguments, checked by name      error.rs   errors as exceptions
//! watch.rs     long work without the GIL: progress, Ctrl-C
//! build.rs     build, estimate                         files.rs   info, verify, generate, ...
//! index.rs     Index: open, search, close              arrays.rs  queries in, results out
//! evaluate.rs  ground truth, measured settings, tuning
//! ```

#![deny(unsafe_code)]

mod arrays;
mod build;
mod error;
mod evaluate;
mod files;
mod index;
mod options;
mod watch;

use pyo3::prelude::*;

/// The native half of the package `rabitq_ssd`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    error::register(module)?;
    build::register(module)?;
    files::register(module)?;
    evaluate::register(module)?;
    index::register(module)
}
