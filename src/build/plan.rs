//! What a build will make, known from the headers of its base: sizes to the byte, before the start.

use dataset::{Base, Dtype};
use serde::Serialize;

use crate::coarse::{self, Centroids};
use crate::config::{
    Bound, BuildOptions, CentroidKind, CoarseKind, ListOrder, Metric, Prefix, RecordKind,
};
use crate::error::BuildError;
use crate::store::shape::{Shape, raw_type};

/// Least rows per list of the default nlist. Fewer save no more pages, and lists begin to end inside
/// their batches of codes more often than not.
const ROWS_PER_LIST: u64 = 64;
/// Most rows per list, the paper's choice (§5.1).
const MOST_ROWS_PER_LIST: u64 = 1024;
/// Between the two, lists for each square root of the rows: training and assigning take their
/// product with the rows.
const LISTS_PER_ROOT: u64 = 8;
/// Bytes of codes and factors for each byte that a list takes in RAM, at least.
const CODES_PER_LIST: u64 = 9;

/// Most rows of a base, several times what has been searched from one disk: beyond, sizes and times
/// mean nothing.
const MAX_ROWS: u64 = 1 << 36;

/// Room for manifest.json and build.json.
const TEXT_BYTES: u64 = 16 << 10;

/// The choices of a build and what follows from them. Rows that turn out invalid or zero make the
/// index smaller than planned, never larger.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct BuildPlan {
    /// Rows of the base.
    pub n: u64,
    /// Values in a row.
    pub dim: usize,
    /// dim rounded up to a multiple of 64.
    pub padded_dim: usize,
    /// Dims of each sign code that stay in RAM.
    pub prefix_dims: usize,
    /// How vectors are compared.
    pub metric: Metric,
    /// What records hold.
    pub record: RecordKind,
    /// Bits per dimension of `split` records.
    pub bits: u32,
    /// Which bound the prefix factors hold.
    pub bound: Bound,
    /// In which order records are packed.
    pub list_order: ListOrder,
    /// Inverted lists.
    pub nlist: usize,
    /// What centroids are in RAM.
    pub centroids: CentroidKind,
    /// The coarse quantizer, resolved.
    pub coarse: CoarseKind,
    /// Inner lists of the `irq` coarse quantizer, else 0.
    pub coarse_lists: usize,
    /// Seed of everything random.
    pub seed: u64,
    /// Bytes in RAM when the index is open: codes, factors, centroids, coarse quantizer, list
    /// table, rotation. Scratch and read buffers of the threads come on top.
    pub resident_bytes: u64,
    /// Bytes on SSD that searches read from.
    pub ssd_bytes: u64,
    /// Bytes of the whole index on disk.
    pub disk_bytes: u64,
    /// Bytes of a record, its id included when it has room.
    pub record_bytes: usize,
    /// Records in a page (1 when a record takes several pages).
    pub records_per_page: usize,
    /// Pages of a record, 1 when several share a page.
    pub pages_per_record: usize,
}

/// The size and type of a base, which is all that a plan depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseShape {
    /// Rows.
    pub n: u64,
    /// Values in a row.
    pub dim: usize,
    /// Their type.
    pub dtype: Dtype,
}

impl From<&Base> for BaseShape {
    fn from(base: &Base) -> Self {
        Self { n: base.n(), dim: base.dim(), dtype: base.dtype() }
    }
}

impl BuildPlan {
    /// Plans a build of `base`.
    ///
    /// # Errors
    /// When an option cannot work with this base, or the memory budget is too small.
    pub fn new(base: &Base, o: &BuildOptions) -> Result<Self, BuildError> {
        if base.n() == 0 {
            let file = base.paths().first().map(|p| p.display().to_string()).unwrap_or_default();
            return Err(BuildError::Empty(format!("{file} holds none")));
        }
        Self::of(base.into(), o)
    }

