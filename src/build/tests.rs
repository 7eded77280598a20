//! Builds that are cut into many runs, stopped, resumed, and given data that no clustering likes.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use dataset::{Base, Dtype, VectorWriter};

use super::memory::Memory;
use super::plan::{BaseShape, BuildPlan};
use super::waves::Waves;
use super::{balance, build_within};
use crate::config::{
    BuildOptions, CentroidKind, CoarseKind, Metric, Prefix, RecordKind, SearchOptions,
};
use crate::error::BuildError;
use crate::progress::{Progress, Silent};
use crate::{Index, OpenOptions};

/// Memory so small that there are many waves and many runs.
fn little() -> Memory {
    Memory {
        waves: Waves { block_rows: 200, blocks: 2 },
        train_bytes: 0,
        balance_spare: 0,
        run_rows: 1100,
        merge_bytes: 4096,
        peak: 0,
    }
}

/// Room for everything.
fn much() -> Memory {
    Memory {
        waves: Waves { block_rows: 512, blocks: 8 },
        train_bytes: u64::MAX,
        balance_spare: u64::MAX,
        run_rows: u64::MAX / 2,
        merge_bytes: 1 << 20,
        peak: 0,
    }
}

struct Folder {
    dir: tempfile::TempDir,
}

impl Folder {
    fn of(n: usize, dim: usize, value: impl Fn(usize, usize) -> f32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut out = VectorWriter::create(&dir.path().join("base.fbin"), dim, Dtype::F32).unwrap();
        for row in 0..n {
            let values: Vec<f32> = (0..dim).map(|d| value(row, d)).collect();
            out.write_f32(&values).unwrap();
        }
        out.finish().unwrap();
        Self { dir }
    }

    /// Rows that differ, around 13 centres.
    fn mixed(n: usize, dim: usize) -> Self {
        Self::of(n, dim, |row, d| {
            let noise = (row * 2_654_435_761 + d * 40_503) % 1009;
            ((row * 31 + d) % 13) as f32 + noise as f32 / 500.0
        })
    }

    fn base(&self) -> Base {
        Base::open(&[self.path("base.fbin")]).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn build(
        &self,
        name: &str,
        memory: Memory,
        o: &BuildOptions,
        progress: &dyn Progress,
    ) -> Result<(), BuildError> {
        let base = self.base();
        let plan = BuildPlan::new(&base, o).unwrap();
        build_within(memory, plan, &base, &self.path(name), o, progress).map(|_| ())
    }

    fn index(&self, name: &str) -> Index {
        Index::open(&self.path(name), &OpenOptions::default()).unwrap()
    }

    /// Everything in the folder that is not the base or an index asked for.
    fn others(&self, known: &[&str]) -> Vec<String> {
        let names = std::fs::read_dir(self.dir.path()).unwrap();
        names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "base.fbin" && !known.contains(&name.as_str()))
            .collect()
    }
}

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap())
        .map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap()))
        .filter(|(name, _)| name != "build.json")
        .collect()
}

/// Every kind of record and metric, an id beside and inside the record.
fn options() -> Vec<BuildOptions> {
    let of = |record, metric, coarse| BuildOptions {
        record,
        metric,
        coarse,
        nlist: Some(40),
        threads: 2,
        ..BuildOptions::default()
    };
    vec![
        of(RecordKind::Split, Metric::L2, CoarseKind::Flat),
        of(RecordKind::Split, Metric::Ip, CoarseKind::Irq),
        of(RecordKind::F32, Metric::Cosine, CoarseKind::Hnsw),
        of(RecordKind::Sq8, Metric::L2, CoarseKind::Flat),
    ]
}

#[test]
fn memory_and_threads_do_not_show_in_the_index() {
    let f = Folder::mixed(6000, 32);
    for (i, o) in options().into_iter().enumerate() {
        let ids = (i == 0).then(|| (0..6000).map(|row| 1 << 40 | (6000 - row)).collect());
        let o = BuildOptions { ids, ..o };
        f.build(&format!("much{i}"), much(), &o, &Silent).unwrap();
        let o = BuildOptions { threads: 3, ..o };
        f.build(&format!("little{i}"), little(), &o, &Silent).unwrap();
        let (much, little) =
            (files(&f.path(&format!("much{i}"))), files(&f.path(&format!("little{i}"))));
        assert!(much.len() >= 6);
        assert!(much == little, "{o:?}");
    }
}

/// Cancels when a stage has come so far.
struct StopAt {
    stage: &'static str,
    done: u64,
    stopped: Mutex<bool>,
}

impl StopAt {
    fn new(stage: &'static str, done: u64) -> Self {
        Self { stage, done, stopped: Mutex::new(false) }
    }
}

