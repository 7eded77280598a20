//! What a caller may choose, with the defaults and the reasons for them.
//!
//! Build options are stored in the index's manifest and never repeated at search time; search
//! options belong to one call.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use pageio::{Backend, Direct};

use crate::search::Cancel;

/// How two vectors are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Metric {
    /// Squared Euclidean distance; scores ascend.
    #[default]
    L2,
    /// Inner product; scores descend.
    Ip,
    /// Cosine similarity; scores descend. Zero rows score 0 and rank last.
    Cosine,
}

impl Metric {
    /// The metric of the codes: cosine is L2 on unit vectors.
    pub(crate) fn of_codes(self) -> codec::Metric {
        match self {
            Self::Ip => codec::Metric::Ip,
            Self::L2 | Self::Cosine => codec::Metric::L2,
        }
    }
}

/// What a record on SSD holds, and so what candidates are re-ranked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RecordKind {
    /// The rest of the sign code, the extra code and two factors (paper §3.1).
    #[default]
    Split,
    /// The raw floating-point vector (f16 input stays f16, integers are widened): exact re-rank.
    F32,
    /// The raw 8-bit vector (u8 or i8 input): exact re-rank.
    U8,
    /// The residual at 8 bits per dimension, each dimension rounded on its own (paper §5.5).
    Sq8,
    /// The same at 4 bits.
    Sq4,
}

impl RecordKind {
    /// Whether records hold the vector itself, so that scores are exact.
    #[must_use]
    pub fn is_exact(self) -> bool {
        match self {
            Self::F32 | Self::U8 => true,
            Self::Split | Self::Sq8 | Self::Sq4 => false,
        }
    }

    /// Whether records hold levels of scalar quantisation.
    pub(crate) fn is_scalar(self) -> bool {
        matches!(self, Self::Sq8 | Self::Sq4)
    }
}

/// How the lists nearest to a query are found (paper §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CoarseKind {
    /// Chosen from nlist when the index is built.
    #[default]
    Auto,
    /// Codes over the centroids, scanned like lists, survivors compared exactly.
    Irq,
    /// A navigable small-world graph over the centroids.
    Hnsw,
    /// Every centroid, exactly.
    Flat,
}

/// Which estimator and bound the prefix factors hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Bound {
    /// A standard deviation for each vector: epsilon means the same at every prefix length.
    #[default]
    PerVector,
    /// Equation 2 and the uniform half-width of Theorem 3.1.
    Paper,
}

/// In which order the records of a list are packed into pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ListOrder {
    /// Near vectors share pages, so that a query reads fewer.
    #[default]
    Locality,
    /// By distance to the centroid (paper §4.1).
    Distance,
}

/// What a centroid is in RAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CentroidKind {
    /// `i8`, unless lists are so tight that rounding their centroids would show.
    #[default]
    Auto,
    /// A byte for each value, with a step for each centroid: a quarter of the memory.
    I8,
    /// Floats.
    F32,
}

/// How much of each sign code stays in RAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Prefix {
    /// All of it: prefix dims = padded dim.
    #[default]
    Full,
    /// This many dims, a multiple of 64 up to the padded dim.
    Dims(usize),
    /// The largest prefix whose resident bytes stay within this many bytes.
    Memory(u64),
}

/// What to do with rows that hold NaN, infinities or an overflowing norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnInvalid {
    /// Refuse the base, naming the first bad row and the number of bad rows.
    #[default]
    Error,
    /// Leave them out; the ids of the other rows do not change.
    Skip,
}

/// Options of [`Index::build`](crate::Index::build).
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// Default [`Metric::L2`].
    pub metric: Metric,
    /// Number of inverted lists; by default n / 64, fewer where what lists take in RAM would weigh more
    /// than a tenth of all, and at most 8 √n, but not below n / 1024, the paper's rule.
    pub nlist: Option<usize>,
    /// Bits B per dimension of `split` records, 2..=9; default 9 (paper §5.1).
    pub bits: u32,
    /// Default [`RecordKind::Split`].
    pub record: RecordKind,
    /// Default [`Prefix::Full`].
    pub prefix: Prefix,
    /// Default [`CoarseKind::Auto`].
    pub coarse: CoarseKind,
    /// Default [`Bound::PerVector`].
    pub bound: Bound,
    /// Default [`ListOrder::Locality`].
    pub list_order: ListOrder,
    /// Default [`CentroidKind::Auto`].
    pub centroids: CentroidKind,
    /// Seed of the rotation, the sample and the clustering; default 42.
    pub seed: u64,
    /// Threads; default all the machine offers. The index does not depend on it.
    pub threads: usize,
    /// External ids, one u64 a row (`.npy` of u64/i64, or raw little-endian u64 after a u32 count
    /// and a u32 1 as in `.u64bin`); default the row numbers.
    pub ids: Option<Vec<u64>>,
    /// Default [`OnInvalid::Error`].
    pub on_invalid: OnInvalid,
    /// Replace an existing index at the target; default false.
    pub overwrite: bool,
    /// Most bytes the build holds in RAM; default 60 % of the machine's, or of the control group's.
    /// The index does not depend on it.
    pub build_memory: Option<u64>,
    /// Go on from where an interrupted build of the same base, options and target stopped.
    pub resume: bool,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            metric: Metric::L2,
            nlist: None,
            bits: 9,
            record: RecordKind::Split,
            prefix: Prefix::Full,
            coarse: CoarseKind::Auto,
            bound: Bound::PerVector,
            list_order: ListOrder::Locality,
            centroids: CentroidKind::Auto,
            seed: 42,
            threads: available_threads(),
            ids: None,
            on_invalid: OnInvalid::Error,
            overwrite: false,
            build_memory: None,
            resume: false,
        }
    }
}

