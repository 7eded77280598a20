//! What can go wrong with vector files: one variant per situation.
//!
//! Messages name the file, what was expected, what was found, and what to do. Operating system
//! errors come through `fs_err`, which adds the path and the operation.

use std::fmt;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::{Dtype, Format, MAX_DIM, NpyProblem};

/// A vector or ground truth file that cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// The operating system refused; the message already names the path.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The caller asked the work to stop; it left nothing behind.
    #[error("interrupted")]
    Interrupted,
    /// A base needs at least one file.
    #[error("no vector file given")]
    NoFiles,
    /// A directory stands where a file is needed.
    #[error("{}: is a directory, expected a vector file", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// Something that is no file stands where one is to be written.
    #[error("{}: a directory, pipe or device stands there; name a file to write", path.display())]
    NotReplaceable {
        /// What stands there.
        path: PathBuf,
    },
    /// Pipes, sockets and devices have no size to check and cannot be read at a position.
    #[error("{}: not a regular file (a pipe, socket or device); copy it to a file first", path.display())]
    NotAFile {
        /// The path as given.
        path: PathBuf,
    },
    /// The file has no bytes at all.
    #[error("{}: the file is empty (0 bytes)", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The extension names no known format.
    #[error("{}: unknown extension; expected one of {}", path.display(), extensions())]
    UnknownExtension {
        /// The file.
        path: PathBuf,
    },
    /// A name that is no value type.
    #[error("unknown dtype {name:?}; expected f32, f16, u8, i8 or f64")]
    UnknownDtype {
        /// The name as given.
        name: String,
    },
    /// The file ends inside its header.
    #[error("{}: the header needs {expected} bytes, the file holds {actual}{}", path.display(), hint(looks_like))]
    ShortHeader {
        /// The file.
        path: PathBuf,
        /// Bytes the header needs.
        expected: u64,
        /// Bytes in the file.
        actual: u64,
        /// What the content looks like instead.
        looks_like: Option<LooksLike>,
    },
    /// The header's shape and the file's size disagree.
    #[error("{}: header says {rows} rows x {dim} {dtype} = {expected} bytes, the file holds {actual}: {}{}",
        path.display(), fit(*rows_fit, *left_over), hint(looks_like))]
    SizeMismatch {
        /// The file.
        path: PathBuf,
        /// Rows the header declares.
        rows: u64,
        /// Dimension the header declares.
        dim: u64,
        /// Type of the values.
        dtype: Dtype,
        /// Bytes the header implies.
        expected: u128,
        /// Bytes in the file.
        actual: u64,
        /// Whole rows that fit in the file.
        rows_fit: u64,
        /// Bytes after those rows.
        left_over: u64,
        /// What the content looks like instead.
        looks_like: Option<LooksLike>,
    },
    /// A file of self-describing rows does not end with a whole row.
    #[error("{}: the first row says dim {dim}, so rows of {row_bytes} bytes, the file holds {actual} bytes: {}{}",
        path.display(), fit(*actual / *row_bytes, *actual % *row_bytes), hint(looks_like))]
    PartialRow {
        /// The file.
        path: PathBuf,
        /// Dimension of the first row.
        dim: u64,
        /// Bytes of a row with its header.
        row_bytes: u64,
        /// Bytes in the file.
        actual: u64,
        /// What the content looks like instead.
        looks_like: Option<LooksLike>,
    },
    /// No vector has this dimension.
    #[error("{}: dim {dim} is out of range, expected 1 to {MAX_DIM}{}", path.display(), hint(looks_like))]
    DimOutOfRange {
        /// The file.
        path: PathBuf,
        /// Dimension the file declares.
        dim: i128,
        /// What the content looks like instead.
        looks_like: Option<LooksLike>,
    },
    /// A row of an `.fvecs`, `.bvecs` or `.ivecs` file has another dimension than the first.
    #[error("{}: row {row} says dim {found}, the first row says {expected}; all rows must have one dimension", path.display())]
    RowDim {
        /// The file.
        path: PathBuf,
        /// Row within the file.
        row: u64,
        /// Dimension of the first row.
        expected: usize,
        /// Dimension of this row.
        found: i32,
    },
    /// A NumPy file this crate does not read.
    #[error("{}: {problem}", path.display())]
    Npy {
        /// The file.
        path: PathBuf,
        /// What is in the way.
        problem: NpyProblem,
    },
    /// Files of one base differ in dimension.
    #[error("{}: dim {second_dim}, but {} has dim {first_dim}; all files of one base must agree", second.display(), first.display())]
    DimsDiffer {
        /// The first file.
        first: PathBuf,
        /// Its dimension.
        first_dim: usize,
        /// The file that differs.
        second: PathBuf,
        /// Its dimension.
        second_dim: usize,
    },
    /// Files of one base differ in value type.
    #[error("{}: {second_dtype} values, but {} has {first_dtype}; all files of one base must agree", second.display(), first.display())]
    DtypesDiffer {
        /// The first file.
        first: PathBuf,
        /// Its value type.
        first_dtype: Dtype,
        /// The file that differs.
        second: PathBuf,
        /// Its value type.
        second_dtype: Dtype,
    },
    /// Rows beyond the end were asked for.
    #[error("{}: rows {start} to {start}+{rows} asked for, there are {n}", path.display())]
    RowsOutOfRange {
        /// The (first) file.
        path: PathBuf,
        /// First row asked for.
        start: u64,
        /// Number of rows asked for.
        rows: u64,
        /// Rows there are.
        n: u64,
    },
    /// The file became shorter after it was opened.
    #[error("{}: truncated while being read: expected {expected} bytes at offset {offset}, found {found}", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where the read began.
        offset: u64,
        /// Bytes wanted.
        expected: u64,
        /// Bytes there.
        found: u64,
    },
    /// The extension of a file to be written does not go with the type of its values.
    #[error("{}: cannot hold {dtype} values, {}", path.display(), holds(expected))]
    WrongDtype {
        /// The file to be written.
        path: PathBuf,
        /// What the extension stands for; `None` for `.npy`, which takes all types but f64.
        expected: Option<Dtype>,
        /// What was asked for.
        dtype: Dtype,
    },
    /// A value that the type of the file does not hold.
    #[error("{}: row {row}, component {component}: {value} is no {dtype} value; ask for rounding or clamping, or write f32", path.display())]
    Value {
        /// The file to be written.
        path: PathBuf,
        /// Row in the file.
        row: u64,
        /// Component of the row.
        component: usize,
        /// The value.
        value: f32,
        /// Type of the file.
        dtype: Dtype,
    },
    /// The format counts rows in 32 bits.
    #[error("{}: {rows} rows, this format holds at most {}; write several files or .npy", path.display(), u32::MAX)]
    TooManyRows {
        /// The file to be written.
        path: PathBuf,
        /// Rows it would have.
        rows: u64,
    },
    /// A ground truth file has neither of the sizes its header allows.
    #[error("{}: header says {queries} queries x {k} = {ids_only} bytes with row numbers alone or {with_scores} with scores, the file holds {actual}", path.display())]
    TruthSize {
        /// The file.
        path: PathBuf,
        /// Queries the header declares.
        queries: u32,
        /// Neighbours of each.
        k: u32,
        /// Bytes of such a file without scores.
        ids_only: u128,
        /// Bytes of such a file with scores.
        with_scores: u128,
        /// Bytes in the file.
        actual: u64,
    },
    /// A row number in a ground truth file is negative, or too large to be written.
    #[error("{}: query {query}, rank {rank}: row number {id} is out of range, expected 0 to {}", path.display(), u32::MAX)]
    TruthId {
        /// The file.
        path: PathBuf,
        /// The query.
        query: usize,
        /// Rank among its neighbours, from 0.
        rank: usize,
        /// The row number.
        id: i128,
    },
    /// The parts of a ground truth do not belong together.
    #[error("{}: {queries} queries x {k} need as many row numbers and scores, there are {ids} and {scores:?}; both counts must fit 32 bits", path.display())]
    TruthShape {
        /// The file to be written.
        path: PathBuf,
        /// Number of queries.
        queries: usize,
        /// Neighbours of each.
        k: usize,
        /// Row numbers there are.
        ids: usize,
        /// Scores there are.
        scores: Option<usize>,
    },
    /// Ground truth is written with scores, which `.ivecs` cannot hold.
    #[error("{}: ground truth is not written as .ivecs, which holds no scores; choose another extension", path.display())]
    TruthExtension {
        /// The file to be written.
        path: PathBuf,
    },
    /// The finished file could not be renamed into place.
    #[error("{}: cannot be put in place: {source}", path.display())]
    Publish {
        /// The file to be written.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
}

