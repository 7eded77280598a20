//! Matrix products, k-means, nearest centroids and exact neighbours.
//!
//! The life of a vector, as far as this crate sees it:
//!
//! ```text
//! sample ──kmeans──▶ centroids ──Assigner──▶ list of every row        (build)
//! query  ──nearest / Hnsw──▶ the nprobe nearest lists                 (search)
//! query  ──exact_neighbours──▶ ground truth                           (evaluation)
//! ```
//!
//! Two ideas carry all of it:
//!
//! * **Products screen, exact arithmetic decides.** A blocked matrix product is the fastest way to
//!   compare many rows with many rows, but its sums are rounded in an order that belongs to the
//!   matrix library. So it only proposes: everything within a proven rounding bound of the best
//!   (`screen.rs`) is computed again from the rows, and that second number is the answer. Results
//!   therefore do not depend on tile sizes, thread counts or the library's kernels.
//! * **Work is cut by the data, never by the threads.** Row blocks, batches and sums have fixed
//!   borders and fixed orders; threads only decide who computes what.

#![deny(unsafe_code)]

mod error;
mod gemm;
mod screen;
mod rows;
mod read_ahead;
mod kmeans;
mod assign;
mod nearest;
mod hnsw;
mod exact;

pub use assign::{AssignMethod, AssignScratch, Assigner};
pub use error::ClusterError;
pub use exact::{Metric, Neighbours, exact_neighbours};
pub use gemm::dots;
pub use hnsw::{GraphMetric, Hnsw, HnswScratch};
pub use kmeans::{KmeansOptions, kmeans, kmeans_bytes};
pub use nearest::select_nearest;
pub use read_ahead::read_ahead;
pub use rows::{RowSlice, RowSource, Rows};
