//! `quickstart`: everything once, on generated data.
//!
//! ```text
//! DIR/quickstart.json   says that this folder is ours, and what it was made from
//! DIR/base.fbin         generated vectors            DIR/queries.fbin   and queries
//! DIR/gt.bin            their exact neighbours       DIR/index/         the index
//! ```
//! A second run with the same sizes reuses the folder, another one replaces what is in it. A folder
//! without `quickstart.json` belongs to somebody else and is left alone.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::bail;
use rabitq_ssd::dataset::{Base, Dtype, GroundTruth, synth};
use rabitq_ssd::evaluate::{Repeat, Setting, Trial, Truth, ground_truth};
use rabitq_ssd::{
    BuildOptions, Index, IndexInfo, Metric, OpenOptions, Progress, SearchOptions, available_threads,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::bench;
use super::console::Console;
use super::next::{program, quoted};
use super::options::at_least_1;
use super::progress::Reporter;
use super::size::{Size, grouped};
use super::vectors::Queries;

/// See it work: generate vectors, build an index, search it, measure it
///
/// Needs no arguments, no data and no network, and takes about a minute. The folder is kept, so
/// that the commands suggested at the end work.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  rabitq-ssd quickstart --n 1000000 --dim 384")]
pub(crate) struct Args {
    /// Folder for the data and the index; created, or reused if an earlier quickstart made it
    #[arg(long, value_name = "DIR", default_value = "rabitq-quickstart")]
    dir: PathBuf,
    /// Number of vectors
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = at_least_1,
          allow_negative_numbers = true)]
    n: usize,
    /// Values in each vector
    #[arg(long, value_name = "D", default_value_t = 256, value_parser = at_least_1,
          allow_negative_numbers = true)]
    dim: usize,
}

const QUERIES: u64 = 1000;
const TRUTH_K: usize = 100;
const NPROBES: [usize; 6] = [16, 32, 64, 128, 256, 512];
/// The nprobe of the suggested search.
const SUGGESTED_NPROBE: usize = 128;

pub(crate) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    let started = Instant::now();
    let folder = Folder::claim(&args.dir, Sample { n: args.n, dim: args.dim })?;
    let reporter = Reporter::new(console);
    if folder.is_complete() {
        console.note(format_args!("using the data and the index in {}", args.dir.display()));
    } else {
        make(&folder, console, &reporter)?;
    }
    drop(reporter);
    measure(&folder, console)?;
    let seconds = started.elapsed().as_secs_f64();
    console.object(&json!({
        "event": "done", "seconds": seconds, "dir": args.dir, "index": folder.index(),
        "queries": folder.queries(), "truth": folder.truth(),
    }))?;
    console.text(format_args!("{}\n\n{}", done(&folder, seconds), suggestions(&folder)))?;
    Ok(())
}

/// Data, index and ground truth.
fn make(folder: &Folder, console: &Console, progress: &Reporter) -> anyhow::Result<()> {
    let Sample { n, dim } = folder.sample;
    folder.mark(false)?;
    console.note(format_args!(
        "generating {} x {dim} vectors and {QUERIES} queries in {}",
        grouped(n as u64),
        folder.dir.display()
    ));
    let spec = synth::Spec {
        n: n as u64,
        dim,
        seed: BuildOptions::default().seed,
        spectrum: synth::Spectrum::Power,
        norms: synth::Norms::Unit,
        dtype: Dtype::F32,
    };
    let threads = available_threads();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let mut told = |done, total| {
        progress.update("generate", done, total);
        ControlFlow::Continue(())
    };
    synth::generate(&spec, QUERIES, &folder.base(), Some(&folder.queries()), &pool, &mut told)?;

    progress.pause();
    console.note("building the index");
    let base = Base::open(&[folder.base()])?;
    let options = BuildOptions { overwrite: true, ..BuildOptions::default() };
    Index::build(&base, &folder.index(), &options, progress)?;

    progress.pause();
    console.note("computing the exact neighbours of the queries");
    let queries = Queries::read(&folder.queries(), dim, &folder.base(), None)?;
    let metric = Metric::default();
    let exact = ground_truth(&base, &queries.values, TRUTH_K, metric, threads, progress)?;
    exact.truth.write(&folder.truth())?;
    folder.mark(true)
}

