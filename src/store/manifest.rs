//! `manifest.json`: every parameter that affects a result, and the size and checksum of every file.
//!
//! It is written last and read first: an index without a manifest that fits does not open.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::coarse;
use crate::config::{Bound, CentroidKind, CoarseKind, ListOrder, Metric, RecordKind};
use crate::error::OpenError;

/// The format this build writes and reads; see docs/FORMAT.md.
pub(crate) const FORMAT: u64 = 1;

/// Name of the manifest in an index directory.
pub(crate) const MANIFEST: &str = "manifest.json";

/// Manifests are a few KiB; a larger file is not one.
const MANIFEST_LIMIT: u64 = 1 << 20;

/// Length and CRC-32C of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileEntry {
    pub(crate) bytes: u64,
    #[serde(with = "hex")]
    pub(crate) crc32c: u32,
}

/// The manifest. All counts are checked against the files before they drive an allocation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) format: u64,
    /// 128-bit identity of parameters and data, as 32 hex digits.
    pub(crate) uuid: String,
    /// Rows of the index, zero rows included.
    pub(crate) n: u64,
    pub(crate) dim: usize,
    pub(crate) metric: Metric,
    /// Type of the input's values.
    pub(crate) dtype: String,
    pub(crate) record: RecordKind,
    pub(crate) bits: u32,
    pub(crate) prefix_dims: usize,
    pub(crate) bound: Bound,
    pub(crate) list_order: ListOrder,
    pub(crate) nlist: usize,
    pub(crate) centroids: CentroidKind,
    pub(crate) coarse: CoarseKind,
    /// Inner lists of the `irq` coarse quantizer, else 0.
    pub(crate) coarse_lists: usize,
    pub(crate) seed: u64,
    /// Mixed into every page checksum, so that pages of two builds never pass for each other.
    pub(crate) tag: u32,
    /// Zero rows under cosine: kept outside the lists.
    pub(crate) zero_rows: u64,
    /// Rows left out as invalid.
    pub(crate) skipped_rows: u64,
    /// Whether ids are the caller's (else row numbers).
    pub(crate) external_ids: bool,
    pub(crate) files: BTreeMap<String, FileEntry>,
}

impl Manifest {
    /// Reads and checks the manifest of the index at `dir`.
    pub(crate) fn read(dir: &Path) -> Result<Self, OpenError> {
        let path = dir.join(MANIFEST);
        let unreadable = |problem: String| OpenError::Unreadable { path: path.clone(), problem };
        if !dir.is_dir() {
            return Err(OpenError::Unreadable {
                path: dir.into(),
                problem: "not an index directory".into(),
            });
        }
        let found = std::fs::metadata(&path)
            .map_err(|e| unreadable(format!("not an index, or an incomplete one: {e}")))?;
        let length = found.len();
        if !found.is_file() {
            return Err(unreadable("not a regular file".into()));
        }
        if length > MANIFEST_LIMIT {
            return Err(unreadable(format!("{length} bytes are no manifest")));
        }
        let text = fs_err::read(&path).map_err(|e| unreadable(e.to_string()))?;
        let damaged = |problem: String| OpenError::Damaged { path: path.clone(), problem };
        #[derive(Deserialize)]
        struct Version {
            format: u64,
        }
        let version: Version = serde_json::from_slice(&text)
            .map_err(|e| damaged(format!("not a manifest of this format: {e}")))?;
        if version.format != FORMAT {
            return Err(OpenError::Format { path, found: version.format, expected: FORMAT });
        }
        let manifest: Self =
            serde_json::from_slice(&text).map_err(|e| damaged(format!("unreadable: {e}")))?;
        manifest.check().map_err(&damaged)?;
        // Blanks between values are outside the uuid: nothing but the text as it was written will do.
        if manifest.to_json().map_err(|e| damaged(e.to_string()))? != text {
            return Err(damaged("its text is not as it was written: it was altered".into()));
        }
        Ok(manifest)
    }

    fn check(&self) -> Result<(), String> {
        if self.dim == 0 || self.dim > crate::MAX_DIM {
            return Err(format!("dim {} is not in 1..={}", self.dim, crate::MAX_DIM));
        }
        if !coarse::goes_with(self.coarse, self.centroids) {
            return Err(format!("{} centroids with coarse {}", self.centroids, self.coarse));
        }
        let padded = self.padded_dim();
        if self.prefix_dims == 0
            || self.prefix_dims > padded
            || !self.prefix_dims.is_multiple_of(64)
        {
            return Err(format!("prefix dims {} do not fit dim {}", self.prefix_dims, self.dim));
        }
        if !(2..=9).contains(&self.bits) {
            return Err(format!("bits {} are not in 2..=9", self.bits));
        }
        if self.zero_rows > self.n {
            return Err(format!("{} zero rows of {}", self.zero_rows, self.n));
        }
        if self.nlist > u32::MAX as usize || self.nlist as u64 > self.stored().max(1) {
            return Err(format!("nlist {} for {} rows", self.nlist, self.stored()));
        }
        if let Some(name) = self.files.keys().find(|name| !super::FILES.contains(&name.as_str())) {
            return Err(format!("it lists {name:?}, which is no file of an index"));
        }
        if self.identity() != self.uuid {
            return Err(format!(
                "its uuid is {}, its content gives {}: it was altered",
                self.uuid,
                self.identity()
            ));
        }
        Ok(())
    }

    /// Rows in the lists.
    pub(crate) fn stored(&self) -> u64 {
        self.n - self.zero_rows
    }

    /// dim rounded up to a multiple of 64.
    pub(crate) fn padded_dim(&self) -> usize {
        self.dim.next_multiple_of(64)
    }

    /// The entry of a file that must be there.
    pub(crate) fn file(&self, dir: &Path, name: &str) -> Result<FileEntry, OpenError> {
        self.files.get(name).copied().ok_or_else(|| OpenError::Damaged {
            path: dir.join(MANIFEST),
            problem: format!("it does not list {name}"),
        })
    }

    /// The identity of everything but the uuid itself: FNV-1a of 128 bits over the canonical JSON.
    pub(crate) fn identity(&self) -> String {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        let blank = Self { uuid: String::new(), ..self.clone() };
        let text = serde_json::to_vec(&blank).unwrap_or_default();
        let hash = text.iter().fold(BASIS, |h, &b| (h ^ u128::from(b)).wrapping_mul(PRIME));
        format!("{hash:032x}")
    }

    /// The manifest's text. No newline ends it, so that no truncation goes unnoticed.
    pub(crate) fn to_json(&self) -> Result<Vec<u8>, std::io::Error> {
        Ok(serde_json::to_vec_pretty(self)?)
    }
}

/// Checksums as eight hex digits, as other tools print them.
mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(value: &u32, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&format!("{value:08x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<u32, D::Error> {
        let text = String::deserialize(d)?;
        u32::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}
