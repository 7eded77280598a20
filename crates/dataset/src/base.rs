//! One file or several, read as one array of rows.
//!
//! ```text
//! file 0: rows 0 .. a      starts = [0, a, a+b, ...]
//! file 1: rows a .. a+b    row → file: the last start that is ≤ row
//! ```
//! Several files are needed because a `bin` header counts rows in 32 bits, and because data
//! sets come in parts. Row numbers have 64 bits everywhere.

use std::path::{Path, PathBuf};

use crate::file::{SPAN_BYTES, VectorFile, whole_rows};
use crate::{DatasetError, Dtype, Fingerprint};

/// Rows further apart than this are gathered by reads of their own: about what a disk reads
/// ahead in the time of one more system call.
const GATHER_GAP_BYTES: u64 = 16 << 10;

/// The rows of one or several files in the order given, numbered from 0.
#[derive(Debug)]
pub struct Base {
    files: Vec<VectorFile>,
    paths: Vec<PathBuf>,
    /// First row of each file.
    starts: Vec<u64>,
    n: u64,
    dim: usize,
    dtype: Dtype,
}

impl Base {
    /// Open files of one dimension and value type; formats may differ. A base of 0 rows opens.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self, DatasetError> {
        let files: Vec<VectorFile> =
            paths.iter().map(|path| VectorFile::open(path.as_ref())).collect::<Result<_, _>>()?;
        let first = files.first().ok_or(DatasetError::NoFiles)?;
        files.iter().try_for_each(|file| check_alike(first, file))?;
        let (dim, dtype) = (first.dim(), first.dtype());
        let mut n = 0u64;
        let starts = files
            .iter()
            .map(|file| {
                let start = n;
                // Each count is below a file's size in bytes, far from overflowing the sum.
                n += file.n();
                start
            })
            .collect();
        let paths = paths.iter().map(|path| path.as_ref().to_path_buf()).collect();
        Ok(Self { files, paths, starts, n, dim, dtype })
    }

    /// Only the first `rows` rows, as if the files ended there.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn first_rows(self, rows: u64) -> Result<Self, DatasetError> {
        self.check_range(0, rows)?;
        Ok(Self { n: rows, ..self })
    }

    /// Number of rows in all files, or those [`first_rows`](Self::first_rows) left.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Values per row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Type of the values in the files.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Type of the values [`read_raw`](Self::read_raw) hands out: f32 when the files hold f64.
    pub fn raw_dtype(&self) -> Dtype {
        self.dtype.raw()
    }

    /// The files, as given.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Read rows from `start` on as f32; `out.len()` is rows · dim.
    ///
    /// # Panics
    /// If `out` does not hold whole rows.
    pub fn read_f32(&self, start: u64, out: &mut [f32]) -> Result<(), DatasetError> {
        self.for_each_file(start, out, self.dim, |file, row, part| file.read_f32(row, part))
    }

    /// Read rows from `start` on in [`raw_dtype`](Self::raw_dtype): packed and little endian,
    /// without the headers some formats put before each row.
    ///
    /// # Panics
    /// If `out` does not hold whole rows.
    pub fn read_raw(&self, start: u64, out: &mut [u8]) -> Result<(), DatasetError> {
        let width = self.dim * self.raw_dtype().size();
        self.for_each_file(start, out, width, |file, row, part| file.read_raw(row, part))
    }

    /// Read chosen rows as f32, one after the other in the order given. Sorted rows are read in
    /// few large pieces where they lie close together.
    ///
    /// # Panics
    /// If `out.len()` is not `rows.len()` · dim.
    pub fn gather_f32(&self, rows: &[u64], out: &mut [f32]) -> Result<(), DatasetError> {
        assert_eq!(out.len(), rows.len() * self.dim, "one row of output for each row asked for");
        let mut scratch = Vec::new();
        let (mut rows, mut out) = (rows, out);
        while let Some(&first) = rows.first() {
            self.check_range(first, 1)?;
            let (file, start) = self.file_of(first);
            let last = (start + file.n()).min(self.n) - 1;
            let count = group(rows, last, file.stride());
            let (group, later) = rows.split_at(count);
            let (part, rest) = out.split_at_mut(count * self.dim);
            let last = group.last().copied().unwrap_or(first);
            // A group spans at most SPAN_BYTES or one row.
            let span_rows = (last - first) as usize + 1;
            let span = file.span(first - start, span_rows, &mut scratch)?;
            for (&row, target) in group.iter().zip(part.chunks_exact_mut(self.dim)) {
                self.dtype.decode(span.row((row - first) as usize), target);
            }
            (rows, out) = (later, rest);
        }
        Ok(())
    }

    /// The file that holds a row, and the row's number within it, for messages. A row past the
    /// end is placed in the last file.
    pub fn locate(&self, row: u64) -> (&Path, u64) {
        let (file, start) = self.file_of(row);
        (file.path(), row - start)
    }

    /// What a later look at the same paths is compared with, to know whether the base is the same.
    /// Reads up to 256 KiB of every file.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn fingerprint(&self) -> Result<Fingerprint, DatasetError> {
        Ok(Fingerprint {
            rows: self.n,
            dim: self.dim,
            dtype: self.dtype.to_string(),
            files: self.files.iter().map(VectorFile::fingerprint).collect::<Result<_, _>>()?,
        })
    }

    /// Cut a read at the borders of files.
    fn for_each_file<T>(
        &self,
        start: u64,
        out: &mut [T],
        width: usize,
        read: impl Fn(&VectorFile, u64, &mut [T]) -> Result<(), DatasetError>,
    ) -> Result<(), DatasetError> {
        self.check_range(start, whole_rows(out.len(), width) as u64)?;
        let (mut row, mut out) = (start, out);
        while !out.is_empty() {
            let (file, file_start) = self.file_of(row);
            let wanted = (out.len() / width) as u64;
            let rows = wanted.min(file_start + file.n() - row);
            let (part, rest) = out.split_at_mut(rows as usize * width);
            read(file, row - file_start, part)?;
            (row, out) = (row + rows, rest);
        }
        Ok(())
    }

    /// The file that holds a row and the number of its first row.
    fn file_of(&self, row: u64) -> (&VectorFile, u64) {
        // Several starts are equal where a file has no rows: the last of them has the row.
        let index = self.starts.partition_point(|&start| start <= row).saturating_sub(1);
        (&self.files[index], self.starts[index])
    }

    fn check_range(&self, start: u64, rows: u64) -> Result<(), DatasetError> {
        match start.checked_add(rows) {
            Some(end) if end <= self.n => Ok(()),
            _ => Err(DatasetError::RowsOutOfRange {
                path: self.files[0].path().to_path_buf(),
                start,
                rows,
                n: self.n,
            }),
        }
    }
}

/// How many of the leading `rows` one read should cover: ascending, up to row `last` of the
/// file, gaps and total bounded in bytes.
fn group(rows: &[u64], last: u64, stride: usize) -> usize {
    let stride = stride as u64;
    let Some(&first) = rows.first() else { return 0 };
    let mut previous = first;
    let joins = rows.iter().take_while(|&&row| {
        let joins = (previous..=last).contains(&row)
            && (row - previous).saturating_sub(1) * stride <= GATHER_GAP_BYTES
            && (row == first || (row - first + 1) * stride <= SPAN_BYTES as u64);
        previous = row;
        joins
    });
    joins.count()
}

fn check_alike(first: &VectorFile, other: &VectorFile) -> Result<(), DatasetError> {
    if first.dim() != other.dim() {
        return Err(DatasetError::DimsDiffer {
            first: first.path().to_path_buf(),
            first_dim: first.dim(),
            second: other.path().to_path_buf(),
            second_dim: other.dim(),
        });
    }
    if first.dtype() != other.dtype() {
        return Err(DatasetError::DtypesDiffer {
            first: first.path().to_path_buf(),
            first_dtype: first.dtype(),
            second: other.path().to_path_buf(),
            second_dtype: other.dtype(),
        });
    }
    Ok(())
}
