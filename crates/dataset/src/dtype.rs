//! Value types, and the way from their bytes to f32 and back.
//!
//! Reading never loses anything but the tail of an f64. Writing can: [`Rounding`] says what may
//! happen to a value that the target type does not hold.

use std::fmt;
use std::str::FromStr;

use half::f16;
use half::slice::HalfFloatSliceExt;

use crate::DatasetError;

/// The type of one vector component in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// Unsigned byte.
    U8,
    /// Signed byte.
    I8,
    /// IEEE double precision: `.npy` only, and read as f32.
    F64,
}

/// What a writer may do to a value that the target type cannot hold as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rounding {
    /// Integer types take integers within their range, f16 what it does not overflow on;
    /// anything else is an error.
    #[default]
    Exact,
    /// Round to the nearest integer, ties to even; out of range is still an error.
    Nearest,
    /// Round, then clamp to the range. NaN is still an error for integer types.
    Clamp,
}

impl Dtype {
    /// Bytes of one value in a file.
    pub fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::F16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// The type raw rows are handed out in: itself, but f32 for f64.
    pub fn raw(self) -> Self {
        match self {
            Self::F64 => Self::F32,
            Self::F32 | Self::F16 | Self::U8 | Self::I8 => self,
        }
    }

    /// Convert packed little-endian values to f32.
    ///
    /// # Panics
    /// If `bytes.len() != values.len() * self.size()`.
    pub fn decode(self, bytes: &[u8], values: &mut [f32]) {
        assert_eq!(bytes.len(), values.len() * self.size(), "bytes do not match the values");
        match self {
            Self::F32 => map(bytes, values, f32::from_le_bytes),
            Self::F16 => decode_f16(bytes, values),
            Self::U8 => map(bytes, values, |[b]| f32::from(b)),
            Self::I8 => map(bytes, values, |b: [u8; 1]| f32::from(i8::from_le_bytes(b))),
            Self::F64 => map(bytes, values, |b: [u8; 8]| f64::from_le_bytes(b) as f32),
        }
    }

    /// Append the values to `bytes`, little endian. On failure the result is the index of the
    /// first value that `rounding` does not let through, and `bytes` holds those before it.
    pub fn encode(
        self,
        values: &[f32],
        rounding: Rounding,
        bytes: &mut Vec<u8>,
    ) -> Result<(), usize> {
        bytes.reserve(values.len() * self.size());
        match self {
            Self::F32 => bytes.extend(values.iter().flat_map(|v| v.to_le_bytes())),
            Self::F64 => bytes.extend(values.iter().flat_map(|&v| f64::from(v).to_le_bytes())),
            Self::F16 => return append(values, bytes, |v| to_f16(v, rounding)),
            Self::U8 => {
                return append(values, bytes, |v| {
                    to_integer(v, 0.0, 255.0, rounding).map(|v| [v as u8])
                });
            }
            Self::I8 => {
                return append(values, bytes, |v| {
                    to_integer(v, -128.0, 127.0, rounding).map(|v| (v as i8).to_le_bytes())
                });
            }
        }
        Ok(())
    }
}

fn map<const N: usize>(bytes: &[u8], values: &mut [f32], convert: impl Fn([u8; N]) -> f32) {
    let (chunks, _) = bytes.as_chunks::<N>();
    for (value, &chunk) in values.iter_mut().zip(chunks) {
        *value = convert(chunk);
    }
}

/// In blocks, so that the processor's own conversion is looked up once for many values.
fn decode_f16(bytes: &[u8], values: &mut [f32]) {
    const BLOCK: usize = 64;
    let mut halves = [f16::ZERO; BLOCK];
    for (block, values) in bytes.chunks(BLOCK * 2).zip(values.chunks_mut(BLOCK)) {
        for (half, &bytes) in halves.iter_mut().zip(block.as_chunks().0) {
            *half = f16::from_le_bytes(bytes);
        }
        halves[..values.len()].convert_to_f32_slice(values);
    }
}

fn append<const N: usize>(
    values: &[f32],
    bytes: &mut Vec<u8>,
    convert: impl Fn(f32) -> Option<[u8; N]>,
) -> Result<(), usize> {
    for (index, &value) in values.iter().enumerate() {
        bytes.extend_from_slice(&convert(value).ok_or(index)?);
    }
    Ok(())
}

fn to_f16(value: f32, rounding: Rounding) -> Option<[u8; 2]> {
    let half = f16::from_f32(value);
    let overflowed = half.is_infinite() && value.is_finite();
    match (overflowed, rounding) {
        (false, _) => Some(half.to_le_bytes()),
        (true, Rounding::Clamp) => {
            Some(if value > 0.0 { f16::MAX } else { f16::MIN }.to_le_bytes())
        }
        (true, Rounding::Exact | Rounding::Nearest) => None,
    }
}

fn to_integer(value: f32, least: f32, most: f32, rounding: Rounding) -> Option<f32> {
    let rounded = value.round_ties_even();
    match rounding {
        Rounding::Clamp => (!value.is_nan()).then(|| rounded.clamp(least, most)),
        Rounding::Exact if rounded != value => None,
        Rounding::Exact | Rounding::Nearest => (least..=most).contains(&rounded).then_some(rounded),
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::F64 => "f64",
        })
    }
}

impl FromStr for Dtype {
    type Err = DatasetError;

    fn from_str(name: &str) -> Result<Self, DatasetError> {
        [Self::F32, Self::F16, Self::U8, Self::I8, Self::F64]
            .into_iter()
            .find(|dtype| dtype.to_string() == name)
            .ok_or_else(|| DatasetError::UnknownDtype { name: name.to_owned() })
    }
}