    /// Plans a build of a base that need not exist.
    ///
    /// # Errors
    /// As [`BuildPlan::new`].
    pub fn of(base: BaseShape, o: &BuildOptions) -> Result<Self, BuildError> {
        check_options(base, o)?;
        let mut plan = Self {
            n: base.n,
            dim: base.dim,
            padded_dim: base.dim.next_multiple_of(64),
            prefix_dims: 0,
            metric: o.metric,
            record: o.record,
            bits: o.bits,
            bound: o.bound,
            list_order: o.list_order,
            nlist: 0,
            centroids: CentroidKind::F32,
            coarse: CoarseKind::Flat,
            coarse_lists: 0,
            seed: o.seed,
            resident_bytes: 0,
            ssd_bytes: 0,
            disk_bytes: 0,
            record_bytes: 0,
            records_per_page: 0,
            pages_per_record: 0,
        };
        let dtype = base.dtype.to_string();
        let (n, padded) = (base.n, plan.padded_dim);
        let lists = |plan: &mut Self, m: usize| {
            let nlist = o.nlist.unwrap_or_else(|| default_nlist(n, padded, m));
            plan.set_nlist(nlist, o);
        };
        let prefix = choose_prefix(&plan, o.prefix, &dtype, lists)?;
        lists(&mut plan, prefix);
        plan.set_prefix(prefix, &dtype);
        Ok(plan)
    }

    /// The sizes with `stored` rows in lists and `zero_rows` outside.
    pub(crate) fn shape(&self, dtype: &str, stored: u64, zero_rows: u64) -> Shape {
        Shape {
            dim: self.dim,
            padded_dim: self.padded_dim,
            prefix_dims: self.prefix_dims,
            bits: self.bits,
            metric: self.metric,
            record: self.record,
            raw: raw_type(self.record, dtype).unwrap_or(simd::RawType::F32),
            nlist: self.nlist,
            centroids: self.centroids,
            stored,
            zero_rows,
        }
    }

    /// Takes another nlist than planned, and what depends on it.
    pub(crate) fn set_nlist(&mut self, nlist: usize, o: &BuildOptions) {
        self.nlist = nlist;
        self.coarse = coarse::resolve(o.coarse, nlist);
        self.centroids = coarse::centroids(o.centroids, self.coarse);
        self.coarse_lists = coarse::inner_lists(self.coarse, nlist);
    }

    /// Takes other centroids than planned, and the prefix that they leave room for.
    pub(crate) fn set_centroids(
        &mut self,
        centroids: CentroidKind,
        base: BaseShape,
        o: &BuildOptions,
    ) -> Result<(), BuildError> {
        self.centroids = centroids;
        let dtype = base.dtype.to_string();
        // The lists are made: they stay as many whatever the prefix.
        self.set_prefix(choose_prefix(self, o.prefix, &dtype, |_, _| {})?, &dtype);
        Ok(())
    }

    fn set_prefix(&mut self, prefix_dims: usize, dtype: &str) {
        self.prefix_dims = prefix_dims;
        let shape = self.shape(dtype, self.n, 0);
        let geometry = shape.geometry();
        self.resident_bytes = resident_bytes(self, &shape);
        self.ssd_bytes = shape.ssd_bytes();
        self.disk_bytes = self.resident_bytes + self.ssd_bytes + TEXT_BYTES;
        self.record_bytes = geometry.record_bytes;
        self.records_per_page = geometry.per_unit;
        self.pages_per_record = geometry.unit_pages;
    }
}

/// The resident size as DESIGN's formula: every term is fixed by the parameters.
fn resident_bytes(plan: &BuildPlan, shape: &Shape) -> u64 {
    let rotation = codec::Rotation::new(plan.dim, plan.seed).resident_bytes() as u64;
    shape.codes_bytes()
        + shape.centroids_bytes()
        + shape.lists_bytes()
        + shape.scales_bytes()
        + shape.checks_bytes()
        + rotation
        + plan.dim as u64 * 4
        + coarse::resident_bytes(
            plan.coarse,
            plan.coarse_lists,
            plan.nlist,
            plan.padded_dim,
            plan.seed,
        )
}

