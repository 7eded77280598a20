//! From vector to code and back to an estimate: rotation, sign code, extra code, factors, bounds.
//!
//! The modules follow the life of a vector. At build time a residual is rotated, its signs become a
//! code of one bit per dimension with three factors, and the remaining bits and two more factors
//! become a record. At query time the rotated query becomes a lookup table, 32 prefix codes at a
//! time become lower bounds, and the records of the survivors become distance estimates.
//!
//! ```text
//! build:   x - c -> rotate -> sign  -> prefix code + Factors   (PrefixCodes, in memory)
//!                          -> extra -> suffix bits, levels, 2 factors (SplitRecord, on disk)
//!                          -> ranges -> levels, 1 factor              (ScalarRecord, instead)
//! search:  q -> rotate -> query (tables) -> scan (bounds) -> tight -> record (estimate)
//! ```
//!
//! Words used throughout: `r = R(x - c)` is the rotated residual, `N` its norm, `P` the padded dim,
//! `m` the prefix dims, `y = R(q - c)`, `Y` its norm, `S_m(v)` the sum of `sign(r_j) v_j` over the
//! first `m` dims. Distances are squared L2, or minus the inner product, so smaller is nearer.
//!
//! Everything here is pure: no I/O, no threads, and no allocation in the per-vector calls.
#![forbid(unsafe_code)]

mod rotate;
mod metric;
mod sums;
mod sign;
mod extra;
mod record;
mod encode;
mod ranges;
mod scalar;
mod prefix;
mod query;
mod scan;
mod tight;

pub use encode::Encoder;
pub use extra::{ExtraCode, ExtraFactors};
pub use metric::{Estimator, Metric};
pub use prefix::{BATCH, PrefixCodes, PrefixSizeError};
pub use query::{Query, TableBits};
pub use ranges::{ScalarRange, ScalarRanges, ScalarRangesError};
pub use record::SplitRecord;
pub use rotate::{Rotation, RotationError};
pub use scalar::{ScalarEncoder, ScalarQuery, ScalarRecord};
pub use scan::{ListTerms, Scan, Thresholds};
pub use sign::{Factors, prefix_factors, sign_code};
pub use tight::TightBound;
