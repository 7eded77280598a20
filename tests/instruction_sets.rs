//! Machines differ in their vector instructions; what is built and what is found must not.
//!
//! Each instruction set works in a process of its own, because a process chooses once: it builds an
//! index of every dim, searches it and writes down a line for each; the lines must be equal.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[allow(dead_code, unreachable_pub)]
mod support;

use std::fmt::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rabitq_ssd::dataset::Dtype;
use rabitq_ssd::simd::{ISA_VARIABLE, Isa, Kernels};
use rabitq_ssd::{Bound, BuildOptions, CoarseKind, Index, Metric, RecordKind, SearchOptions};
use support::{Fixture, Rng, clustered};

const TEST: &str = "every_instruction_set_gives_the_same_neighbours_at_every_dim";
/// Where a process that runs this test for one instruction set writes its lines.
const LINES: &str = "RABITQ_SSD_TEST_LINES";

const WIDE: [usize; 14] =
    [192, 200, 256, 384, 512, 768, 960, 1000, 1024, 1536, 2048, 3072, 4000, 4096];
const METRICS: [Metric; 3] = [Metric::L2, Metric::Ip, Metric::Cosine];

/// Every kind of record, width of table, bound and coarse quantizer meets every metric within 15
/// neighbouring dims.
fn indexes(dim: usize) -> Vec<(Dtype, BuildOptions)> {
    let common = BuildOptions { nlist: Some(3), threads: 1, overwrite: true, ..Default::default() };
    let kinds =
        [RecordKind::Split, RecordKind::F32, RecordKind::U8, RecordKind::Sq8, RecordKind::Sq4];
    let coarse = [CoarseKind::Irq, CoarseKind::Hnsw, CoarseKind::Flat];
    let split = BuildOptions {
        metric: METRICS[dim % 3],
        bits: 2 + (dim % 8) as u32,
        bound: if dim.is_multiple_of(2) { Bound::PerVector } else { Bound::Paper },
        coarse: coarse[dim / 3 % 3],
        ..common.clone()
    };
    let other = BuildOptions {
        metric: METRICS[(dim + 1) % 3],
        record: kinds[dim % kinds.len()],
        coarse: coarse[dim / 9 % 3],
        ..common
    };
    let dtype = if other.record == RecordKind::U8 { Dtype::U8 } else { Dtype::F32 };
    vec![(Dtype::F32, split), (dtype, other)]
}

fn base(dim: usize, dtype: Dtype) -> Fixture {
    let n = if dim <= 130 { 200 } else { 80 };
    let mut rows = clustered(n, dim, dim as u64);
    if dtype == Dtype::U8 {
        let to_byte = |v: &mut f32| *v = (*v * 40.0 + 128.0).clamp(0.0, 255.0).round();
        rows.iter_mut().flatten().for_each(to_byte);
    }
    Fixture::of(rows, dtype)
}

/// Ids, and scores to the last bit, of searches that prune and of one that reads everything.
fn neighbours(index: &Index, f: &Fixture, lines: &mut String) {
    let mut rng = Rng(9);
    for row in f.rows.iter().step_by(f.rows.len() / 3) {
        let query: Vec<f32> = row.iter().map(|v| v + 0.3 * rng.bell()).collect();
        for nprobe in [2, usize::MAX] {
            let o = SearchOptions { k: 8, nprobe, deterministic: true, ..Default::default() };
            let found = index.search(&query, &o).unwrap();
            let bits = found.scores.iter().map(|score| score.to_bits());
            write!(lines, " {:?}", found.ids.iter().zip(bits).collect::<Vec<_>>()).unwrap();
        }
    }
}

fn work(isa: &str) -> String {
    assert_eq!(Kernels::best().isa().name(), isa);
    let mut lines = String::new();
    for dim in (1..=130).chain(WIDE) {
        for (dtype, o) in indexes(dim) {
            let f = base(dim, dtype);
            write!(lines, "dim {dim} {} {}", o.metric, o.record).unwrap();
            neighbours(&f.index(&o), &f, &mut lines);
            lines.push('\n');
        }
    }
    lines
}

fn start(isa: Isa, lines: &Path) -> Child {
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args(["--exact", TEST, "--nocapture"]).stdout(Stdio::null());
    process.env(ISA_VARIABLE, isa.name()).env(LINES, lines);
    // Hundreds of small indexes are made durable faster in memory.
    if Path::new("/dev/shm").is_dir() {
        process.env("TMPDIR", "/dev/shm");
    }
    process.spawn().unwrap()
}

#[test]
fn every_instruction_set_gives_the_same_neighbours_at_every_dim() {
    if let Some(lines) = std::env::var_os(LINES) {
        return std::fs::write(lines, work(&std::env::var(ISA_VARIABLE).unwrap())).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let path = |isa: Isa| dir.path().join(isa.name());
    for isa in [Isa::Neon, Isa::Avx2, Isa::Avx512] {
        if Kernels::for_isa(isa).is_none() {
            println!("skipped: this machine has no {isa}");
        }
    }
    let sets: Vec<Isa> = Kernels::available().iter().map(|kernels| kernels.isa()).collect();
    let mut running: Vec<Child> = sets.iter().map(|&isa| start(isa, &path(isa))).collect();
    assert!(running.iter_mut().all(|child| child.wait().unwrap().success()));
    let read = |isa: Isa| std::fs::read_to_string(path(isa)).unwrap();
    let scalar = read(Isa::Scalar);
    assert_eq!(scalar.lines().count(), 2 * (130 + WIDE.len()));
    for isa in sets {
        let lines = read(isa);
        let differ = scalar.lines().zip(lines.lines()).find(|(a, b)| a != b);
        assert_eq!(differ, None, "scalar on the left, {isa} on the right");
        assert_eq!(lines.len(), scalar.len(), "{isa}");
    }
}

/// The binary, with pruning in lists of more rows than a kernel takes at once.
#[test]
fn every_instruction_set_of_this_machine_gives_the_same_bytes() {
    let f = Fixture::clustered(2000, 100, 45);
    f.index(&BuildOptions { nlist: Some(16), ..Default::default() });
    let answer = |isa: &str| {
        let run = Command::new(env!("CARGO_BIN_EXE_rabitq-ssd"))
            .current_dir(f.dir.path())
            .env(ISA_VARIABLE, isa)
            .args(["search", "index", "base.fbin", "--rows", "..50", "--deterministic", "--json"])
            .output()
            .unwrap();
        assert!(run.status.success(), "{isa}: {}", String::from_utf8_lossy(&run.stderr));
        run.stdout
    };
    let scalar = answer("scalar");
    assert_eq!(scalar.iter().filter(|&&byte| byte == b'\n').count(), 50);
    for kernels in Kernels::available() {
        assert!(answer(kernels.isa().name()) == scalar, "{}", kernels.isa().name());
    }
}
