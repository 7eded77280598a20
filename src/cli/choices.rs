//! What an index is to be: the options that `build` and `estimate` share.

use rabitq_ssd::{
    Bound, BuildOptions, BuildPlan, CentroidKind, CoarseKind, ListOrder, Metric, OnInvalid, Prefix,
    RecordKind,
};

use super::options::{Preset, at_least_1, thread_count, threads};
use super::size::{Size, grouped};
use super::table::Pairs;

/// Choices of an index and of its build.
#[derive(Debug, clap::Args)]
pub(crate) struct Choices {
    /// What options that are not given stand for: default, or paper (the paper's index: its own
    /// bound, split records of 9 bits in order of distance, vectors / 1024 lists found by irq, f32
    /// centroids)
    #[arg(long, value_name = "default|paper", default_value_t = Preset::Default)]
    preset: Preset,
    /// l2 (squared Euclidean), ip (inner product) or cosine
    #[arg(long, value_name = "l2|ip|cosine", default_value_t = Metric::L2)]
    pub(crate) metric: Metric,
    /// Inverted lists [default: vectors / 64, fewer where lists would weigh more than a tenth of the
    /// resident size; at most 8 √vectors, at least vectors / 1024]
    #[arg(long, value_name = "N", value_parser = at_least_1, allow_negative_numbers = true)]
    nlist: Option<usize>,
    /// Bits per dimension of split records, 2 to 9: more bits, better re-ranking, larger records
    /// [default: 9]
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u32).range(2..=9),
          allow_negative_numbers = true)]
    bits: Option<u32>,
    /// What a record on disk holds: split (codes), f32 or u8 (the raw vector, exact re-ranking),
    /// sq8 or sq4 (each dim rounded to 8 or 4 bits, for comparison) [default: split]
    #[arg(long, value_name = "split|f32|u8|sq8|sq4")]
    record: Option<RecordKind>,
    /// Sign bits of each vector kept in RAM, a multiple of 64
    /// [default: all dims, rounded up to a multiple of 64]
    #[arg(long, value_name = "M", value_parser = at_least_1, conflicts_with = "memory",
          allow_negative_numbers = true)]
    prefix_dims: Option<usize>,
    /// Choose the most prefix dims whose resident size stays within this: 2GiB, 512MiB, 1.5GB, or
    /// bytes
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    memory: Option<Size>,
    /// How the lists near a query are found: auto, irq (codes), hnsw (graph) or flat (all, exactly)
    /// [default: auto]
    #[arg(long, value_name = "NAME")]
    coarse: Option<CoarseKind>,
    /// Error bound of the codes: per-vector, or paper (one width for all) [default: per-vector]
    #[arg(long, value_name = "per-vector|paper")]
    bound: Option<Bound>,
    /// Order of the records of a list: locality (near vectors share pages), or distance (to the
    /// centroid, as in the paper) [default: locality]
    #[arg(long, value_name = "locality|distance")]
    list_order: Option<ListOrder>,
    /// Centroids in RAM: i8 (a byte a value), f32, or auto (i8 unless lists are too tight for it)
    /// [default: auto]
    #[arg(long, value_name = "auto|i8|f32")]
    centroids: Option<CentroidKind>,
    /// Seed of the rotation, the sample and the clustering
    #[arg(long, value_name = "S", default_value_t = 42, allow_negative_numbers = true)]
    seed: u64,
    /// Threads [default: all]
    #[arg(long, value_name = "T", value_parser = thread_count, allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Most memory the build holds, a hard limit: 1GiB, 512MiB, or bytes; the index is the same
    /// whatever it is [default: 60 % of the machine's memory, or of the control group's]
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    build_memory: Option<Size>,
    /// Rows with NaN, infinities or overflowing norms: error, or skip (leave them out; the ids of
    /// the others do not change)
    #[arg(long, value_name = "error|skip", default_value_t = OnInvalid::Error)]
    on_invalid: OnInvalid,
}

impl Choices {
    /// The options given, and the preset's for a base of `rows` rows where none was.
    pub(crate) fn options(&self, rows: u64) -> BuildOptions {
        let preset = self.preset.build(rows);
        let prefix = match (self.prefix_dims, self.memory) {
            (Some(dims), _) => Prefix::Dims(dims),
            (None, Some(memory)) => Prefix::Memory(memory.0),
            (None, None) => preset.prefix,
        };
        BuildOptions {
            metric: self.metric,
            nlist: self.nlist.or(preset.nlist),
            bits: self.bits.unwrap_or(preset.bits),
            record: self.record.unwrap_or(preset.record),
            prefix,
            coarse: self.coarse.unwrap_or(preset.coarse),
            bound: self.bound.unwrap_or(preset.bound),
            list_order: self.list_order.unwrap_or(preset.list_order),
            centroids: self.centroids.unwrap_or(preset.centroids),
            seed: self.seed,
            threads: threads(self.threads),
            on_invalid: self.on_invalid,
            build_memory: self.build_memory.map(|size| size.0),
            ..BuildOptions::default()
        }
    }
}

/// What the index will be, for people.
pub(crate) fn describe(plan: &BuildPlan, dtype: impl std::fmt::Display) -> Pairs {
    let mut pairs = Pairs::default();
    pairs
        .add("vectors", format!("{} x {} {dtype}, {}", grouped(plan.n), plan.dim, plan.metric))
        .add("lists", format!("{}, found by {}", grouped(plan.nlist as u64), plan.coarse))
        .add("in RAM", format!("{} of {} sign bits each", plan.prefix_dims, plan.padded_dim))
        .add("records", records(plan))
        .add("resident size", Size(plan.resident_bytes).exact())
        .add("on SSD", Size(plan.ssd_bytes).exact());
    pairs
}

fn records(plan: &BuildPlan) -> String {
    let kind = match plan.record {
        RecordKind::Split => format!("split, {} bits per dim", plan.bits),
        kind => kind.to_string(),
    };
    let packing = match plan.pages_per_record {
        0 | 1 => format!("{} a page", plan.records_per_page),
        pages => format!("{pages} pages each"),
    };
    format!("{kind}: {} bytes, {packing}", plan.record_bytes)
}
