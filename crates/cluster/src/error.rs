//! What can go wrong while clustering or searching exactly.

use std::error::Error;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// More lists were asked for than there are rows to train them on.
    #[error(
        "k-means needs at least one sample row per list: nlist is {nlist}, the sample has {rows} \
         rows; lower nlist or enlarge the sample"
    )]
    TooFewRows {
        /// Rows in the sample.
        rows: usize,
        /// Lists asked for.
        nlist: usize,
    },

    /// Rows are numbered with 32 bits inside k-means and the graph.
    #[error("{what} has {rows} rows, at most {max} are supported", max = u32::MAX - 1)]
    TooManyRows {
        /// The input that is too long.
        what: &'static str,
        /// Its rows.
        rows: usize,
    },

    /// A size that must be positive is zero.
    #[error("{what} is 0, expected at least 1")]
    Zero {
        /// The name of the option or size.
        what: &'static str,
    },

    /// A slice of rows does not hold a whole number of rows.
    #[error("{what} holds {len} values, which is not a multiple of dim {dim}")]
    Shape {
        /// The slice.
        what: &'static str,
        /// Its length in values.
        len: usize,
        /// Values per row.
        dim: usize,
    },

    /// A query has a NaN or an infinity, so no order of neighbours exists for it.
    #[error("query {row} has a non-finite value in dimension {column}; remove the query")]
    NonFiniteQuery {
        /// Row number of the query.
        row: usize,
        /// The first dimension that is not finite.
        column: usize,
    },

    /// The source of rows failed.
    #[error("reading rows {start}..{end} failed: {source}")]
    Read {
        /// First row of what was to be read.
        start: u64,
        /// One past the last row.
        end: u64,
        /// What the source said.
        source: Box<dyn Error + Send + Sync>,
    },

    /// The thread that reads ahead could not be started.
    #[error("cannot start the thread that reads rows ahead: {source}")]
    Thread {
        /// What the operating system said.
        source: std::io::Error,
    },

    /// Stored graph bytes are not a graph.
    #[error(
        "centroid graph, byte {offset}: {what} is {found}, expected {expected}; rebuild the index"
    )]
    Graph {
        /// Offset into the bytes.
        offset: usize,
        /// The field.
        what: &'static str,
        /// The value found.
        found: u64,
        /// What would have been valid.
        expected: String,
    },
}
