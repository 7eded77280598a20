//! Rows out to a file: the format from the extension, the header at the end.
//!
//! ```text
//! create   room for the header
//! write_*  rows, each with its dimension before it in .fvecs and .bvecs
//! finish   the header, now that the number of rows is known; fsync; rename into place
//! ```

use std::io::Write;
use std::path::Path;

use crate::atomic::AtomicFile;
use crate::file::whole_rows;
use crate::header::BIN_HEADER;
use crate::{DatasetError, Dtype, Format, MAX_DIM, Rounding, npy};

/// A vector file under construction. Nothing is visible at its path before
/// [`finish`](Self::finish); dropping it leaves no trace.
#[derive(Debug)]
pub struct VectorWriter {
    file: AtomicFile,
    format: Format,
    dtype: Dtype,
    dim: usize,
    rows: u64,
    rounding: Rounding,
    encoded: Vec<u8>,
}

impl VectorWriter {
    /// Begin a file. The extension must go with `dtype`; f64 can only be read.
    pub fn create(path: &Path, dim: usize, dtype: Dtype) -> Result<Self, DatasetError> {
        let format = Format::from_path(path)?;
        if format.dtype().unwrap_or(dtype.raw()) != dtype {
            let path = path.to_path_buf();
            return Err(DatasetError::WrongDtype { path, expected: format.dtype(), dtype });
        }
        if !(1..=MAX_DIM).contains(&dim) {
            let (path, dim) = (path.to_path_buf(), dim as i128);
            return Err(DatasetError::DimOutOfRange { path, dim, looks_like: None });
        }
        let mut file = AtomicFile::create(path)?;
        file.write_all(&header(format, 0, dim, dtype))?;
        let (rounding, encoded) = (Rounding::default(), Vec::new());
        Ok(Self { file, format, dtype, dim, rows: 0, rounding, encoded })
    }

    /// Allow values to be rounded or clamped; without this they must fit as they are.
    #[must_use]
    pub fn rounding(mut self, rounding: Rounding) -> Self {
        self.rounding = rounding;
        self
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Append rows, converted to the type of the file.
    ///
    /// # Panics
    /// If `values` does not hold whole rows.
    pub fn write_f32(&mut self, values: &[f32]) -> Result<(), DatasetError> {
        whole_rows(values.len(), self.dim);
        let mut encoded = std::mem::take(&mut self.encoded);
        encoded.clear();
        self.dtype.encode(values, self.rounding, &mut encoded).map_err(|index| {
            DatasetError::Value {
                path: self.file.target().to_path_buf(),
                row: self.rows + (index / self.dim) as u64,
                component: index % self.dim,
                value: values[index],
                dtype: self.dtype,
            }
        })?;
        self.write_raw(&encoded)?;
        self.encoded = encoded;
        Ok(())
    }

    /// Append rows already in the type of the file, packed and little endian.
    ///
    /// # Panics
    /// If `bytes` does not hold whole rows.
    pub fn write_raw(&mut self, bytes: &[u8]) -> Result<(), DatasetError> {
        let row_bytes = self.dim * self.dtype.size();
        let rows = self.rows + whole_rows(bytes.len(), row_bytes) as u64;
        self.check_room(rows)?;
        if self.format.row_header() == 0 {
            self.file.write_all(bytes)?;
        } else {
            for row in bytes.chunks_exact(row_bytes) {
                self.file.write_all(&(self.dim as u32).to_le_bytes())?;
                self.file.write_all(row)?;
            }
        }
        self.rows = rows;
        Ok(())
    }

    /// Complete the file and put it in place; returns its number of rows.
    pub fn finish(self) -> Result<u64, DatasetError> {
        self.file.publish(&header(self.format, self.rows, self.dim, self.dtype))?;
        Ok(self.rows)
    }

    /// Fail if the format cannot count `rows` rows in all: hours before they are written.
    pub fn check_room(&self, rows: u64) -> Result<(), DatasetError> {
        match self.format {
            Format::Fbin | Format::U8bin | Format::I8bin | Format::F16bin
                if rows > u64::from(u32::MAX) =>
            {
                Err(DatasetError::TooManyRows { path: self.file.target().to_path_buf(), rows })
            }
            _ => Ok(()),
        }
    }
}

/// The bytes before the first row: the same number whatever the row count.
fn header(format: Format, rows: u64, dim: usize, dtype: Dtype) -> Vec<u8> {
    match format {
        Format::Npy => npy::write(rows, dim, dtype),
        Format::Fvecs | Format::Bvecs => Vec::new(),
        Format::Fbin | Format::U8bin | Format::I8bin | Format::F16bin => {
            let mut header = Vec::with_capacity(BIN_HEADER as usize);
            header.extend_from_slice(&(rows as u32).to_le_bytes());
            header.extend_from_slice(&(dim as u32).to_le_bytes());
            header
        }
    }
}
