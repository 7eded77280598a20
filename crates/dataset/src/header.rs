//! From the first bytes of a file and its real size to the place of every row.
//!
//! ```text
//! offset(row) = data_start + row · stride,   stride = row header (0 or 4) + dim · width
//! ```
//! A header is believed only when the shape it declares fills the file exactly. Products are
//! taken in 128 bits, where u64 · u64 cannot overflow and one more factor of 8 is caught by
//! saturation.

use std::path::Path;

use crate::npy;
use crate::{DatasetError, Dtype, Format, LooksLike, MAX_DIM};

/// Bytes of a `bin` header: u32 rows, u32 dim.
pub(crate) const BIN_HEADER: u64 = 8;

/// The shape of one file and where its rows lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) rows: u64,
    pub(crate) dim: usize,
    pub(crate) dtype: Dtype,
    pub(crate) data_start: u64,
    /// Bytes before the values of each row.
    pub(crate) row_header: usize,
}

impl Layout {
    /// Bytes from one row to the next.
    pub(crate) fn stride(&self) -> usize {
        self.row_header + self.dim * self.dtype.size()
    }
}

/// Read the layout of a file of `len` bytes from its `head`, the first bytes of it: all of a
/// NumPy header, at least 16 bytes otherwise (fewer when the file is shorter).
pub(crate) fn layout(
    path: &Path,
    format: Format,
    head: &[u8],
    len: u64,
) -> Result<Layout, DatasetError> {
    match format {
        Format::Npy => npy_layout(path, head, len),
        Format::Fvecs => vecs_layout(path, format, Dtype::F32, head, len),
        Format::Bvecs => vecs_layout(path, format, Dtype::U8, head, len),
        Format::Fbin => bin_layout(path, format, Dtype::F32, head, len),
        Format::F16bin => bin_layout(path, format, Dtype::F16, head, len),
        Format::U8bin => bin_layout(path, format, Dtype::U8, head, len),
        Format::I8bin => bin_layout(path, format, Dtype::I8, head, len),
    }
}

fn bin_layout(
    path: &Path,
    format: Format,
    dtype: Dtype,
    head: &[u8],
    len: u64,
) -> Result<Layout, DatasetError> {
    let (Some(rows), Some(dim)) = (u32_at(head, 0), u32_at(head, 4)) else {
        return Err(short_header(path, format, head, BIN_HEADER, len));
    };
    let shape = Shape { rows: u64::from(rows), dim: u64::from(dim), dtype };
    shape.fill(path, format, head, BIN_HEADER, len)
}

fn npy_layout(path: &Path, head: &[u8], len: u64) -> Result<Layout, DatasetError> {
    let header = npy::parse(head).map_err(|problem| match looks_like(Format::Npy, head, len) {
        Some(looks) if problem == crate::NpyProblem::Magic => DatasetError::Npy {
            path: path.to_path_buf(),
            problem: crate::NpyProblem::OtherContent(looks),
        },
        _ => DatasetError::Npy { path: path.to_path_buf(), problem },
    })?;
    let shape = Shape { rows: header.rows, dim: header.dim, dtype: header.dtype };
    shape.fill(path, Format::Npy, head, header.data_start, len)
}

fn vecs_layout(
    path: &Path,
    format: Format,
    dtype: Dtype,
    head: &[u8],
    len: u64,
) -> Result<Layout, DatasetError> {
    let Some(dim) = u32_at(head, 0).map(u32::cast_signed) else {
        return Err(short_header(path, format, head, 4, len));
    };
    let dim = checked_dim(path, format, i128::from(dim), head, len)?;
    let row_header = format.row_header();
    let row_bytes = (row_header + dim * dtype.size()) as u64;
    if !len.is_multiple_of(row_bytes) {
        return Err(DatasetError::PartialRow {
            path: path.to_path_buf(),
            dim: dim as u64,
            row_bytes,
            actual: len,
            looks_like: looks_like(format, head, len),
        });
    }
    Ok(Layout { rows: len / row_bytes, dim, dtype, data_start: 0, row_header })
}

/// What a header with one shape for the whole file declares.
struct Shape {
    rows: u64,
    dim: u64,
    dtype: Dtype,
}

