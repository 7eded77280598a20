//! Building an index, in order:
//!
//! ```text
//! survey ─▶ train ─▶ assign ─▶ balance ─▶ (scales) ─▶ encode ─▶ merge ─▶ write ─▶ publish
//!       ✓        ✓                    ✓          ✓ each run               checkpoints
//! ```
//! Every stage passes over the base front to back, within the memory that `memory.rs` divides.
//! What is done is written down (`checkpoint.rs`), so that a stopped build goes on from there.

mod memory;
mod space;
mod waves;
mod checkpoint;
mod survey;
pub(crate) mod prepare;
mod train;
mod assign;
mod balance;
mod grouping;
mod lists;
mod scales;
mod encode;
mod runs;
mod spill;
mod locality;
mod merge;
mod resident;
mod plan;
mod clock;
mod estimate;
#[cfg(test)]
mod tests;

use std::path::Path;

use dataset::Base;

pub use clock::{BuildReport, StageReport};
pub use estimate::{BuildSeconds, Estimate};
pub use memory::default_build_memory;
pub use plan::{BaseShape, BuildPlan};

pub(crate) use encode::estimator;

use crate::config::{BuildOptions, CentroidKind};
use crate::error::BuildError;
use crate::progress::Progress;
use crate::store::manifest::{MANIFEST, Manifest};
use crate::store::publish::Draft;
use crate::store::writer::write_file;
use crate::store::{BUILD, SCALES};
use assign::{Assignment, Rows};
use checkpoint::Checkpoint;
use clock::Clock;
use encode::Encoding;
use lists::Lists;
use memory::Memory;
use merge::Merge;
use resident::{manifest, tag, write_resident};
use survey::Survey;
use train::Trained;

/// Names of files of the scratch.
const SURVEY: &str = "survey.bin";
const TRAINED: &str = "trained.bin";
const ASSIGNMENT: &str = "assignment.bin";
const COUNTS: &str = "lists.bin";

/// Reports progress, and ends the work when it is cancelled.
pub(crate) struct Watch<'a>(&'a dyn Progress);

impl Watch<'_> {
    pub(crate) fn update(
        &self,
        stage: &'static str,
        done: u64,
        total: u64,
    ) -> Result<(), BuildError> {
        self.show(stage, done, total);
        self.cancelled()
    }

    /// Only reports.
    pub(crate) fn show(&self, stage: &'static str, done: u64, total: u64) {
        self.0.update(stage, done, total);
    }

    /// An error when the work is to stop.
    pub(crate) fn cancelled(&self) -> Result<(), BuildError> {
        if self.0.cancelled() { Err(BuildError::Interrupted { resumable: false }) } else { Ok(()) }
    }
}

/// Builds the index of `base` at `out`.
pub(crate) fn build(
    base: &Base,
    out: &Path,
    o: &BuildOptions,
    progress: &dyn Progress,
) -> Result<BuildReport, BuildError> {
    let plan = BuildPlan::new(base, o)?;
    let memory = Memory::plan(base.dtype(), &plan, o, cap(o))?;
    build_within(memory, plan, base, out, o, progress)
}

/// The same with the memory divided already.
fn build_within(
    memory: Memory,
    plan: BuildPlan,
    base: &Base,
    out: &Path,
    o: &BuildOptions,
    progress: &dyn Progress,
) -> Result<BuildReport, BuildError> {
    let mut draft = Draft::create(out, o.overwrite, o.resume)?;
    let checkpoint = if o.resume {
        Checkpoint::resume(base, o, draft.scratch())?
    } else {
        Checkpoint::start(base, o, draft.scratch())?
    };
    draft.remove_on_drop();
    draft.clear_files()?;
    let room = space::needed(base.dtype(), &plan, &memory);
    space::check(draft.path(), room, &checkpoint)?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(o.threads)
        .build()
        .map_err(|e| BuildError::Write(std::io::Error::other(e)))?;
    let watch = Watch(progress);
    let mut job =
        Job { base, o, memory, draft, checkpoint, pool, watch, clock: Clock::start(o.resume) };
    match job.run(plan) {
        Ok((manifest, survey)) => job.publish(&manifest, &survey),
        Err(error) => Err(job.failed(error, room)),
    }
}