impl BuildOptions {
    /// Every option that affects the index, in words: what a resumed build must have in common.
    pub(crate) fn identity(&self) -> String {
        let nlist = self.nlist.map_or_else(|| "auto".into(), |nlist| nlist.to_string());
        format!(
            "metric {}, nlist {nlist}, record {}, bits {}, prefix {:?}, coarse {}, bound {}, \
             list order {}, centroids {}, seed {}, on-invalid {}",
            self.metric,
            self.record,
            self.bits,
            self.prefix,
            self.coarse,
            self.bound,
            self.list_order,
            self.centroids,
            self.seed,
            self.on_invalid
        )
    }

    /// The paper's configuration (§5.1) for a base of `rows` rows: its own bound, `split` records
    /// of 9 bits, lists of 1024 rows on average in order of distance, coarse quantizer IRQ. Rotation
    /// and gamma of IRQ are the paper's in every build.
    #[must_use]
    pub fn paper(rows: u64) -> Self {
        Self {
            nlist: Some((rows / 1024).clamp(1, u64::from(u32::MAX)) as usize),
            bits: 9,
            record: RecordKind::Split,
            prefix: Prefix::Full,
            coarse: CoarseKind::Irq,
            bound: Bound::Paper,
            list_order: ListOrder::Distance,
            centroids: CentroidKind::F32,
            ..Self::default()
        }
    }
}

/// The number of threads the machine offers, at least 1.
#[must_use]
pub fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How reads are issued (paper §4.3, §4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Pipeline {
    /// One blocking read for each survivor.
    Naive,
    /// One blocking read for each page with survivors.
    Coalesced,
    /// Every page candidate read at once, harvested while the scan goes on.
    Overlapped,
    /// Page candidates by lower bound, few in flight, re-checked before each read.
    Scheduled,
    /// `scheduled`, and a drain that reads only below the alpha-quantile of the results.
    #[default]
    Full,
    /// `full` in order of arrival instead of lower bound (ablation).
    Fifo,
}

/// Where the pruning threshold starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Threshold {
    /// From the k-th smallest upper bound of the codes in RAM.
    #[default]
    Seeded,
    /// From +infinity until k records came back from SSD, as in the paper.
    Paper,
}

/// Width of the FastScan lookup tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum TableBits {
    /// 16 for `split` records, whose re-rank reuses the scan's sum; else 8.
    #[default]
    Auto,
    /// 8-bit entries: twice as fast, a wider rounding bound.
    #[serde(rename = "8")]
    Eight,
    /// 16-bit entries.
    #[serde(rename = "16")]
    Sixteen,
}

/// Options of one search. Every field but `k` and `nprobe` can stay at its default.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchOptions {
    /// Neighbours wanted, at least 1; default 10.
    pub k: usize,
    /// Lists to visit; more than nlist means all. Default 128. A search of all lists of an index of
    /// at most 10,000 rows prunes nothing, so with raw records it is exact. When the nearest `nprobe` lists hold
    /// fewer than k vectors together, the next ones are visited too.
    pub nprobe: usize,
    /// Share of the results whose distance a page must beat to be read in the drain, in (0, 1];
    /// default 0.4 (paper §4.4).
    pub alpha: f32,
    /// Reads in flight for each query; default 16 up to 16 threads, 8 above (paper §5.1).
    pub inflight: Option<usize>,
    /// Width of the bounds in standard deviations; default 1.9 (2.87 % one-sided misses).
    pub epsilon: f32,
    /// Default [`Pipeline::Full`].
    pub pipeline: Pipeline,
    /// Default [`Threshold::Seeded`].
    pub threshold: Threshold,
    /// Default [`TableBits::Auto`].
    pub table_bits: TableBits,
    /// The same ids and scores on every run whatever the timing of reads. Implies alpha 1.
    pub deterministic: bool,
    /// How long one query may take before it fails with
    /// [`SearchError::TimedOut`](crate::SearchError::TimedOut); default `None`, as long as it takes.
    pub timeout: Option<Duration>,
    /// Ends the search from another thread; default `None`.
    pub cancel: Option<Cancel>,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            k: 10,
            nprobe: 128,
            alpha: 0.4,
            inflight: None,
            epsilon: 1.9,
            pipeline: Pipeline::Full,
            threshold: Threshold::Seeded,
            table_bits: TableBits::Auto,
            deterministic: false,
            timeout: None,
            cancel: None,
        }
    }
}

