//! Building an index, in order: survey → train → assign → (scales) → encode → write → publish.

mod survey;
pub(crate) mod prepare;
mod train;
mod assign;
mod scales;
mod encode;
mod plan;

use std::path::Path;
use std::time::Instant;

use dataset::Base;
use serde::Serialize;

pub use plan::BuildPlan;

pub(crate) use encode::estimator;

use crate::coarse::{Centroids, Coarse};
use crate::config::BuildOptions;
use crate::error::BuildError;
use crate::progress::Progress;
use crate::store::manifest::{FORMAT, FileEntry, MANIFEST, Manifest};
use crate::store::publish::Draft;
use crate::store::writer::write_file;
use crate::store::{BUILD, CENTROIDS, COARSE, LISTS, ROTATION, SCALES};
use encode::Encoding;
use survey::Survey;
use train::Trained;

/// Values of a block that one thread reads at a time (4 MiB of f32).
const BLOCK_VALUES: usize = 1 << 20;

/// Rows of a block.
fn block_rows(dim: usize) -> u64 {
    (BLOCK_VALUES / dim).max(1) as u64
}

/// What a build did.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct BuildReport {
    /// Rows of the index.
    pub n: u64,
    /// Zero rows under cosine, kept outside the lists.
    pub zero_rows: u64,
    /// Rows left out as invalid.
    pub skipped_rows: u64,
    /// Seconds by stage, in order.
    pub seconds: Vec<(&'static str, f64)>,
    /// Seconds in all.
    pub total_seconds: f64,
}

/// Builds the index of `base` at `out`.
pub(crate) fn build(
    base: &Base,
    out: &Path,
    o: &BuildOptions,
    progress: &dyn Progress,
) -> Result<BuildReport, BuildError> {
    let plan = BuildPlan::new(base, o)?;
    let draft = Draft::create(out, o.overwrite)?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(o.threads)
        .build()
        .map_err(|e| BuildError::Write(std::io::Error::other(e)))?;
    let mut clock = Clock::start();

    let survey = pool.install(|| Survey::of(base, o.metric, o.on_invalid, progress))?;
    let plan = refit(plan, base, o, &survey)?;
    clock.stage("check");
    let trained = pool.install(|| train::train(base, &survey, &plan, u64::MAX, &pool, progress))?;
    clock.stage("train");
    let lists =
        pool.install(|| assign::assign(base, &survey, &trained, o.metric, &pool, progress))?;
    clock.stage("assign");

    let shape = plan.shape(&base.dtype().to_string(), survey.stored(), survey.zeros().len());
    let tag = tag(&trained, o);
    let scales = if o.record.is_scalar() {
        Some(pool.install(|| scales::train(base, &trained, &lists, &shape, o.seed))?)
    } else {
        None
    };
    let encoding = Encoding {
        base,
        trained: &trained,
        lists: &lists,
        shape,
        scales: scales.as_ref(),
        bound: o.bound,
        ids: o.ids.as_deref(),
        tag,
    };
    let mut files = pool.install(|| encoding.write(draft.path(), progress))?;
    clock.stage("encode");
    if !survey.zeros().is_empty() {
        let id = |row: u64| o.ids.as_ref().map_or(row, |ids| ids[row as usize]);
        let ids = survey.zeros().iter().map(id).collect();
        files.push(encode::write_zeros(draft.path(), tag, ids)?);
    }
    if let Some(scales) = &scales {
        files.push((SCALES, write_file(&draft.path().join(SCALES), &scales.to_bytes())?));
    }
    files.extend(write_resident(draft.path(), &lists.offsets, trained, &plan, o, &pool)?);
    let manifest = manifest(&plan, base, o, &survey, tag, files);
    clock.stage("write");
    let report = BuildReport {
        n: manifest.n,
        zero_rows: survey.zeros().len(),
        skipped_rows: survey.skipped(),
        total_seconds: clock.total(),
        seconds: clock.seconds,
    };
    write_file(
        &draft.path().join(BUILD),
        &serde_json::to_vec_pretty(&report).map_err(std::io::Error::from)?,
    )?;
    write_file(&draft.path().join(MANIFEST), &manifest.to_json()?)?;
    draft.publish()?;
    Ok(report)
}

