//! Vectors in from files larger than memory: formats, validation, samples, synthetic data,
//! ground truth files.
//!
//! ```text
//! path ─ Format ─ VectorFile ─┐
//! path ─ Format ─ VectorFile ─┼─ Base ── read_f32 / read_raw / gather_f32 ── check_rows
//! path ─ Format ─ VectorFile ─┘             │
//!                                           └─ convert ─ VectorWriter ─ file, published whole
//! ```
//!
//! * [`Base`] presents one file or several as one array of rows. Reads are positioned
//!   (`pread`), never mapped, so any number of threads may share it and a file that shrinks
//!   underneath is an error instead of a signal.
//! * Every header is checked against the real size of its file before it is believed: no count
//!   read from a file drives an allocation.
//! * [`check_rows`] finds what arithmetic on the rows could not survive.
//! * [`VectorWriter`], [`GroundTruth::write`] and [`synth::generate`] write beside the target
//!   and rename: a file is either complete or absent.
//!
//! It is not a general array library: rows are dense, fixed in dimension, and read-only.

#![forbid(unsafe_code)]

mod format;
mod dtype;
mod header;
mod npy;
mod file;
mod base;
mod fingerprint;
mod check;
mod rowset;
mod atomic;
mod writer;
mod convert;
mod truth;
mod rng;
mod sample;
pub mod synth;
mod error;

pub use base::Base;
pub use check::{
    Invalid, InvalidReason, MAX_SQUARED_NORM, MIN_NORM, MIN_SQUARED_NORM, RowCheck, check_rows,
    precise_squared_norm,
};
pub use convert::convert;
pub use dtype::{Dtype, Rounding};
pub use error::{DatasetError, LooksLike};
pub use file::VectorFile;
pub use fingerprint::Fingerprint;
pub use format::Format;
pub use npy::NpyProblem;
pub use rowset::{RowSet, RowSetDamage};
pub use sample::sample_rows;
pub use truth::GroundTruth;
pub use writer::VectorWriter;

/// The largest dimension a file may declare; anything above is taken for a damaged header.
pub const MAX_DIM: usize = 65_536;
