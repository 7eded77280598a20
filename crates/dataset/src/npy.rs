//! The header of a NumPy `.npy` file: parse and write.
//!
//! ```text
//! 0    "\x93NUMPY"
//! 6    u8 major, u8 minor
//! 8    header length: u16 (version 1) or u32 (versions 2 and 3)
//! 10   a Python dict in text, padded with spaces, ended by a newline:
//!      {'descr': '<f4', 'fortran_order': False, 'shape': (1000, 128), }
//! ...  the values, C order
//! ```
//! The parser takes exactly this dict (keys in any order) and nothing else of Python. What NumPy
//! can store and this crate cannot read is named, with the conversion that helps.

use std::fmt;

use crate::{Dtype, LooksLike};

pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

/// Longest header accepted: all of version 1's. An array of plain numbers needs under 128 bytes.
const MAX_HEADER: u64 = 65_535;

/// Bytes of a header as this crate writes it, whatever the shape: NumPy aligns data to 64.
pub(crate) const WRITTEN_HEADER: usize = 128;

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NpyHeader {
    pub(crate) rows: u64,
    pub(crate) dim: u64,
    pub(crate) dtype: Dtype,
    pub(crate) data_start: u64,
}

/// Why a NumPy file cannot be read as rows of vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NpyProblem {
    /// The file does not begin with NumPy's magic bytes.
    Magic,
    /// The file begins like one of another kind.
    OtherContent(LooksLike),
    /// A header version newer than 3.
    Version(u8),
    /// The header declares more bytes than any plain array needs.
    HeaderTooLong(u64),
    /// The file ends inside the header.
    HeaderTruncated {
        /// Bytes up to the end of the header.
        expected: u64,
        /// Bytes in the file.
        found: u64,
    },
    /// The dict is damaged.
    Syntax {
        /// Offset in the file.
        offset: usize,
        /// What should stand there.
        expected: &'static str,
    },
    /// A number of the shape does not fit 64 bits.
    ShapeOverflow,
    /// The array does not have two dimensions.
    Dimensions(usize),
    /// Values stored most significant byte first.
    BigEndian(String),
    /// Records of named fields.
    Structured,
    /// A value type that is none of f2 f4 f8 u1 i1.
    Type(String),
    /// Columns stored one after the other.
    FortranOrder,
}

impl fmt::Display for NpyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let convert = "convert with np.ascontiguousarray(x, dtype=np.float32) and save again";
        match self {
            Self::Magic => f.write_str("not a NumPy file: it does not begin with \\x93NUMPY"),
            Self::OtherContent(looks_like) => write!(f, "not a NumPy file; {looks_like}"),
            Self::Version(major) => {
                write!(f, "NumPy header version {major}, this build reads 1 to 3; {convert}")
            }
            Self::HeaderTooLong(len) => {
                write!(f, "NumPy header of {len} bytes, expected at most {MAX_HEADER}")
            }
            Self::HeaderTruncated { expected, found } => write!(
                f,
                "the NumPy header ends at byte {expected}, but the file holds {found} bytes"
            ),
            Self::Syntax { offset, expected } => {
                write!(f, "damaged NumPy header at byte {offset}: expected {expected}")
            }
            Self::ShapeOverflow => {
                f.write_str("damaged NumPy header: a number of the shape exceeds 64 bits")
            }
            Self::Dimensions(count) => write!(
                f,
                "the array has {count} dimension(s), expected 2 (rows, dim); \
                 reshape with x.reshape(n, -1) and save again"
            ),
            Self::BigEndian(descr) => {
                write!(f, "big-endian values ({descr:?}), expected little endian; {convert}")
            }
            Self::Structured => {
                f.write_str("a structured array; save the field that holds the vectors")
            }
            Self::Type(descr) => {
                write!(f, "values of type {descr:?}, expected f2 f4 f8 u1 or i1; {convert}")
            }
            Self::FortranOrder => {
                write!(f, "the array is in Fortran order, expected C order; {convert}")
            }
        }
    }
}

/// Bytes up to the end of the header, from the first 12 bytes of the file (fewer if it is
/// shorter): how much of the file [`parse`] needs to see.
pub(crate) fn header_end(head: &[u8]) -> Result<u64, NpyProblem> {
    if !head.starts_with(MAGIC) {
        return Err(NpyProblem::Magic);
    }
    let truncated = |expected| NpyProblem::HeaderTruncated { expected, found: head.len() as u64 };
    let (start, len) = match head.get(6) {
        None => return Err(truncated(8)),
        Some(1) => {
            let field = head.get(8..10).and_then(|b| b.first_chunk()).ok_or(truncated(10))?;
            (10, u64::from(u16::from_le_bytes(*field)))
        }
        Some(2 | 3) => {
            let field = head.get(8..12).and_then(|b| b.first_chunk()).ok_or(truncated(12))?;
            (12, u64::from(u32::from_le_bytes(*field)))
        }
        Some(&major) => return Err(NpyProblem::Version(major)),
    };
    if len > MAX_HEADER {
        return Err(NpyProblem::HeaderTooLong(len));
    }
    Ok(start + len)
}