impl SearchOptions {
    /// The paper's configuration (§5.1): the threshold starts from +infinity, tables have 16 bits,
    /// the drain reads below the 0.4-quantile, and 16 reads are in flight for each query up to 16
    /// threads, 8 above; of its larger lists, 32 are visited.
    #[must_use]
    pub fn paper() -> Self {
        Self {
            nprobe: 32,
            alpha: 0.4,
            inflight: None,
            epsilon: 1.9,
            pipeline: Pipeline::Full,
            threshold: Threshold::Paper,
            table_bits: TableBits::Sixteen,
            deterministic: false,
            ..Self::default()
        }
    }
}

/// Options of [`Index::open`](crate::Index::open).
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// How pages are read; default [`Backend::Auto`].
    pub backend: Backend,
    /// O_DIRECT; default [`Direct::Auto`]: where the file system allows.
    pub direct: Direct,
    /// How long a search waits for a disk that answers nothing before the query fails; default 30
    /// seconds, `None` for ever.
    pub io_timeout: Option<Duration>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            backend: Backend::Auto,
            direct: Direct::Auto,
            io_timeout: Some(Duration::from_secs(30)),
        }
    }
}

/// A name that is none of the listed ones.
#[derive(Debug, Clone, thiserror::Error)]
#[error("unknown {what} {found:?}: expected one of {expected}")]
pub struct UnknownName {
    what: &'static str,
    found: String,
    expected: &'static str,
}

macro_rules! names {
    ($type:ty, $what:literal, $list:literal, $($variant:path => $name:literal),+) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $($variant => $name),+ })
            }
        }
        impl FromStr for $type {
            type Err = UnknownName;
            fn from_str(s: &str) -> Result<Self, UnknownName> {
                match s {
                    $($name => Ok($variant),)+
                    other => Err(UnknownName { what: $what, found: other.into(), expected: $list }),
                }
            }
        }
    };
}

names!(Metric, "metric", "l2, ip, cosine",
    Metric::L2 => "l2", Metric::Ip => "ip", Metric::Cosine => "cosine");
names!(RecordKind, "record kind", "split, f32, u8, sq8, sq4",
    RecordKind::Split => "split", RecordKind::F32 => "f32", RecordKind::U8 => "u8",
    RecordKind::Sq8 => "sq8", RecordKind::Sq4 => "sq4");
names!(CoarseKind, "coarse quantizer", "auto, irq, hnsw, flat",
    CoarseKind::Auto => "auto", CoarseKind::Irq => "irq",
    CoarseKind::Hnsw => "hnsw", CoarseKind::Flat => "flat");
names!(Bound, "bound", "per-vector, paper",
    Bound::PerVector => "per-vector", Bound::Paper => "paper");
names!(ListOrder, "list order", "locality, distance",
    ListOrder::Locality => "locality", ListOrder::Distance => "distance");
names!(CentroidKind, "type of centroids", "auto, i8, f32",
    CentroidKind::Auto => "auto", CentroidKind::I8 => "i8", CentroidKind::F32 => "f32");
names!(OnInvalid, "treatment of invalid rows", "error, skip",
    OnInvalid::Error => "error", OnInvalid::Skip => "skip");
names!(Pipeline, "pipeline", "naive, coalesced, overlapped, scheduled, full, fifo",
    Pipeline::Naive => "naive", Pipeline::Coalesced => "coalesced",
    Pipeline::Overlapped => "overlapped", Pipeline::Scheduled => "scheduled",
    Pipeline::Full => "full", Pipeline::Fifo => "fifo");
names!(Threshold, "threshold", "seeded, paper",
    Threshold::Seeded => "seeded", Threshold::Paper => "paper");
names!(TableBits, "table width", "auto, 8, 16",
    TableBits::Auto => "auto", TableBits::Eight => "8", TableBits::Sixteen => "16");