/// What the content of a file looks like when its extension says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LooksLike {
    /// Another format of this crate.
    Vectors(Format),
    /// One byte per value behind a `bin` header: signed or not cannot be told.
    ByteBin,
    /// An HDF5 container.
    Hdf5,
    /// A Parquet table.
    Parquet,
    /// A zip archive (`.npz`).
    Zip,
    /// A gzip stream.
    Gzip,
}

impl fmt::Display for LooksLike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vectors(format) => {
                let name = format.extension();
                write!(f, "the content looks like .{name}: rename the file to end in .{name}")
            }
            Self::ByteBin => f.write_str(
                "the size fits one byte per value: rename the file to end in .u8bin or .i8bin",
            ),
            Self::Hdf5 => f.write_str("the content is HDF5: export the array as .npy or .fbin"),
            Self::Parquet => {
                f.write_str("the content is Parquet: export the column as .npy or .fbin")
            }
            Self::Zip => f.write_str("the content is a zip archive: unpack it first"),
            Self::Gzip => f.write_str("the content is gzip: unpack it first"),
        }
    }
}

fn extensions() -> String {
    Format::ALL.map(|format| format!(".{}", format.extension())).join(" ")
}

fn hint(looks_like: &Option<LooksLike>) -> String {
    looks_like.map(|looks| format!("; {looks}")).unwrap_or_default()
}

fn holds(expected: &Option<Dtype>) -> String {
    match expected {
        Some(dtype) => format!("its extension stands for {dtype}"),
        None => "f64 can only be read".to_owned(),
    }
}

fn fit(rows: u64, left_over: u64) -> String {
    match left_over {
        0 => format!("{rows} rows fit"),
        _ => format!("{rows} rows fit and {left_over} bytes are left over"),
    }
}