impl Progress for StopAt {
    fn update(&self, stage: &'static str, done: u64, _total: u64) {
        if stage == self.stage && done >= self.done {
            *self.stopped.lock().unwrap() = true;
        }
    }

    fn cancelled(&self) -> bool {
        *self.stopped.lock().unwrap()
    }
}

#[test]
fn a_build_stopped_anywhere_goes_on_and_gives_the_same_bytes() {
    let f = Folder::mixed(6000, 32);
    for (i, o) in options().into_iter().enumerate() {
        f.build("whole", much(), &BuildOptions { overwrite: true, ..o.clone() }, &Silent).unwrap();
        let whole = files(&f.path("whole"));
        let out = format!("stopped{i}");
        let mut go_on = o.clone();
        // The checkpoint behind which it stops, and whether there is one yet.
        let stops = [
            ("assign", 0, true),
            ("assign", 3000, true),
            ("encode", 0, true),
            ("encode", 4000, true),
            ("merge", 2000, true),
        ];
        for (stage, done, resumable) in stops {
            let error = f.build(&out, little(), &go_on, &StopAt::new(stage, done)).unwrap_err();
            match error {
                BuildError::Interrupted { resumable: found } => assert_eq!(found, resumable),
                other => panic!("{stage} {done}: {other}"),
            }
            assert!(!f.path(&out).exists(), "no index before its time");
            assert!(crate::unfinished_build(&f.path(&out)));
            go_on = BuildOptions { resume: true, threads: 1 + done as usize % 3, ..o.clone() };
        }
        let mut memory = little();
        (memory.run_rows, memory.waves.blocks) = (1500, 3);
        f.build(&out, memory, &go_on, &Silent).unwrap();
        assert!(files(&f.path(&out)) == whole, "{o:?}");
        assert!(!crate::unfinished_build(&f.path(&out)));
    }
    let known = ["whole", "stopped0", "stopped1", "stopped2", "stopped3"];
    assert_eq!(f.others(&known), Vec::<String>::new());
}

#[test]
fn stopped_before_anything_is_worth_keeping_nothing_is_kept() {
    let f = Folder::mixed(3000, 16);
    let o = BuildOptions { nlist: Some(20), ..BuildOptions::default() };
    for stage in ["check", "train"] {
        let error = f.build("index", little(), &o, &StopAt::new(stage, 0)).unwrap_err();
        assert!(matches!(error, BuildError::Interrupted { resumable: false }), "{stage}: {error}");
        assert_eq!(f.others(&[]), Vec::<String>::new());
    }
    let error = f.build("index", little(), &BuildOptions { resume: true, ..o }, &Silent);
    assert!(matches!(error, Err(BuildError::NothingToResume(_))));
    assert_eq!(f.others(&[]), Vec::<String>::new());
}

#[test]
fn what_a_stopped_build_left_can_be_discarded() {
    let f = Folder::mixed(3000, 16);
    let o = BuildOptions { nlist: Some(20), ..BuildOptions::default() };
    f.build("index", little(), &o, &StopAt::new("encode", 2000)).unwrap_err();
    crate::discard_unfinished_build(&f.path("index")).unwrap();
    assert_eq!(f.others(&[]), Vec::<String>::new());
    crate::discard_unfinished_build(&f.path("index")).unwrap();
    f.build("index", little(), &o, &Silent).unwrap();
    crate::discard_unfinished_build(&f.path("index")).unwrap();
    assert_eq!(f.others(&[]), ["index"]);
}

