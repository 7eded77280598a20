//! Nearest-neighbour search over more vectors than fit in memory, on one machine with one NVMe
//! disk: the system of the paper *RaBitQ-SSD: Split Codes and Pipelined I/O for SSD-Resident Vector
//! Search*.

#![forbid(unsafe_code)]

pub mod config;
pub mod error;
pub mod progress;
mod build;
mod coarse;
mod store;
mod search;
mod info;
mod index;
pub mod evaluate;

pub use build::{BuildPlan, BuildReport};
pub use config::{
    Backend, Bound, BuildOptions, CoarseKind, Direct, Metric, OnInvalid, OpenOptions, Pipeline,
    Prefix, RecordKind, SearchOptions, TableBits, Threshold, available_threads,
};
pub use error::{BuildError, OpenError, SearchError};
pub use index::Index;
pub use info::{IndexInfo, ListSizes};
pub use progress::{Progress, Silent};
pub use search::{SearchResult, SearchStats};
pub use store::verify::{FileCheck, VerifyReport, verify};

pub use {cluster, dataset, pageio, simd};

/// Most dims a row may have.
pub const MAX_DIM: usize = dataset::MAX_DIM;
