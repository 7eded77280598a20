//! What every experiment works with: the data, indexes that are built once and kept, operating
//! points that are searched for once, and a file that every measured row goes to.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use rabitq_ssd::dataset::{Base, GroundTruth};
use rabitq_ssd::evaluate::{BenchRow, RecallCurve, Repeat, Setting, Trial, Truth};
use rabitq_ssd::{
    BuildOptions, BuildPlan, Index, IndexInfo, Metric, OpenOptions, Pipeline, SearchOptions,
};
use serde::Serialize;
use serde_json::Value;
use std::io::Write;

use super::stages::Stages;
use crate::cli::bench::read_ceiling;
use crate::cli::console::Console;
use crate::cli::options::Preset;
use crate::cli::progress::Reporter;
use crate::cli::report;

/// No further round of a row begins after this time, as slow rows differ by more than rounds do.
const ROW_BUDGET: Duration = Duration::from_secs(15);

/// A base, queries and their neighbours.
pub(crate) struct Data {
    pub(crate) name: String,
    pub(crate) base: Base,
    pub(crate) queries: Vec<f32>,
    pub(crate) neighbours: GroundTruth,
    pub(crate) truth: Truth,
}

/// An index of some data.
pub(crate) struct Subject {
    /// Name of its directory.
    pub(crate) name: String,
    pub(crate) index: Index,
    pub(crate) info: IndexInfo,
    pub(crate) data: Rc<Data>,
    /// Seconds of each stage of its build, and of all.
    pub(crate) seconds: Vec<(String, f64)>,
    pub(crate) total_seconds: f64,
}

impl Subject {
    pub(crate) fn trial(&self) -> Trial<'_> {
        Trial::new(&self.index, &self.info, &self.data.queries, &self.data.truth)
    }
}

/// Everything of a search but nprobe and threads.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    pub(crate) options: SearchOptions,
}

impl Search {
    /// The preset's search for k neighbours.
    pub(crate) fn of(preset: Preset, k: usize) -> Self {
        Self { options: SearchOptions { k, ..preset.search() } }
    }

    pub(crate) fn pipeline(mut self, pipeline: Pipeline) -> Self {
        self.options.pipeline = pipeline;
        self
    }

    pub(crate) fn alpha(mut self, alpha: f32) -> Self {
        self.options.alpha = alpha;
        self
    }

    pub(crate) fn inflight(mut self, reads: usize) -> Self {
        self.options.inflight = Some(reads);
        self
    }

    pub(crate) fn deterministic(mut self) -> Self {
        (self.options.deterministic, self.options.alpha) = (true, 1.0);
        self
    }

    pub(crate) fn on(&self, threads: usize) -> Setting {
        Setting { options: self.options.clone(), threads }
    }
}

/// The least nprobe that reaches a recall, or all lists where none does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) nprobe: usize,
    pub(crate) reached: bool,
}

/// What holds for every experiment of a run.
pub(crate) struct Conditions {
    pub(crate) metric: Metric,
    pub(crate) quick: bool,
    /// Ascending.
    pub(crate) threads: Vec<usize>,
    pub(crate) open: OpenOptions,
}

pub(crate) struct Lab<'a> {
    pub(crate) console: &'a Console,
    pub(crate) reporter: Reporter,
    pub(crate) data: Rc<Data>,
    pub(crate) metric: Metric,
    pub(crate) dir: PathBuf,
    pub(crate) quick: bool,
    /// Ascending; the last one also searches for operating points.
    pub(crate) threads: Vec<usize>,
    pub(crate) open: OpenOptions,
    pub(crate) stages: Stages,
    results: fs_err::File,
    curves: HashMap<String, RecallCurve>,
    /// What the disk gives, measured once for each experiment.
    ceiling: Option<f64>,
    /// The index opened first: how all of them are read.
    opened: OnceCell<IndexInfo>,
}

/// One row of the results file.
#[derive(Serialize)]
struct Line<'a, T> {
    experiment: &'a str,
    index: &'a str,
    #[serde(flatten)]
    row: &'a T,
}

