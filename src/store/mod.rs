//! What is on disk: one directory an index, docs/FORMAT.md in code.
//!
//! ```text
//! manifest.json   parameters, sizes, checksums; written last, read first
//! rotation.bin    the mean and the rotation                      ┐
//! lists.bin       where each list starts                         │
//! centroids.bin   rotated centroids                              ├ resident
//! coarse.bin      the coarse quantizer (not for flat)            │
//! codes.bin       prefix codes and factors, 32 vectors a batch   │
//! scales.bin      ranges of scalar records (sq8, sq4)            │
//! checks.bin      page checksums, when the pages have no room    ┘
//! records.bin     one record a vector, in pages                  ┐
//! ids.bin         ids by position, when records have no room     ├ on SSD
//! zeros.bin       ids of zero rows (cosine)                      ┘
//! build.json      seconds and peak memory of the build; outside the identity
//! ```

pub(crate) mod geometry;
pub(crate) mod regular;
pub(crate) mod manifest;
pub(crate) mod shape;
pub(crate) mod writer;
pub(crate) mod publish;
pub(crate) mod units;
pub(crate) mod parts;
pub(crate) mod verify;

pub(crate) const ROTATION: &str = "rotation.bin";
pub(crate) const LISTS: &str = "lists.bin";
pub(crate) const CENTROIDS: &str = "centroids.bin";
pub(crate) const COARSE: &str = "coarse.bin";
pub(crate) const CODES: &str = "codes.bin";
pub(crate) const SCALES: &str = "scales.bin";
pub(crate) const CHECKS: &str = "checks.bin";
pub(crate) const RECORDS: &str = "records.bin";
pub(crate) const IDS: &str = "ids.bin";
pub(crate) const ZEROS: &str = "zeros.bin";
pub(crate) const BUILD: &str = "build.json";

/// Measured operating points beside an index; outside the identity like [`BUILD`].
pub(crate) const TUNING: &str = "tuning.json";

/// Every file an index directory may hold.
const FILES: [&str; 13] = [
    manifest::MANIFEST,
    ROTATION,
    LISTS,
    CENTROIDS,
    COARSE,
    CODES,
    SCALES,
    CHECKS,
    RECORDS,
    IDS,
    ZEROS,
    BUILD,
    TUNING,
];
