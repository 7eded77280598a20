//! One open vector file: positioned reads of whole rows.
//!
//! ```text
//! open:  stat → extension → open → head → layout (checked against the size)
//! read:  f32 without row headers   straight into the caller's slice
//!        everything else           a span of rows through a scratch buffer, row by row
//! ```

use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::FileExt;

use crate::fingerprint::FilePrint;
use crate::header::{self, Layout};
use crate::npy;
use crate::{DatasetError, Dtype, Format};

/// Most bytes of one span: large enough for the disk, small enough for many threads.
pub(crate) const SPAN_BYTES: usize = 1 << 20;

/// An open vector file. Reads take `&self` and may run on any number of threads.
#[derive(Debug)]
pub struct VectorFile {
    path: PathBuf,
    file: fs_err::File,
    format: Format,
    layout: Layout,
}

impl VectorFile {
    /// Open a file, take its format from the extension, and check its header against its size.
    pub fn open(path: &Path) -> Result<Self, DatasetError> {
        let path = path.to_path_buf();
        let (file, len) = open_regular(&path)?;
        let format = Format::from_path(&path)?;
        if len == 0 {
            return Err(DatasetError::Empty { path });
        }
        let head = read_head(&file, &path, format, len)?;
        let layout = header::layout(&path, format, &head, len)?;
        Ok(Self { path, file, format, layout })
    }

    /// The path as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The format the extension names.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Number of rows.
    pub fn n(&self) -> u64 {
        self.layout.rows
    }

    /// Values per row.
    pub fn dim(&self) -> usize {
        self.layout.dim
    }

    /// Type of the values in the file.
    pub fn dtype(&self) -> Dtype {
        self.layout.dtype
    }

    /// What tells the file from another, or from itself after a change.
    pub(crate) fn fingerprint(&self) -> Result<FilePrint, DatasetError> {
        FilePrint::of(&self.path, &self.file)
    }

    /// Read rows as f32; `out.len()` is rows · dim.
    ///
    /// # Panics
    /// If `out` does not hold whole rows.
    pub fn read_f32(&self, start: u64, out: &mut [f32]) -> Result<(), DatasetError> {
        let rows = whole_rows(out.len(), self.dim());
        if self.layout.dtype == Dtype::F32 && self.layout.row_header == 0 {
            self.check_range(start, rows as u64)?;
            read_exactly(
                &self.file,
                &self.path,
                self.offset(start),
                bytemuck::cast_slice_mut(out),
            )?;
            out.iter_mut().for_each(|v| *v = f32::from_bits(u32::from_le(v.to_bits())));
            return Ok(());
        }
        let dim = self.dim();
        self.for_each_span(start, out, dim, |values, part| {
            self.layout.dtype.decode(values, part);
        })
    }

    /// Read rows in [`Dtype::raw`] of the file's type: packed, little endian, no row headers.
    ///
    /// # Panics
    /// If `out` does not hold whole rows.
    pub fn read_raw(&self, start: u64, out: &mut [u8]) -> Result<(), DatasetError> {
        let row_bytes = self.dim() * self.dtype().raw().size();
        let rows = whole_rows(out.len(), row_bytes);
        if self.layout.row_header == 0 && self.dtype().raw() == self.dtype() {
            self.check_range(start, rows as u64)?;
            return read_exactly(&self.file, &self.path, self.offset(start), out);
        }
        self.for_each_span(start, out, row_bytes, |values, part| match self.dtype() {
            Dtype::F64 => {
                let (doubles, _) = values.as_chunks::<8>();
                let (singles, _) = part.as_chunks_mut::<4>();
                for (single, &double) in singles.iter_mut().zip(doubles) {
                    *single = (f64::from_le_bytes(double) as f32).to_le_bytes();
                }
            }
            Dtype::F32 | Dtype::F16 | Dtype::U8 | Dtype::I8 => part.copy_from_slice(values),
        })
    }

    /// Read rows into `out`, `width` elements each, through spans of at most [`SPAN_BYTES`].
    fn for_each_span<T>(
        &self,
        start: u64,
        out: &mut [T],
        width: usize,
        convert: impl Fn(&[u8], &mut [T]),
    ) -> Result<(), DatasetError> {
        let mut scratch = Vec::new();
        let rows_per_span = (SPAN_BYTES / self.layout.stride()).max(1);
        let mut row = start;
        for part in out.chunks_mut(rows_per_span * width) {
            let rows = part.len() / width;
            let span = self.span(row, rows, &mut scratch)?;
            for (values, target) in span.rows().zip(part.chunks_exact_mut(width)) {
                convert(values, target);
            }
            row += rows as u64;
        }
        Ok(())
    }