/// The memory a build may hold.
fn cap(o: &BuildOptions) -> u64 {
    o.build_memory.unwrap_or_else(default_build_memory)
}

/// A build under way.
struct Job<'a> {
    base: &'a Base,
    o: &'a BuildOptions,
    memory: Memory,
    draft: Draft,
    checkpoint: Checkpoint,
    pool: rayon::ThreadPool,
    watch: Watch<'a>,
    clock: Clock,
}

impl Job<'_> {
    /// Everything up to the manifest.
    fn run(&mut self, plan: BuildPlan) -> Result<(Manifest, Survey), BuildError> {
        let (base, o) = (self.base, self.o);
        let survey = self.survey()?;
        let mut plan = refit(plan, base, o, &survey)?;
        let mut trained = self.train(&survey, &plan)?;
        let counts = self.assign(&survey, &mut trained, &plan)?;
        let assignment = Assignment::open(&self.checkpoint.path(ASSIGNMENT), base.n())?;
        // Where the memory asked for has no room for floats, tight lists go without them.
        let floats = plan.clone().set_centroids(CentroidKind::F32, base.into(), o);
        let asked = if floats.is_ok() { o.centroids } else { plan.centroids };
        let rotation = &trained.rotation;
        let centroids = std::mem::take(&mut trained.centroids);
        let lists =
            Lists::new(&centroids, &counts, &assignment, asked, rotation, &plan, &self.pool)?;
        drop(centroids);
        if lists.centroids.kind() != plan.centroids {
            plan.set_centroids(lists.centroids.kind(), base.into(), o)?;
        }

        let shape = plan.shape(&base.dtype().to_string(), survey.stored(), survey.zeros().len());
        let tag = tag(&lists, o)?;
        let scales = if o.record.is_scalar() {
            let train = || scales::train(base, &trained, &lists, &assignment, &shape, o.seed);
            Some(self.pool.install(train)?)
        } else {
            None
        };
        let encoding = Encoding {
            base,
            trained: &trained,
            lists: &lists,
            assignment: &assignment,
            shape,
            scales: scales.as_ref(),
            bound: o.bound,
            memory: &self.memory,
            pool: &self.pool,
        };
        let runs = encoding.run(&mut self.checkpoint, &self.watch)?;
        self.clock.stage("encode");
        let dir = self.draft.path();
        let merge = Merge { shape, tag, ids: o.ids.as_deref(), order: o.list_order };
        let mut files = self.pool.install(|| merge.write(runs, dir, &self.watch))?;
        self.clock.stage("merge");
        if !survey.zeros().is_empty() {
            files.push(encode::write_zeros(dir, tag, survey.zeros(), o.ids.as_deref())?);
        }
        if let Some(scales) = &scales {
            files.push((SCALES, write_file(&dir.join(SCALES), &scales.to_bytes())?));
        }
        files.extend(write_resident(dir, &trained, lists, &plan, o, &self.pool)?);
        Ok((manifest(&plan, base, o, &survey, tag, files), survey))
    }

    fn survey(&mut self) -> Result<Survey, BuildError> {
        if let Some(entry) = self.checkpoint.done.survey {
            let bytes = self.checkpoint.read(SURVEY, entry)?;
            return Survey::from_bytes(self.base.n(), &bytes)
                .ok_or_else(|| checkpoint::damaged(&self.checkpoint.path(SURVEY)));
        }
        let (o, waves) = (self.o, self.memory.waves);
        let survey = Survey::of(self.base, o.metric, o.on_invalid, waves, &self.pool, &self.watch)?;
        self.checkpoint.done.survey = Some(self.checkpoint.write(SURVEY, &survey.to_bytes())?);
        self.checkpoint.save()?;
        self.clock.stage("check");
        Ok(survey)
    }

    fn train(&mut self, survey: &Survey, plan: &BuildPlan) -> Result<Trained, BuildError> {
        if let Some(entry) = self.checkpoint.done.trained {
            let bytes = self.checkpoint.read(TRAINED, entry)?;
            return Trained::from_bytes(plan, &bytes)
                .ok_or_else(|| checkpoint::damaged(&self.checkpoint.path(TRAINED)));
        }
        let trained = train::train(
            self.base,
            survey,
            plan,
            self.memory.train_bytes,
            &self.pool,
            &self.watch,
        )?;
        self.checkpoint.done.trained = Some(self.checkpoint.write(TRAINED, &trained.to_bytes())?);
        self.checkpoint.save()?;
        self.clock.stage("train");
        Ok(trained)
    }

    /// Places every row; returns the rows of each list. Centroids of lists that were split move.
    fn assign(
        &mut self,
        survey: &Survey,
        trained: &mut Trained,
        plan: &BuildPlan,
    ) -> Result<Vec<u64>, BuildError> {
        let path = self.checkpoint.path(ASSIGNMENT);
        if let Some((assignment, lists)) = self.checkpoint.done.assigned {
            checkpoint::check_length(&path, assignment)?;
            let assigned = Assignment::open(&path, self.base.n())?;
            if assigned.seal()? != assignment {
                return Err(checkpoint::damaged(&path));
            }
            let bytes = self.checkpoint.read(COUNTS, lists)?;
            let damaged = || checkpoint::damaged(&self.checkpoint.path(COUNTS));
            let (counts, centroids) = lists::counts_from_bytes(plan, &bytes).ok_or_else(damaged)?;
            let placed = assigned.counts(plan.nlist)?;
            if placed != counts || placed.iter().sum::<u64>() != survey.stored() {
                return Err(damaged());
            }
            trained.centroids = centroids;
            return Ok(counts);
        }
        checkpoint::remove_if_there(&path)?;
        let waves = self.memory.waves;
        let metric = self.o.metric;
        let rows = Rows { base: self.base, survey, metric, mean: &trained.mean, waves };
        let assigned = assign::assign(rows, &trained.centroids, &path, &self.pool, &self.watch)?;
        self.clock.stage("assign");
        let assignment = Assignment::open(&path, self.base.n())?;
        let with = balance::Training {
            seed: self.o.seed,
            spare: self.memory.balance_spare,
            pool: &self.pool,
            watch: &self.watch,
        };
        let balanced = balance::balance(rows, &mut trained.centroids, &assignment, with)?;
        let entry = if balanced.moved { assignment.seal()? } else { assigned };
        let bytes = lists::counts_to_bytes(&balanced.counts, &trained.centroids);
        self.checkpoint.done.assigned = Some((entry, self.checkpoint.write(COUNTS, &bytes)?));
        self.checkpoint.save()?;
        self.clock.stage("balance");
        Ok(balanced.counts)
    }

    fn publish(mut self, manifest: &Manifest, survey: &Survey) -> Result<BuildReport, BuildError> {
        self.clock.stage("write");
        let report = self.clock.report(manifest.n, survey, self.memory.peak);
        let text = serde_json::to_vec_pretty(&report).map_err(std::io::Error::from)?;
        write_file(&self.draft.path().join(BUILD), &text)?;
        write_file(&self.draft.path().join(MANIFEST), &manifest.to_json()?)?;
        self.draft.publish()?;
        Ok(report)
    }

    /// What a failure means: cancelled work stays for `--resume`, everything else is removed.
    fn failed(self, error: BuildError, room: space::Room) -> BuildError {
        let cancelled = self.watch.0.cancelled();
        match error {
            BuildError::Interrupted { .. } | BuildError::Cluster(_) | BuildError::Dataset(_)
                if cancelled =>
            {
                let resumable = self.checkpoint.done.trained.is_some();
                if resumable {
                    self.draft.keep();
                }
                BuildError::Interrupted { resumable }
            }
            error => space::explain(error, self.draft.path(), room),
        }
    }
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
