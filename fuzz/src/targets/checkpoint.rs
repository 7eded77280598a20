//! What an interrupted build left for the next: which build, which file, how it is named, edits.
//!
//! ```text
//! even    the file is not what checkpoint.json says: an error, or the same index as without the edit
//! odd     checkpoint.json is made to say it, checksums too: an error, or an index that can be used
//! ```

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rabitq_ssd::dataset::{Base, Dtype};
use rabitq_ssd::{BuildError, BuildOptions, Index, Metric, Progress, RecordKind, Silent};
use serde_json::{Value, json};

use super::edits::edited;
use crate::scratch::{Intact, files_of, folder, write_base};

const FILES: [&str; 7] = [
    "checkpoint.json",
    "survey.bin",
    "trained.bin",
    "assignment.bin",
    "lists.bin",
    "run-00000.bin",
    "run-00001.bin",
];

thread_local! {
    static BUILDS: OnceCell<Vec<Stopped>> = const { OnceCell::new() };
}

/// A build that was stopped.
struct Stopped {
    base: Base,
    o: BuildOptions,
    out: PathBuf,
    /// Where it keeps what is done, and what that is.
    scratch: PathBuf,
    files: Vec<(String, Vec<u8>)>,
    /// The index it gives when nothing stops it.
    whole: Vec<(String, Vec<u8>)>,
}

/// Goes on with the build.
pub fn run(input: &[u8]) -> String {
    let [which, file, named, script @ ..] = input else { return String::new() };
    BUILDS.with(|builds| {
        let builds = builds.get_or_init(stop_all);
        let build = &builds[usize::from(*which) % builds.len()];
        let name = FILES[usize::from(*file) % FILES.len()];
        let Some((_, bytes)) = build.files.iter().find(|file| file.0 == name) else {
            return String::new();
        };
        let sealed = named % 2 == 1 && name != "checkpoint.json";
        build.go_on(name, edited(bytes, script), sealed)
    })
}

impl Stopped {
    /// Goes on with these bytes in a file.
    fn go_on(&self, name: &str, mut bytes: Vec<u8>, sealed: bool) -> String {
        let _ = fs_err::remove_dir_all(&self.out);
        fs_err::create_dir_all(&self.scratch).expect("a folder");
        let put = |name: &str, bytes: &[u8]| {
            fs_err::write(self.scratch.join(name), bytes).expect("a temporary file");
        };
        self.files.iter().filter(|file| file.0 != name).for_each(|(name, bytes)| put(name, bytes));
        if sealed {
            if name == "survey.bin" {
                seal_sets(&mut bytes);
            }
            put("checkpoint.json", &self.naming(name, &bytes));
        }
        put(name, &bytes);
        match Index::build(&self.base, &self.out, &self.o, &Silent) {
            Ok(_) if sealed => Intact { dir: self.out.clone(), files: Vec::new() }.use_it(),
            Ok(_) => {
                assert!(
                    identity(files_of(&self.out)) == self.whole,
                    "another index than the right one"
                );
                "the same index".into()
            }
            Err(error) => error.to_string(),
        }
    }

    /// checkpoint.json with the length and checksum of these bytes as those of the file.
    fn naming(&self, name: &str, bytes: &[u8]) -> Vec<u8> {
        let checkpoint = self.files.iter().find(|file| file.0 == "checkpoint.json");
        let text = checkpoint.map(|file| file.1.as_slice()).unwrap_or_default();
        let mut json: Value = serde_json::from_slice(text).expect("a checkpoint");
        let done = &mut json["done"];
        let place = match name {
            "survey.bin" => &mut done["survey"],
            "trained.bin" => &mut done["trained"],
            "assignment.bin" => &mut done["assigned"][0],
            "lists.bin" => &mut done["assigned"][1],
            "run-00000.bin" => &mut done["runs"][0]["file"],
            _ => &mut done["runs"][1]["file"],
        };
        assert!(place.is_object(), "a checkpoint of another style: {place}");
        *place = json!({
            "bytes": bytes.len(),
            "crc32c": format!("{:08x}", crc32c::crc32c(bytes)),
        });
        serde_json::to_vec(&json).expect("a checkpoint")
    }
}

/// Makes the checksums of both sets of a survey right, as far as it has two.
fn seal_sets(bytes: &mut [u8]) {
    let Some((length, sets)) = bytes.split_first_chunk_mut::<8>() else { return };
    let length = u64::from_le_bytes(*length).min(sets.len() as u64) as usize;
    let (first, second) = sets.split_at_mut(length);
    for set in [first, second] {
        if let Some((content, checksum)) = set.split_last_chunk_mut() {
            *checksum = crc32c::crc32c(content).to_le_bytes();
        }
    }
}

/// The files that are the same for all builds of an index.
fn identity(mut files: Vec<(String, Vec<u8>)>) -> Vec<(String, Vec<u8>)> {
    files.retain(|file| file.0 != "build.json");
    files
}

/// One build with external ids and sorted runs, one with rows outside the lists.
fn stop_all() -> Vec<Stopped> {
    let folder = folder();
    let o = BuildOptions { nlist: Some(4), threads: 1, ..BuildOptions::default() };
    let n = 14_000;
    let runs = BuildOptions {
        record: RecordKind::U8,
        ids: Some((0..n).map(|row| 5 * n - row).collect()),
        ..o.clone()
    };
    let base = write_base(&folder.join("runs.u8bin"), Dtype::U8, n as usize, 128);
    // Memory that does not hold all the rows.
    let runs = BuildOptions { build_memory: Some(least_memory(&base, &runs)), ..runs };
    let zeros = BuildOptions { record: RecordKind::F32, metric: Metric::Cosine, ..o };
    vec![
        stop("runs", base, runs, "merge"),
        stop("zeros", write_base(&folder.join("zeros.fbin"), Dtype::F32, 40, 16), zeros, "encode"),
    ]
}

fn least_memory(base: &Base, o: &BuildOptions) -> u64 {
    let none = BuildOptions { build_memory: Some(0), ..o.clone() };
    match Index::build(base, &folder().join("none"), &none, &Silent) {
        Err(BuildError::BuildMemory { least, .. }) => least,
        other => panic!("a build in no memory: {other:?}"),
    }
}

fn stop(name: &str, base: Base, o: BuildOptions, stage: &'static str) -> Stopped {
    let folder = folder();
    let (out, whole) = (folder.join(name), folder.join(format!("{name}-whole")));
    Index::build(&base, &whole, &o, &Silent).expect("an index");
    Index::build(&base, &out, &o, &StopAt(stage, AtomicBool::new(false))).expect_err("a stop");
    let scratch = folder.join(format!(".{name}.partial/scratch"));
    let (files, whole) = (files_of(&scratch), identity(files_of(&whole)));
    Stopped { base, o: BuildOptions { resume: true, ..o }, out, scratch, files, whole }
}

/// Stops a build when it comes to a stage.
struct StopAt(&'static str, AtomicBool);

impl Progress for StopAt {
    fn update(&self, stage: &'static str, _done: u64, _total: u64) {
        self.1.fetch_or(stage == self.0, Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.1.load(Relaxed)
    }
}
