//! Nearest-neighbour search over more vectors than fit in memory, on one machine with one NVMe
//! disk: the system of the paper *RaBitQ-SSD: Split Codes and Pipelined I/O for SSD-Resident Vector
//! Search*.
//!
//! Vectors are clustered into lists. For each, a prefix of its sign code and three factors stay in
//! RAM; everything else is a fixed-size record in 4 KiB pages on disk. A query scans the prefixes of
//! the nearest lists, bounds every distance from below, and reads only the pages that can still
//! hold a neighbour: asynchronously, best bound first, few at a time.
//!
//! ```
//! use rabitq_ssd::{BuildOptions, Index, OpenOptions, SearchOptions, Silent, dataset};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! let file = dir.path().join("base.fbin");
//! let mut out = dataset::VectorWriter::create(&file, 8, dataset::Dtype::F32)?;
//! for i in 0..1000 {
//!     out.write_f32(&[i as f32, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0])?;
//! }
//! out.finish()?;
//!
//! let base = dataset::Base::open(&[&file])?;
//! let at = dir.path().join("index");
//! Index::build(&base, &at, &BuildOptions::default(), &Silent)?;
//!
//! let index = Index::open(&at, &OpenOptions::default())?;
//! let query = [500.2, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0];
//! let found = index.search(&query, &SearchOptions { k: 3, ..SearchOptions::default() })?;
//! assert_eq!(found.ids, [500, 501, 499]);
//! println!("{} pages read", found.stats.pages);
//! # Ok(())
//! # }
//! ```
//!
//! It is not a database: an index is written once and does not change, holds no payload and answers
//! no filters, and serves no network.

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

pub use build::{
    BaseShape, BuildPlan, BuildReport, BuildSeconds, Estimate, StageReport, default_build_memory,
};
pub use config::{
    Backend, Bound, BuildOptions, CentroidKind, CoarseKind, Direct, ListOrder, Metric, OnInvalid,
    OpenOptions, Pipeline, Prefix, RecordKind, SearchOptions, TableBits, Threshold,
    available_threads,
};
pub use error::{BuildError, OpenError, SearchError};
pub use index::Index;
pub use info::{IndexInfo, ListSizes};
pub use progress::{Progress, Silent};
pub use search::{Cancel, Event, EventKind, Phase, SearchResult, SearchStats, Trace};
pub use store::publish::{discard as discard_unfinished_build, unfinished as unfinished_build};
pub use store::verify::{FileCheck, VerifyReport, verify};

pub use {cluster, dataset, pageio, simd};

/// Most dims a row may have.
pub const MAX_DIM: usize = dataset::MAX_DIM;