/// Fits the plan to the rows that are left: an automatic nlist shrinks, an explicit one that no
/// longer fits is an error.
fn refit(
    mut plan: BuildPlan,
    base: &Base,
    o: &BuildOptions,
    survey: &Survey,
) -> Result<BuildPlan, BuildError> {
    let stored = survey.stored();
    if survey.zeros().is_empty() && stored == 0 {
        let file = base.paths().first().map(|p| p.display().to_string()).unwrap_or_default();
        return Err(BuildError::Empty(format!("all {} rows of {file} are invalid", base.n())));
    }
    if plan.nlist as u64 > stored {
        if o.nlist.is_some() && stored > 0 {
            return Err(BuildError::Option {
                option: "--nlist",
                problem: format!(
                    "{} lists, but only {stored} of {} rows can be listed (the others are invalid \
                     or zero): use 1..={stored}",
                    plan.nlist,
                    base.n()
                ),
            });
        }
        plan.set_nlist(stored as usize, o);
    }
    Ok(plan)
}

/// Writes what an open index holds in RAM besides its codes.
fn write_resident(
    dir: &Path,
    offsets: &[u64],
    trained: Trained,
    plan: &BuildPlan,
    o: &BuildOptions,
    pool: &rayon::ThreadPool,
) -> Result<Vec<(&'static str, FileEntry)>, BuildError> {
    let little_endian = |v: &[f32]| v.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let offsets: Vec<u8> = offsets.iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut rotation = little_endian(&trained.mean);
    rotation.extend(trained.rotation.to_bytes());
    let mut files = vec![
        (LISTS, write_file(&dir.join(LISTS), &offsets)?),
        (CENTROIDS, write_file(&dir.join(CENTROIDS), &little_endian(&trained.rotated))?),
        (ROTATION, write_file(&dir.join(ROTATION), &rotation)?),
    ];
    let centroids = Centroids {
        rows: &trained.rotated,
        dim: plan.padded_dim,
        metric: if o.metric == crate::Metric::Ip { codec::Metric::Ip } else { codec::Metric::L2 },
    };
    if plan.nlist > 0 {
        let coarse = Coarse::build(
            plan.coarse,
            centroids,
            trained.groups,
            trained.group_centroids,
            o.seed,
            pool,
        )?;
        if let Some(bytes) = coarse.to_bytes() {
            files.push((COARSE, write_file(&dir.join(COARSE), &bytes)?));
        }
    }
    Ok(files)
}

fn manifest(
    plan: &BuildPlan,
    base: &Base,
    o: &BuildOptions,
    survey: &Survey,
    tag: u32,
    files: Vec<(&'static str, FileEntry)>,
) -> Manifest {
    let mut manifest = Manifest {
        format: FORMAT,
        uuid: String::new(),
        n: survey.stored() + survey.zeros().len(),
        dim: plan.dim,
        metric: plan.metric,
        dtype: base.dtype().to_string(),
        record: plan.record,
        bits: plan.bits,
        prefix_dims: plan.prefix_dims,
        bound: plan.bound,
        nlist: plan.nlist,
        coarse: plan.coarse,
        coarse_lists: plan.coarse_lists,
        seed: plan.seed,
        tag,
        zero_rows: survey.zeros().len(),
        skipped_rows: survey.skipped(),
        external_ids: o.ids.is_some(),
        files: files.into_iter().map(|(name, entry)| (name.to_string(), entry)).collect(),
    };
    manifest.uuid = manifest.identity();
    manifest
}

/// A number that pages of this build carry in their checksums: it depends on the centroids, and so
/// on the data, the parameters and the seed.
fn tag(trained: &Trained, o: &BuildOptions) -> u32 {
    let crc = trained.rotated.iter().fold(0, |c, v| crc32c::crc32c_append(c, &v.to_le_bytes()));
    let options = format!("{:?} {} {:?} {:?} {}", o.record, o.bits, o.metric, o.bound, o.seed);
    crc32c::crc32c_append(crc, options.as_bytes())
}

/// Seconds by stage.
struct Clock {
    start: Instant,
    last: Instant,
    seconds: Vec<(&'static str, f64)>,
}

impl Clock {
    fn start() -> Self {
        let now = Instant::now();
        Self { start: now, last: now, seconds: Vec::new() }
    }

    fn stage(&mut self, name: &'static str) {
        let now = Instant::now();
        self.seconds.push((name, (now - self.last).as_secs_f64()));
        self.last = now;
    }

    fn total(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }
}