impl<'a> Lab<'a> {
    pub(crate) fn new(
        console: &'a Console,
        data: Data,
        dir: &Path,
        conditions: Conditions,
        stages: Stages,
    ) -> anyhow::Result<Self> {
        let Conditions { metric, quick, threads, open } = conditions;
        fs_err::create_dir_all(dir)?;
        Ok(Self {
            console,
            reporter: Reporter::new(console),
            data: Rc::new(data),
            metric,
            dir: dir.into(),
            quick,
            threads,
            open,
            stages,
            results: fs_err::File::create(dir.join("results.jsonl"))?,
            curves: HashMap::new(),
            ceiling: None,
            opened: OnceCell::new(),
        })
    }

    /// The k of the paper that the ground truth holds.
    pub(crate) fn ks(&self, wanted: &[usize]) -> Vec<usize> {
        wanted.iter().copied().filter(|&k| k <= self.data.truth.k()).collect()
    }

    /// The most threads.
    pub(crate) fn most_threads(&self) -> usize {
        self.threads.last().copied().unwrap_or(1)
    }

    /// Quarters of the padded dims, as prefix dims: a multiple of 64, at least 64.
    pub(crate) fn prefix_dims(&self, quarters: usize) -> usize {
        let padded = self.data.base.dim().next_multiple_of(64);
        (padded * quarters / 4).next_multiple_of(64).clamp(64, padded)
    }

    /// The index of the lab's data that the preset, changed by `change`, describes.
    pub(crate) fn subject(
        &self,
        name: &str,
        preset: Preset,
        change: impl FnOnce(&mut BuildOptions),
    ) -> anyhow::Result<Subject> {
        self.subject_of(&self.data, name, preset, change)
    }

    /// The same for any data. An index that is there already and was built so is used again.
    pub(crate) fn subject_of(
        &self,
        data: &Rc<Data>,
        name: &str,
        preset: Preset,
        change: impl FnOnce(&mut BuildOptions),
    ) -> anyhow::Result<Subject> {
        let mut options = preset.build(data.base.n());
        options.metric = self.metric;
        options.overwrite = true;
        change(&mut options);
        let name = format!("{}-{preset}{name}.index", data.name);
        let path = self.dir.join(&name);
        let plan = BuildPlan::new(&data.base, &options)?;
        let known = Index::open(&path, &self.open).ok().filter(|i| is_as_planned(&i.info(), &plan));
        let index = match known {
            Some(index) => index,
            None => {
                Index::build(&data.base, &path, &options, &self.reporter)?;
                self.reporter.pause();
                Index::open(&path, &self.open)?
            }
        };
        let report: Report = serde_json::from_slice(&fs_err::read(path.join("build.json"))?)?;
        let info = index.info();
        self.opened.get_or_init(|| info.clone());
        Ok(Subject {
            name,
            index,
            info,
            data: Rc::clone(data),
            seconds: report.stages.into_iter().map(|s| (s.stage, s.seconds)).collect(),
            total_seconds: report.total_seconds,
        })
    }

    /// The least nprobe that reaches `recall`.
    pub(crate) fn point(
        &mut self,
        subject: &Subject,
        search: &Search,
        recall: f64,
    ) -> anyhow::Result<Point> {
        let setting = search.on(self.most_threads());
        let curve = self.curves.entry(key(subject, search)).or_default();
        let found = subject.trial().least_nprobe(recall, &setting, curve)?;
        Ok(Point { nprobe: found.unwrap_or(subject.info.nlist), reached: found.is_some() })
    }

    /// Measure at an nprobe.
    pub(crate) fn measure(
        &mut self,
        experiment: &str,
        subject: &Subject,
        search: &Search,
        threads: usize,
        nprobe: usize,
    ) -> anyhow::Result<BenchRow> {
        let row = self.unrecorded(subject, search, threads, nprobe)?;
        self.record(experiment, &subject.name, &row)?;
        Ok(row)
    }

    /// Measure at the least nprobe that reaches `recall`; `target_recall` of the row says whether
    /// one does.
    pub(crate) fn measure_at(
        &mut self,
        experiment: &str,
        subject: &Subject,
        search: &Search,
        threads: usize,
        recall: f64,
    ) -> anyhow::Result<BenchRow> {
        let point = self.point(subject, search, recall)?;
        let mut row = self.unrecorded(subject, search, threads, point.nprobe)?;
        row.target_recall = point.reached.then_some(recall);
        self.record(experiment, &subject.name, &row)?;
        Ok(row)
    }