/// Search at several nprobe and print what it came to.
fn measure(folder: &Folder, console: &Console) -> anyhow::Result<()> {
    let index = Index::open(&folder.index(), &OpenOptions::default())?;
    let info = index.info();
    let queries = Queries::read(&folder.queries(), info.dim, &folder.index(), None)?;
    let truth = GroundTruth::read(&folder.truth())?;
    let k = SearchOptions::default().k.min(truth.k);
    let truth = Truth::new(truth.k, info.metric, truth.ids, truth.distances)?;
    let trial = Trial::new(&index, &info, &queries.values, &truth);
    let ceiling = bench::read_ceiling(&index, &info)?;
    let mut rows = Vec::new();
    for nprobe in NPROBES.into_iter().filter(|&nprobe| nprobe <= info.nlist.max(NPROBES[0])) {
        let options = SearchOptions { k, nprobe, ..SearchOptions::default() };
        let setting = Setting { options, threads: available_threads() };
        let mut row = trial.measure(&setting, Repeat { rounds: 3, warmup: rows.is_empty() })?;
        row.ceiling_reads_per_s = ceiling;
        console.object(&row)?;
        rows.push(row);
    }
    let mut header = bench::header(&info, queries.n, 3, ceiling);
    header.add("resident size", resident(&info)).add("on SSD", Size(info.ssd_bytes).exact());
    console.text(format_args!("{header}\n\n{}\n", bench::grid(&rows)))?;
    Ok(())
}

fn resident(info: &IndexInfo) -> String {
    let vectors = info.n.saturating_mul(info.dim as u64 * 4).max(1);
    let share = 100.0 * info.resident_bytes as f64 / vectors as f64;
    format!("{}, {share:.0} % of the vectors", Size(info.resident_bytes).exact())
}

fn done(folder: &Folder, seconds: f64) -> String {
    format!("done in {seconds:.0} s; everything is kept in {}", folder.dir.display())
}

fn suggestions(folder: &Folder) -> String {
    let program = program();
    let [index, queries, truth] =
        [folder.index(), folder.queries(), folder.truth()].map(|path| quoted(&path));
    format!(
        "Next, on this index:\n  \
         {program} search {index} {queries} --k 10 --nprobe {SUGGESTED_NPROBE}\n  \
         {program} bench {index} {queries} {truth} --recall 0.9,0.95\n\
         On vectors of your own:\n  \
         {program} build VECTORS.fbin --out my.index --memory 2GiB"
    )
}

/// What a folder was made from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Sample {
    n: usize,
    dim: usize,
}

/// The content of `quickstart.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    /// The name of this program: nobody else's file has it.
    made_by: String,
    #[serde(flatten)]
    sample: Sample,
    /// Whether all files were written to the end.
    complete: bool,
}

/// A folder that this command may write to.
struct Folder {
    dir: PathBuf,
    sample: Sample,
    mark: Option<Mark>,
}

const MARK: &str = "quickstart.json";
const MADE_BY: &str = "rabitq-ssd quickstart";

impl Folder {
    /// Take a folder that does not exist, is empty, or was made by an earlier run.
    fn claim(dir: &Path, sample: Sample) -> anyhow::Result<Self> {
        fs_err::create_dir_all(dir)?;
        let mark = fs_err::read(dir.join(MARK))
            .ok()
            .and_then(|text| serde_json::from_slice::<Mark>(&text).ok())
            .filter(|mark| mark.made_by == MADE_BY);
        let empty = fs_err::read_dir(dir)?.next().is_none();
        if mark.is_none() && !empty {
            bail!(
                "{} exists and was not made by quickstart: choose another folder with --dir",
                dir.display()
            );
        }
        Ok(Self { dir: dir.into(), sample, mark })
    }

    /// Whether an earlier run with the same sizes left everything, and the index still opens.
    fn is_complete(&self) -> bool {
        let made = self.mark.as_ref().is_some_and(|m| m.complete && m.sample == self.sample);
        made && [self.base(), self.queries(), self.truth()].iter().all(|path| path.is_file())
            && Index::open(&self.index(), &OpenOptions::default()).is_ok()
    }

    fn mark(&self, complete: bool) -> anyhow::Result<()> {
        let mark = Mark { made_by: MADE_BY.into(), sample: self.sample, complete };
        Ok(fs_err::write(self.dir.join(MARK), serde_json::to_vec_pretty(&mark)?)?)
    }

    fn base(&self) -> PathBuf {
        self.dir.join("base.fbin")
    }

    fn queries(&self) -> PathBuf {
        self.dir.join("queries.fbin")
    }

    fn truth(&self) -> PathBuf {
        self.dir.join("gt.bin")
    }

    fn index(&self) -> PathBuf {
        self.dir.join("index")
    }
}