/// Lists of a base of `n` rows unless told otherwise: many enough that a query scans few codes and
/// reads few pages, few enough that building stays fast and that what a list takes in RAM, a
/// centroid, its code and a table entry, is small beside the codes of its rows.
fn default_nlist(n: u64, padded_dim: usize, prefix_dims: usize) -> usize {
    let list = Centroids::bytes_for(CentroidKind::I8, padded_dim, 1) + padded_dim as u64 / 8 + 20;
    let row = prefix_dims as u64 / 8 + 12;
    let rows_per_list = (CODES_PER_LIST * list).div_ceil(row).max(ROWS_PER_LIST);
    let root = LISTS_PER_ROOT * n.isqrt();
    let nlist = (n / rows_per_list).min(root.max(n / MOST_ROWS_PER_LIST));
    nlist.clamp(1, u64::from(u32::MAX)) as usize
}

/// The prefix asked for, or the longest that the memory asked for has room for, with the lists that
/// `lists` sets for each.
fn choose_prefix(
    plan: &BuildPlan,
    prefix: Prefix,
    dtype: &str,
    lists: impl Fn(&mut BuildPlan, usize),
) -> Result<usize, BuildError> {
    let full = plan.padded_dim;
    match prefix {
        Prefix::Full => Ok(full),
        Prefix::Dims(m) if m > 0 && m <= full && m.is_multiple_of(64) => Ok(m),
        Prefix::Dims(m) => Err(BuildError::Option {
            option: "--prefix-dims",
            problem: format!(
                "{m} is not a multiple of 64 in 64..={full} (dim {} padded to {full})",
                plan.dim
            ),
        }),
        Prefix::Memory(budget) => {
            let resident = |m: usize| {
                let mut at = plan.clone();
                lists(&mut at, m);
                at.set_prefix(m, dtype);
                at.resident_bytes
            };
            (1..=full / 64)
                .rev()
                .map(|i| i * 64)
                .find(|&m| resident(m) <= budget)
                .ok_or_else(|| BuildError::Budget { budget, least: resident(64) })
        }
    }
}

fn check_options(base: BaseShape, o: &BuildOptions) -> Result<(), BuildError> {
    let wrong = |option, problem: String| Err(BuildError::Option { option, problem });
    if base.n == 0 {
        return Err(BuildError::Empty("the base holds none".into()));
    }
    if base.n > MAX_ROWS {
        return wrong("--rows", format!("{} rows are more than the {MAX_ROWS} supported", base.n));
    }
    if base.dim == 0 || base.dim > crate::MAX_DIM {
        return wrong("--dim", format!("{} is not in 1..={}", base.dim, crate::MAX_DIM));
    }
    if !(2..=9).contains(&o.bits) {
        return wrong("--bits", format!("{} is not in 2..=9", o.bits));
    }
    if o.threads == 0 {
        return wrong("--threads", "at least 1 is needed".into());
    }
    if o.coarse == CoarseKind::Hnsw && o.centroids == CentroidKind::I8 {
        return wrong("--centroids", "i8 does not go with --coarse hnsw: use f32 or auto".into());
    }
    if let Some(nlist) = o.nlist {
        let most = base.n.min(u64::from(u32::MAX));
        if nlist == 0 || nlist as u64 > most {
            return wrong("--nlist", format!("{nlist} lists for {} rows: use 1..={most}", base.n));
        }
    }
    if raw_type(o.record, &base.dtype.to_string()).is_none() {
        return wrong(
            "--record",
            format!(
                "u8 records keep 8-bit input as it is, but the base is {}; use --record f32 (exact) \
                 or --record split (compact)",
                base.dtype
            ),
        );
    }
    match &o.ids {
        Some(ids) if ids.len() as u64 != base.n => {
            wrong("--ids", format!("{} ids for {} rows: one a row is needed", ids.len(), base.n))
        }
        _ => Ok(()),
    }
}