    /// Measure, and leave it to the caller to record.
    pub(crate) fn unrecorded(
        &mut self,
        subject: &Subject,
        search: &Search,
        threads: usize,
        nprobe: usize,
    ) -> anyhow::Result<BenchRow> {
        self.reporter.pause();
        if self.ceiling.is_none() {
            self.ceiling = read_ceiling(&subject.index, &subject.info)?;
        }
        let repeat = Repeat { rounds: if self.quick { 1 } else { 3 }, warmup: !self.quick };
        let setting = search.on(threads).at(nprobe);
        let row = subject.trial().measure_within(&setting, repeat, ROW_BUDGET)?;
        Ok(row.under_ceiling(self.ceiling))
    }

    /// Everything known of recall against nprobe of an index and a search, measured once more.
    pub(crate) fn curve(
        &mut self,
        experiment: &str,
        subject: &Subject,
        search: &Search,
        threads: usize,
        from: f64,
    ) -> anyhow::Result<Vec<BenchRow>> {
        let curve = self.curves.entry(key(subject, search)).or_default();
        let known: Vec<usize> =
            curve.points().filter(|&(_, recall)| recall >= from).map(|(n, _)| n).collect();
        let mut rows = Vec::new();
        let mut last = 0;
        for nprobe in known {
            // Bisection leaves points closer together than a curve needs them.
            if nprobe * 2 >= last * 3 {
                last = nprobe;
                rows.push(self.measure(experiment, subject, search, threads, nprobe)?);
            }
        }
        Ok(rows)
    }

    /// Add a row to the results.
    pub(crate) fn record(
        &mut self,
        experiment: &str,
        index: &str,
        row: &impl Serialize,
    ) -> anyhow::Result<()> {
        self.stages.row(self.console);
        let line = Line { experiment, index, row };
        self.console.object(&line)?;
        Ok(writeln!(self.results, "{}", serde_json::to_string(&line)?)?)
    }

    /// What everything was measured on, names beside values.
    pub(crate) fn conditions(&self) -> Vec<(String, String)> {
        let data = &self.data;
        let threads: Vec<String> = self.threads.iter().map(usize::to_string).collect();
        let rounds = if self.quick {
            "1".into()
        } else {
            let seconds = ROW_BUDGET.as_secs();
            format!("3 after one that does not count, fewer where they take over {seconds} s")
        };
        let mut all: Vec<(String, String)> = [
            ("data", format!("{}: {} x {}", data.name, data.base.n(), data.base.dim())),
            ("metric", self.metric.to_string()),
            ("queries", data.truth.queries().to_string()),
            ("rounds", rounds),
            ("threads", threads.join(", ")),
        ]
        .map(|(name, value)| (name.into(), value))
        .into();
        if let Some(info) = self.opened.get() {
            all.extend(report::machine(&self.dir, info, self.ceiling));
        }
        all
    }

    /// Measure the ceiling of the disk anew: other work on it comes and goes.
    pub(crate) fn forget_ceiling(&mut self) {
        self.ceiling = None;
    }
}

/// What a build writes beside the index.
#[derive(serde::Deserialize)]
struct Report {
    stages: Vec<Stage>,
    total_seconds: f64,
}

#[derive(serde::Deserialize)]
struct Stage {
    stage: String,
    seconds: f64,
}

fn key(subject: &Subject, search: &Search) -> String {
    format!("{} {:?}", subject.name, SearchOptions { nprobe: 1, ..search.options.clone() })
}

/// Whether an index has every parameter of a plan.
fn is_as_planned(info: &IndexInfo, plan: &BuildPlan) -> bool {
    let wanted = serde_json::to_value(plan).unwrap_or(Value::Null);
    let found = serde_json::to_value(info).unwrap_or(Value::Null);
    let names =
        ["n", "dim", "metric", "record", "bits", "prefix_dims", "bound", "nlist", "coarse", "seed"];
    names.iter().all(|name| wanted.get(name).is_some() && wanted.get(name) == found.get(name))
}