    /// Read consecutive rows as they lie in the file, and check the dimension each one states.
    pub(crate) fn span<'a>(
        &self,
        start: u64,
        rows: usize,
        scratch: &'a mut Vec<u8>,
    ) -> Result<Span<'a>, DatasetError> {
        self.check_range(start, rows as u64)?;
        let Layout { dim, row_header, .. } = self.layout;
        let stride = self.layout.stride();
        scratch.resize(rows * stride, 0);
        read_exactly(&self.file, &self.path, self.offset(start), scratch)?;
        let span = Span { bytes: scratch, stride, row_header };
        for (row, stated) in (start..).zip(span.stated_dims()) {
            if usize::try_from(stated) != Ok(dim) {
                return Err(DatasetError::RowDim {
                    path: self.path.clone(),
                    row,
                    expected: dim,
                    found: stated,
                });
            }
        }
        Ok(span)
    }

    /// Bytes from one row to the next in the file.
    pub(crate) fn stride(&self) -> usize {
        self.layout.stride()
    }

    fn offset(&self, row: u64) -> u64 {
        self.layout.data_start + row * self.layout.stride() as u64
    }

    fn check_range(&self, start: u64, rows: u64) -> Result<(), DatasetError> {
        let n = self.layout.rows;
        match start.checked_add(rows) {
            Some(end) if end <= n => Ok(()),
            _ => Err(DatasetError::RowsOutOfRange { path: self.path.clone(), start, rows, n }),
        }
    }
}

/// Rows as they lie in a file.
pub(crate) struct Span<'a> {
    bytes: &'a [u8],
    stride: usize,
    row_header: usize,
}

impl<'a> Span<'a> {
    /// The values of each row.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let header = self.row_header;
        self.bytes.chunks_exact(self.stride).map(move |row| &row[header..])
    }

    /// The values of row `index`, counted from the first of the span.
    pub(crate) fn row(&self, index: usize) -> &'a [u8] {
        let start = index * self.stride;
        &self.bytes[start + self.row_header..start + self.stride]
    }

    /// The dimension before each row; nothing where the format has none.
    fn stated_dims(&self) -> impl Iterator<Item = i32> + use<'a> {
        let stated = if self.row_header == 0 { &[] } else { self.bytes };
        stated
            .chunks_exact(self.stride)
            .filter_map(|row| row.first_chunk())
            .map(|bytes| i32::from_le_bytes(*bytes))
    }
}

/// Open a file that has a size and can be read at any position. Looking before opening matters:
/// opening a pipe would wait for its writer.
pub(crate) fn open_regular(path: &Path) -> Result<(fs_err::File, u64), DatasetError> {
    // Where even looking fails, the error of opening says it in plainer words.
    let metadata = std::fs::metadata(path)
        .or_else(|_| fs_err::File::open(path).and_then(|file| file.metadata()))?;
    if metadata.is_dir() {
        return Err(DatasetError::Directory { path: path.to_path_buf() });
    }
    if !metadata.is_file() {
        return Err(DatasetError::NotAFile { path: path.to_path_buf() });
    }
    let file = fs_err::File::open(path)?;
    let len = file.metadata()?.len();
    Ok((file, len))
}

/// The bytes [`header::layout`] wants to see.
fn read_head(
    file: &fs_err::File,
    path: &Path,
    format: Format,
    len: u64,
) -> Result<Vec<u8>, DatasetError> {
    let read = |bytes: u64| {
        let mut head = vec![0; bytes as usize];
        read_exactly(file, path, 0, &mut head).map(|()| head)
    };
    let start = read(len.min(16))?;
    match format {
        // The end is bounded by the longest header accepted.
        Format::Npy => match npy::header_end(&start) {
            Ok(end) => read(end.min(len)),
            Err(_) => Ok(start),
        },
        _ => Ok(start),
    }
}

/// Fill `out` from `offset` on; the end of the file on the way is an error that says how much
/// was there.
pub(crate) fn read_exactly(
    file: &fs_err::File,
    path: &Path,
    offset: u64,
    out: &mut [u8],
) -> Result<(), DatasetError> {
    let mut done = 0;
    while done < out.len() {
        match file.read_at(&mut out[done..], offset + done as u64) {
            Ok(0) => {
                return Err(DatasetError::Truncated {
                    path: path.to_path_buf(),
                    offset,
                    expected: out.len() as u64,
                    found: done as u64,
                });
            }
            Ok(read) => done += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Rows in a slice of `len` elements, `width` each.
pub(crate) fn whole_rows(len: usize, width: usize) -> usize {
    assert!(len.is_multiple_of(width), "a slice of {len} does not hold whole rows of {width}");
    len / width
}