#[test]
fn what_changed_since_is_named_and_the_work_stays() {
    let f = Folder::mixed(3000, 16);
    let o = BuildOptions { nlist: Some(20), ..BuildOptions::default() };
    f.build("index", little(), &o, &StopAt::new("encode", 2000)).unwrap_err();
    let resume = BuildOptions { resume: true, ..o.clone() };
    let refused = |o: &BuildOptions, word: &str| {
        let error = f.build("index", little(), o, &Silent).unwrap_err();
        assert!(matches!(error, BuildError::Resume { .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
        assert!(crate::unfinished_build(&f.path("index")));
    };
    refused(&BuildOptions { seed: 43, ..resume.clone() }, "seed 43");
    refused(&BuildOptions { ids: Some((0..3000).collect()), ..resume.clone() }, "--ids");
    let base = std::fs::read(f.path("base.fbin")).unwrap();
    let mut other = base.clone();
    other[9] ^= 1;
    std::fs::write(f.path("base.fbin"), &other).unwrap();
    refused(&resume, "base.fbin");
    // Without --resume it starts over, from the base as it is now.
    f.build("index", little(), &o, &Silent).unwrap();
    assert_eq!(f.index("index").info().n, 3000);
}

#[test]
fn a_damaged_run_is_not_merged() {
    let f = Folder::mixed(3000, 16);
    let o = BuildOptions { nlist: Some(20), ..BuildOptions::default() };
    f.build("index", little(), &o, &StopAt::new("merge", 0)).unwrap_err();
    let run = f.path(".index.partial/scratch/run-00001.bin");
    let mut bytes = std::fs::read(&run).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&run, &bytes).unwrap();
    let resume = BuildOptions { resume: true, ..o };
    let error = f.build("index", little(), &resume, &Silent).unwrap_err();
    assert!(error.to_string().contains("run-00001.bin"), "{error}");
    assert!(!f.path("index").exists());
}

#[test]
fn a_build_goes_on_with_waves_larger_than_its_runs() {
    let f = Folder::mixed(3000, 16);
    let o = BuildOptions { nlist: Some(20), ..BuildOptions::default() };
    f.build("whole", much(), &o, &Silent).unwrap();
    f.build("index", little(), &o, &StopAt::new("encode", 2000)).unwrap_err();
    // Enough for all rows in two buffers, as planned before it is known that there are runs.
    let more = Memory { run_rows: 1500, ..much() };
    f.build("index", more, &BuildOptions { resume: true, ..o }, &Silent).unwrap();
    assert!(files(&f.path("index")) == files(&f.path("whole")));
}

#[test]
fn a_run_whose_rows_have_no_ids_is_damaged_before_its_checksum_is_known() {
    let f = Folder::mixed(3000, 16);
    let ids = Some((0..3000).map(|row| 7 * row).collect());
    let o = BuildOptions { nlist: Some(20), ids, ..BuildOptions::default() };
    f.build("index", little(), &o, &StopAt::new("merge", 0)).unwrap_err();
    let run = f.path(".index.partial/scratch/run-00000.bin");
    // All entries, so that one of the first buffer's is hit.
    let bytes = std::fs::read(&run).unwrap();
    std::fs::write(&run, vec![0xff; bytes.len()]).unwrap();
    let error = f.build("index", little(), &BuildOptions { resume: true, ..o }, &Silent);
    assert!(error.unwrap_err().to_string().contains("run-00000.bin"));
}

#[test]
fn an_index_in_place_answers_until_the_new_one_takes_over() {
    let f = Folder::mixed(3000, 16);
    let o = BuildOptions { nlist: Some(20), ..BuildOptions::default() };
    f.build("index", much(), &o, &Silent).unwrap();
    let before = files(&f.path("index"));
    let again = BuildOptions { seed: 7, overwrite: true, ..o };
    f.build("index", little(), &again, &StopAt::new("merge", 1000)).unwrap_err();
    assert!(files(&f.path("index")) == before);
    let resume = BuildOptions { resume: true, ..again };
    f.build("index", little(), &resume, &Silent).unwrap();
    assert!(files(&f.path("index")) != before);
    assert_eq!(f.others(&["index"]), Vec::<String>::new());
}

/// Every row is found at distance 0 or as near, and no list is above the limit.
fn balanced_and_complete(f: &Folder, n: usize, nlist: usize) {
    let o = BuildOptions { nlist: Some(nlist), record: RecordKind::F32, ..BuildOptions::default() };
    f.build("index", little(), &o, &Silent).unwrap();
    f.build("same", much(), &o, &Silent).unwrap();
    assert!(files(&f.path("index")) == files(&f.path("same")));
    let index = f.index("index");
    let sizes = index.info().list_sizes;
    let limit = balance::limit(n as u64, nlist);
    assert!(sizes.max <= limit, "a list of {} rows, the limit is {limit}", sizes.max);
    let query = vec![0.5; index.dim()];
    let all = SearchOptions { k: n, nprobe: nlist, ..SearchOptions::default() };
    let mut ids = index.search(&query, &all).unwrap().ids;
    ids.sort_unstable();
    assert!(ids == (0..n as u64).collect::<Vec<u64>>(), "every row once");
}

#[test]
fn equal_rows_do_not_make_one_giant_list() {
    balanced_and_complete(&Folder::of(5000, 8, |_, _| 1.5), 5000, 50);
}

#[test]
fn nine_rows_of_ten_in_one_place_do_not_make_one_giant_list() {
    let f = Folder::of(5000, 8, |row, d| match row % 10 {
        0 => ((row * 37 + d * 11) % 101) as f32,
        _ => 1.0,
    });
    balanced_and_complete(&f, 5000, 50);
}

#[test]
fn nine_rows_of_ten_in_one_cluster_do_not_make_one_giant_list() {
    let f = Folder::of(5000, 8, |row, d| match row % 10 {
        0 => ((row * 37 + d * 11) % 101) as f32,
        _ => 1.0 + ((row * 7919 + d * 104_729) % 997) as f32 / 1e5,
    });
    balanced_and_complete(&f, 5000, 50);
}

#[test]
fn centroids_are_rounded_only_where_their_lists_are_wide() {
    // 13 centres 100 apart; rows around them at most as far as `width`.
    let around = |width: f32| {
        Folder::of(2600, 64, move |row, d| {
            let noise = (row * 2_654_435_761 + d * 40_503) % 1009;
            let centre = if row % 13 == d { 100.0 } else { 0.0 };
            centre + width * (noise as f32 / 1009.0 - 0.5)
        })
    };
    let ask = |centroids| BuildOptions { nlist: Some(13), centroids, ..BuildOptions::default() };
    for (width, asked, kept) in [
        (50.0, CentroidKind::Auto, CentroidKind::I8),
        (0.01, CentroidKind::Auto, CentroidKind::F32),
        (0.01, CentroidKind::I8, CentroidKind::I8),
        (50.0, CentroidKind::F32, CentroidKind::F32),
    ] {
        let (folder, o) = (around(width), ask(asked));
        let plan = BuildPlan::new(&folder.base(), &o).unwrap();
        Index::build(&folder.base(), &folder.path("index"), &o, &Silent).unwrap();
        let index = Index::open(&folder.path("index"), &OpenOptions::default()).unwrap();
        let info = index.info();
        assert_eq!(info.centroids, kept, "{width}");
        assert_eq!(info.resident_bytes == plan.resident_bytes, plan.centroids == kept);
        let query: Vec<f32> = (0..64).map(|d| if d == 3 { 100.0 } else { 0.0 }).collect();
        let found =
            index.search(&query, &SearchOptions { nprobe: 1, ..Default::default() }).unwrap();
        assert!(found.ids.iter().all(|id| id % 13 == 3), "{:?}", found.ids);
    }
}

#[test]
fn memory_without_room_for_floats_fails_no_build_of_tight_lists() {
    let folder = Folder::of(2600, 64, |row, d| if row % 130 == d { 100.0 } else { 0.0 });
    let ask = |prefix| BuildOptions { nlist: Some(130), prefix, ..BuildOptions::default() };
    let base = folder.base();
    let least = BuildPlan::new(&base, &ask(Prefix::Dims(64))).unwrap();
    assert_eq!(least.centroids, CentroidKind::I8);
    for (more, kept) in [(0, CentroidKind::I8), (1 << 20, CentroidKind::F32)] {
        let o = ask(Prefix::Memory(least.resident_bytes + more));
        let out = folder.path(&format!("index {more}"));
        Index::build(&base, &out, &o, &Silent).unwrap();
        let info = Index::open(&out, &OpenOptions::default()).unwrap().info();
        assert_eq!(info.centroids, kept);
        assert!(info.resident_bytes <= least.resident_bytes + more);
    }
}

#[test]
fn graphs_keep_floats_and_say_so_when_asked_for_bytes() {
    let folder = Folder::mixed(600, 8);
    let graph = |centroids| BuildOptions {
        nlist: Some(20),
        coarse: CoarseKind::Hnsw,
        centroids,
        ..BuildOptions::default()
    };
    let plan = BuildPlan::new(&folder.base(), &graph(CentroidKind::Auto)).unwrap();
    assert_eq!(plan.centroids, CentroidKind::F32);
    let refused = BuildPlan::new(&folder.base(), &graph(CentroidKind::I8));
    assert!(matches!(refused, Err(BuildError::Option { option: "--centroids", .. })));
}

#[test]
fn the_default_nlist_follows_the_rows_their_root_and_what_a_list_weighs() {
    let nlist = |n: u64, dim: usize, prefix| {
        let base = BaseShape { n, dim, dtype: Dtype::F32 };
        let plan = BuildPlan::of(base, &BuildOptions { prefix, ..BuildOptions::default() });
        plan.unwrap().nlist
    };
    let full = |n, dim| nlist(n, dim, Prefix::Full);
    assert_eq!([full(1, 128), full(100, 128), full(6400, 128)], [1, 1, 100]);
    assert_eq!(full(300_000, 384), 300_000 / 69);
    assert_eq!(full(10_000_000, 128), 8 * 3162);
    assert_eq!(full(1_000_000_000, 128), 1_000_000_000 / 1024);
    // Half of each code in RAM: a list weighs twice as much beside them.
    assert_eq!(nlist(300_000, 384, Prefix::Dims(192)), 300_000 / 115);
    for budget in [8u64 << 20, 16 << 20, 32 << 20] {
        let o = BuildOptions { prefix: Prefix::Memory(budget), ..BuildOptions::default() };
        let plan =
            BuildPlan::of(BaseShape { n: 300_000, dim: 384, dtype: Dtype::F32 }, &o).unwrap();
        assert!(plan.resident_bytes <= budget);
        assert_eq!(plan.nlist, nlist(300_000, 384, Prefix::Dims(plan.prefix_dims)));
    }
}
