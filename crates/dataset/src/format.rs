//! File formats, told apart by the file's extension.
//!
//! ```text
//! .fbin .u8bin .i8bin .f16bin   u32 rows, u32 dim, then rows·dim values
//! .fvecs .bvecs                 per row: i32 dim, then dim values
//! .npy                          NumPy header (magic, version, dict), then rows·dim values
//! ```
//! Everything is little endian.

use std::path::Path;

use crate::{DatasetError, Dtype};

/// How the rows of a file are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `.fbin`: header of row count and dimension, then f32.
    Fbin,
    /// `.u8bin`: the same with u8.
    U8bin,
    /// `.i8bin`: the same with i8.
    I8bin,
    /// `.f16bin`: the same with IEEE half precision.
    F16bin,
    /// `.fvecs`: each row preceded by its dimension, f32.
    Fvecs,
    /// `.bvecs`: each row preceded by its dimension, u8.
    Bvecs,
    /// `.npy`: a two-dimensional NumPy array in C order.
    Npy,
}

impl Format {
    /// Every format, in the order error messages list them.
    pub const ALL: [Self; 7] =
        [Self::Fbin, Self::U8bin, Self::I8bin, Self::F16bin, Self::Fvecs, Self::Bvecs, Self::Npy];

    /// The format a path's extension names; case does not matter.
    pub fn from_path(path: &Path) -> Result<Self, DatasetError> {
        let extension = path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
        Self::ALL
            .into_iter()
            .find(|format| extension.as_deref() == Some(format.extension()))
            .ok_or_else(|| DatasetError::UnknownExtension { path: path.to_path_buf() })
    }

    /// The extension without its dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Fbin => "fbin",
            Self::U8bin => "u8bin",
            Self::I8bin => "i8bin",
            Self::F16bin => "f16bin",
            Self::Fvecs => "fvecs",
            Self::Bvecs => "bvecs",
            Self::Npy => "npy",
        }
    }

    /// The type of the values, where the format fixes it; `.npy` says it in its header.
    pub fn dtype(self) -> Option<Dtype> {
        match self {
            Self::Fbin | Self::Fvecs => Some(Dtype::F32),
            Self::U8bin | Self::Bvecs => Some(Dtype::U8),
            Self::I8bin => Some(Dtype::I8),
            Self::F16bin => Some(Dtype::F16),
            Self::Npy => None,
        }
    }

    /// Bytes before the values of each row: 4 where every row repeats its dimension.
    pub(crate) fn row_header(self) -> usize {
        match self {
            Self::Fvecs | Self::Bvecs => 4,
            Self::Fbin | Self::U8bin | Self::I8bin | Self::F16bin | Self::Npy => 0,
        }
    }
}