impl Shape {
    /// The layout, if the shape fills the file from `data_start` to its end.
    fn fill(
        self,
        path: &Path,
        format: Format,
        head: &[u8],
        data_start: u64,
        len: u64,
    ) -> Result<Layout, DatasetError> {
        let Self { rows, dim, dtype } = self;
        let expected = bin_bytes(rows, dim, dtype, data_start);
        if dim != 0 && expected != u128::from(len) {
            let row_bytes = u128::from(dim) * dtype.size() as u128;
            let data = u128::from(len.saturating_sub(data_start));
            // Both are at most `data`, which came from a u64.
            let rows_fit = (data / row_bytes) as u64;
            let left_over = (data % row_bytes) as u64;
            return Err(DatasetError::SizeMismatch {
                path: path.to_path_buf(),
                rows,
                dim,
                dtype,
                expected,
                actual: len,
                rows_fit,
                left_over,
                looks_like: looks_like(format, head, len),
            });
        }
        let dim = checked_dim(path, format, i128::from(dim), head, len)?;
        Ok(Layout { rows, dim, dtype, data_start, row_header: 0 })
    }
}

fn checked_dim(
    path: &Path,
    format: Format,
    dim: i128,
    head: &[u8],
    len: u64,
) -> Result<usize, DatasetError> {
    match usize::try_from(dim) {
        Ok(dim) if (1..=MAX_DIM).contains(&dim) => Ok(dim),
        _ => Err(DatasetError::DimOutOfRange {
            path: path.to_path_buf(),
            dim,
            looks_like: looks_like(format, head, len),
        }),
    }
}

fn short_header(
    path: &Path,
    format: Format,
    head: &[u8],
    expected: u64,
    actual: u64,
) -> DatasetError {
    let looks_like = looks_like(format, head, actual);
    DatasetError::ShortHeader { path: path.to_path_buf(), expected, actual, looks_like }
}

/// A better guess at the content of a file that is not what its extension says.
fn looks_like(said: Format, head: &[u8], len: u64) -> Option<LooksLike> {
    let magics: [(&[u8], LooksLike); 5] = [
        (npy::MAGIC, LooksLike::Vectors(Format::Npy)),
        (b"\x89HDF\r\n\x1a\n", LooksLike::Hdf5),
        (b"PAR1", LooksLike::Parquet),
        (b"PK\x03\x04", LooksLike::Zip),
        (b"\x1f\x8b", LooksLike::Gzip),
    ];
    if let Some((_, looks)) = magics.iter().find(|(magic, _)| head.starts_with(magic)) {
        return (*looks != LooksLike::Vectors(said)).then_some(*looks);
    }
    let (rows, dim) = (u32_at(head, 0)?, u32_at(head, 4)?);
    let plausible = |dim: u32| (1..=MAX_DIM as u64).contains(&u64::from(dim));
    let bin = |dtype| {
        rows > 0
            && plausible(dim)
            && bin_bytes(rows.into(), dim.into(), dtype, BIN_HEADER) == u128::from(len)
    };
    // Rows of a `vecs` file begin with a value where a `bin` file has its dimension: as an
    // integer it is 0 or huge, save by accident.
    let vecs = |width: u64| {
        let row_bytes = 4 + u64::from(rows) * width;
        plausible(rows) && !plausible(dim) && len.is_multiple_of(row_bytes) && len > row_bytes
    };
    let guesses = [
        (Format::Fbin, bin(Dtype::F32), LooksLike::Vectors(Format::Fbin)),
        (Format::F16bin, bin(Dtype::F16), LooksLike::Vectors(Format::F16bin)),
        (Format::U8bin, bin(Dtype::U8), LooksLike::ByteBin),
        (Format::Fvecs, vecs(4), LooksLike::Vectors(Format::Fvecs)),
        (Format::Bvecs, vecs(1), LooksLike::Vectors(Format::Bvecs)),
    ];
    guesses.into_iter().find(|&(format, fits, _)| fits && format != said).map(|(_, _, looks)| looks)
}

/// Bytes of a file that holds `rows` x `dim` values from `data_start` on.
fn bin_bytes(rows: u64, dim: u64, dtype: Dtype, data_start: u64) -> u128 {
    (u128::from(rows) * u128::from(dim))
        .saturating_mul(dtype.size() as u128)
        .saturating_add(u128::from(data_start))
}

fn u32_at(head: &[u8], at: usize) -> Option<u32> {
    head.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}
