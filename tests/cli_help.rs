//! What the command line says about itself, and how it ends when it is used wrongly.

mod workbench;
use workbench::{Rows, Workbench};

const COMMANDS: [(&str, &[&str]); 11] = [
    ("tune", &["--base", "--queries", "--groundtruth", "--recall", "--k", "--alpha", "--epsilon"]),
    ("quickstart", &["--dir", "--n", "--dim"]),
    (
        "generate",
        &[
            "--n",
            "--dim",
            "--seed",
            "--dtype",
            "--spectrum",
            "--norms",
            "--queries",
            "--queries-out",
            "--out",
            "--threads",
        ],
    ),
    (
        "build",
        &[
            "--out",
            "--preset",
            "--metric",
            "--nlist",
            "--bits",
            "--record",
            "--prefix-dims",
            "--memory",
            "--coarse",
            "--bound",
            "--seed",
            "--threads",
            "--ids",
            "--on-invalid",
            "--rows",
            "--overwrite",
            "--resume",
            "--build-memory",
        ],
    ),
    ("estimate", &["--n", "--dim", "--dtype", "--dir", "--rows", "--memory", "--build-memory"]),
    ("groundtruth", &["--base", "--rows", "--queries", "--k", "--metric", "--out", "--threads"]),
    (
        "search",
        &[
            "--k",
            "--nprobe",
            "--alpha",
            "--inflight",
            "--epsilon",
            "--pipeline",
            "--threshold",
            "--table-bits",
            "--threads",
            "--deterministic",
            "--io-backend",
            "--direct",
            "--io-timeout",
            "--out",
            "--rows",
        ],
    ),
    (
        "bench",
        &[
            "--k",
            "--nprobe",
            "--alpha",
            "--inflight",
            "--epsilon",
            "--pipeline",
            "--threshold",
            "--table-bits",
            "--threads",
            "--deterministic",
            "--io-backend",
            "--direct",
            "--io-timeout",
            "--recall",
            "--csv",
            "--rounds",
            "--warmup",
            "--no-probe",
            "--ids",
            "--preset",
            "--sweep",
            "--jsonl",
            "--paper",
            "--report",
            "--svg",
        ],
    ),
    ("info", &["--io-backend", "--direct", "--io-timeout"]),
    ("verify", &[]),
    ("convert", &["--dtype", "--rounding", "--rows"]),
];

#[test]
fn help_lists_every_command_and_the_exit_codes() {
    let help = Workbench::new().run("--help").ok().stdout;
    for (command, _) in COMMANDS {
        assert!(help.contains(&format!("\n  {command}")), "{command} is not in: {help}");
    }
    assert!(help.contains("Exit codes: 0 success, 1 the work failed, 2 wrong usage"));
}

#[test]
fn help_of_a_command_explains_every_option_and_gives_an_example() {
    let bench = Workbench::new();
    for (command, options) in COMMANDS {
        let help = bench.run(&format!("{command} --help")).ok().stdout;
        for option in options.iter().chain(&["--json", "--quiet"]) {
            assert!(help.contains(option), "{command}: {option} is not in: {help}");
        }
        assert!(help.contains("Example"), "{command}");
    }
}

#[test]
fn wrong_values_end_with_2_and_write_nothing() {
    let bench = Workbench::new();
    bench.fbin("base.fbin", &Rows::random(20, 8, 1));
    let before = bench.names();
    for line in [
        "",
        "nonsense",
        "build base.fbin",
        "build base.fbin --out i --metric euclid",
        "build base.fbin --out i --bits 1",
        "build base.fbin --out i --bits 10",
        "build base.fbin --out i --nlist 0",
        "build base.fbin --out i --prefix-dims 63",
        "build base.fbin --out i --prefix-dims 128",
        "build base.fbin --out i --prefix-dims 64 --memory 1GiB",
        "build base.fbin --out i --memory 2G",
        "build base.fbin --out i --memory 10",
        "build base.fbin --out i --record u8",
        "build base.fbin --out i --coarse tree",
        "build base.fbin --out i --threads 0",
        "generate --n 0 --dim 4 --out g.fbin",
        "generate --n 4 --dim 4 --out g.fbin --queries 3",
        "generate --n 4 --dim 4 --out g.fbin --queries-out g.fbin",
        "groundtruth --base base.fbin --queries base.fbin --k 0 --out gt.bin",
        "groundtruth --base base.fbin --queries base.fbin --out gt.ivecs",
        "build base.fbin --out i --build-memory 1G",
        "estimate",
        "estimate --n 100",
        "estimate base.fbin --n 100 --dim 8",
        "estimate --n 100 --dim 8 --dtype f8",
        "convert base.fbin copy.npy --dtype f8",
        "quickstart --n 0",
    ] {
        let run = bench.run(line);
        assert_eq!(run.code, 2, "{line}: {}{}", run.stdout, run.stderr);
        assert!(!run.stderr.is_empty(), "{line}");
        assert_eq!(run.stdout, "", "{line}");
    }
    assert_eq!(bench.names(), before);
}

#[test]
fn a_missing_file_ends_with_1_and_is_named() {
    let bench = Workbench::new();
    for line in [
        "build nowhere.fbin --out i",
        "groundtruth --base nowhere.fbin --queries nowhere.fbin --out gt.bin",
        "search nowhere nowhere.fbin",
        "bench nowhere nowhere.fbin nowhere.bin",
        "info nowhere",
        "verify nowhere",
        "convert nowhere.fbin copy.npy",
    ] {
        bench.run(line).fails(1, &["nowhere"]);
    }
    assert!(bench.names().is_empty());
}

#[test]
fn with_json_stdout_holds_objects_only() {
    let bench = Workbench::new();
    for (line, objects) in [
        ("generate --n 300 --dim 16 --out b.fbin --queries 9 --queries-out q.fbin", 1),
        ("estimate b.fbin", 1),
        ("build b.fbin --out i", 2),
        ("groundtruth --base b.fbin --queries q.fbin --k 20 --out gt.bin", 1),
        ("search i q.fbin --k 3", 9),
        ("bench i q.fbin gt.bin --nprobe 1,2 --no-probe", 2),
        ("info i", 1),
        ("verify i", 1),
        ("convert q.fbin q.npy", 1),
        ("quickstart --n 600 --dim 16", 2),
    ] {
        let rows = bench.run(&format!("{line} --json")).ok().json();
        assert!(rows.iter().all(serde_json::Value::is_object), "{line}");
        assert_eq!(rows.len(), objects, "{line}");
    }
}