/// Parse a header from the first bytes of a file.
pub(crate) fn parse(head: &[u8]) -> Result<NpyHeader, NpyProblem> {
    let end = header_end(head)?;
    let dict = usize::try_from(end)
        .ok()
        .and_then(|end| head.get(..end))
        .ok_or(NpyProblem::HeaderTruncated { expected: end, found: head.len() as u64 })?;
    let at = if head.get(6) == Some(&1) { 10 } else { 12 };
    let fields = Cursor { bytes: dict, at }.dict()?;
    let dtype = value_type(&fields.descr)?;
    let &[rows, dim] = fields.shape.as_slice() else {
        return Err(NpyProblem::Dimensions(fields.shape.len()));
    };
    if fields.fortran_order {
        return Err(NpyProblem::FortranOrder);
    }
    Ok(NpyHeader { rows, dim, dtype, data_start: end })
}

/// A header of [`WRITTEN_HEADER`] bytes.
pub(crate) fn write(rows: u64, dim: usize, dtype: Dtype) -> Vec<u8> {
    let descr = match dtype {
        Dtype::F32 => "<f4",
        Dtype::F16 => "<f2",
        Dtype::F64 => "<f8",
        Dtype::U8 => "|u1",
        Dtype::I8 => "|i1",
    };
    let dict =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {dim}), }}");
    let mut header = Vec::with_capacity(WRITTEN_HEADER);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&[1, 0]);
    header.extend_from_slice(&(WRITTEN_HEADER as u16 - 10).to_le_bytes());
    header.extend_from_slice(dict.as_bytes());
    header.resize(WRITTEN_HEADER - 1, b' ');
    header.push(b'\n');
    header
}

fn value_type(descr: &str) -> Result<Dtype, NpyProblem> {
    let (order, name) = match descr.as_bytes().first() {
        Some(b'<' | b'>' | b'=' | b'|') => descr.split_at(1),
        _ => ("=", descr),
    };
    let dtype = match name {
        "f4" => Dtype::F32,
        "f2" => Dtype::F16,
        "f8" => Dtype::F64,
        "u1" => Dtype::U8,
        "i1" => Dtype::I8,
        _ => return Err(NpyProblem::Type(descr.to_owned())),
    };
    // A single byte has no order.
    if order == ">" && dtype.size() > 1 {
        return Err(NpyProblem::BigEndian(descr.to_owned()));
    }
    Ok(dtype)
}

struct Fields {
    descr: String,
    fortran_order: bool,
    shape: Vec<u64>,
}

/// A position in the text of the dict.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn dict(mut self) -> Result<Fields, NpyProblem> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect(b'{', "'{'")?;
        while !self.take(b'}') {
            let key = self.string()?;
            self.expect(b':', "':'")?;
            match key.as_str() {
                "descr" if self.peek() == Some(b'[') => return Err(NpyProblem::Structured),
                "descr" => descr = Some(self.string()?),
                "fortran_order" => fortran_order = Some(self.truth()?),
                "shape" => shape = Some(self.tuple()?),
                _ => return self.fail("one of the keys descr, fortran_order, shape"),
            }
            if !self.take(b',') && self.peek() != Some(b'}') {
                return self.fail("',' or '}'");
            }
        }
        if self.peek().is_some() {
            return self.fail("only spaces after the dict");
        }
        match (descr, fortran_order, shape) {
            (Some(descr), Some(fortran_order), Some(shape)) => {
                Ok(Fields { descr, fortran_order, shape })
            }
            _ => self.fail("all of the keys descr, fortran_order, shape"),
        }
    }

    fn string(&mut self) -> Result<String, NpyProblem> {
        let Some(quote @ (b'\'' | b'"')) = self.peek() else {
            return self.fail("a quoted string");
        };
        let rest = &self.bytes[self.at + 1..];
        let Some(len) = rest.iter().position(|&byte| byte == quote) else {
            return self.fail("a closing quote");
        };
        self.at += len + 2;
        Ok(String::from_utf8_lossy(&rest[..len]).into_owned())
    }

    fn truth(&mut self) -> Result<bool, NpyProblem> {
        self.peek();
        for (word, value) in [(b"True".as_slice(), true), (b"False".as_slice(), false)] {
            if self.bytes[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        self.fail("True or False")
    }

    fn tuple(&mut self) -> Result<Vec<u64>, NpyProblem> {
        let mut numbers = Vec::new();
        self.expect(b'(', "'('")?;
        while !self.take(b')') {
            numbers.push(self.number()?);
            if !self.take(b',') && self.peek() != Some(b')') {
                return self.fail("',' or ')'");
            }
        }
        Ok(numbers)
    }

    /// A decimal number; Python 2 wrote an `L` behind long ones.
    fn number(&mut self) -> Result<u64, NpyProblem> {
        self.peek();
        let start = self.at;
        let mut number = 0u64;
        while let Some(digit @ b'0'..=b'9') = self.bytes.get(self.at) {
            number = number
                .checked_mul(10)
                .and_then(|n| n.checked_add(u64::from(digit - b'0')))
                .ok_or(NpyProblem::ShapeOverflow)?;
            self.at += 1;
        }
        if self.at == start {
            return self.fail("a number");
        }
        self.take(b'L');
        Ok(number)
    }

    /// The next byte that is not white space; the cursor comes to stand on it.
    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, name: &'static str) -> Result<(), NpyProblem> {
        if self.take(byte) { Ok(()) } else { self.fail(name) }
    }

    fn fail<T>(&self, expected: &'static str) -> Result<T, NpyProblem> {
        Err(NpyProblem::Syntax { offset: self.at, expected })
    }
}
