//! A build that is killed leaves the old index as it was and its own work to go on from.
//!
//! ```text
//! old index in place ─▶ build --overwrite, killed ─▶ build --resume, killed again or not ─▶ ...
//!                       after every kill: the old index answers, or the new one whole
//! ```
//! `RABITQ_SSD_KILLS` says how many kills there are, 5 unless it is set.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod workbench;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use workbench::Workbench;

/// Records as long as the rows, so that they do not fit in the least memory and runs are written.
const BUILD: &str = "build base.fbin --out index --nlist 300 --record f32 --threads 2";
const SEARCH: &str = "index queries.fbin --k 5 --nprobe 20 --deterministic";
const PARTIAL: &str = ".index.partial";

/// What a search gave: ids and scores of each query.
type Answers = Vec<(Vec<u64>, Vec<f64>)>;

/// A base, an index of it in place that is to be replaced, and the index that replaces it.
struct Scene {
    bench: Workbench,
    /// The command, in the least memory.
    build: String,
    old: Answers,
    new: Answers,
    files: BTreeMap<String, Vec<u8>>,
    /// How long a build takes that nothing stops.
    takes: Duration,
}

impl Scene {
    fn new() -> Self {
        let bench = Workbench::new();
        let generate = "generate --n 160000 --dim 64 --out base.fbin --queries 20";
        bench.run(&format!("{generate} --queries-out queries.fbin")).ok();
        let build = format!("{BUILD} --build-memory {}", bench.least_build_memory(BUILD));
        let start = Instant::now();
        bench.run(&build).ok();
        let takes = start.elapsed();
        let (new, files) = (bench.search(SEARCH), bench.index_files("index"));
        bench.run("build base.fbin --out index --nlist 30 --overwrite").ok();
        let old = bench.search(SEARCH);
        assert_ne!(old, new);
        copy(&bench.path("index"), &bench.path("old"));
        let build = format!("{build} --overwrite");
        Self { bench, build, old, new, files, takes }
    }

    fn start(&self, resume: bool) -> Child {
        Command::new(env!("CARGO_BIN_EXE_rabitq-ssd"))
            .current_dir(self.bench.path(""))
            .args(self.build.split_whitespace())
            .args(resume.then_some("--resume"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// The index in place answers as the old one, or as the new one when that has taken over.
    fn answers(&self) {
        let answers = self.bench.search(SEARCH);
        if answers != self.old {
            assert_eq!(answers, self.new, "neither the old index nor the new one");
            assert!(self.bench.index_files("index") == self.files);
        }
    }

    /// What is not published opens only when it is whole: in the moment before its publication,
    /// or after it, when it is the old index about to be removed.
    fn nothing_partial_opens(&self) {
        if self.bench.run(&format!("info {PARTIAL}")).code == 0 {
            let files = self.bench.index_files(PARTIAL);
            assert!(files == self.files || files == self.bench.index_files("old"));
        }
    }

    /// Lets a build come to its end; the index is that of the uninterrupted one.
    fn complete(&self) {
        let output = self.start(self.bench.path(PARTIAL).exists()).wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        self.is_new();
    }

    fn is_new(&self) {
        assert!(self.bench.index_files("index") == self.files, "not the same bytes");
        assert!(!self.bench.path(PARTIAL).exists());
    }

    /// Puts the old index back.
    fn reset(&self) {
        fs_err::remove_dir_all(self.bench.path("index")).unwrap();
        copy(&self.bench.path("old"), &self.bench.path("index"));
    }
}

fn copy(from: &Path, to: &Path) {
    fs_err::create_dir(to).unwrap();
    for entry in fs_err::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs_err::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Numbers in 0..1 by the golden ratio: spread evenly, however many there are.
fn spread() -> impl Iterator<Item = f64> {
    (1..).map(|i| f64::from(i) * 0.618_033_988_749_895 % 1.0)
}

#[test]
fn kills_lose_neither_the_old_index_nor_the_work() {
    let kills = std::env::var("RABITQ_SSD_KILLS").map_or(5, |kills| kills.parse().unwrap());
    let scene = Scene::new();
    let mut killed = 0;
    for share in spread() {
        let mut child = scene.start(scene.bench.path(PARTIAL).exists());
        std::thread::sleep(scene.takes.mul_f64(share));
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        if output.status.code().is_some() {
            assert!(output.status.success(), "{}", stderr(&output));
            scene.is_new();
            scene.reset();
            continue;
        }
        killed += 1;
        scene.answers();
        scene.nothing_partial_opens();
        // One of three goes on undisturbed.
        if killed % 3 == 0 || killed == kills {
            scene.complete();
            scene.reset();
        }
        if killed == kills {
            break;
        }
    }
}

/// Sends the build a signal when `there` exists, and waits for its end.
fn interrupt(scene: &Scene, there: &str) -> Output {
    let mut child = scene.start(scene.bench.path(PARTIAL).exists());
    let there = scene.bench.path(there);
    while !there.exists() {
        assert!(child.try_wait().unwrap().is_none(), "the build ended");
        std::thread::sleep(Duration::from_millis(1));
    }
    let kill = Command::new("sh").args(["-c", &format!("kill -s INT {}", child.id())]).status();
    assert!(kill.unwrap().success());
    child.wait_with_output().unwrap()
}

#[test]
fn an_interrupted_build_says_how_to_go_on_or_leaves_nothing() {
    let scene = Scene::new();
    // The lists are being trained, at the latest: nothing is worth keeping.
    let output = interrupt(&scene, ".index.partial/scratch");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).ends_with("error: interrupted; nothing was kept\n"));
    assert!(!scene.bench.path(PARTIAL).exists());
    scene.answers();
    // They have been: what follows is being done.
    for there in ["assignment.bin", "run-00000.bin"] {
        let output = interrupt(&scene, &format!("{PARTIAL}/scratch/{there}"));
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("the same command with --resume goes on"));
        scene.answers();
        scene.nothing_partial_opens();
    }
    scene.complete();
}
