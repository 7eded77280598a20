//! What the commands write: complete, repeatable, and never over what belongs to somebody else.

mod workbench;
use fs_err as fs;

use workbench::{Rows, Workbench, bin};

fn built(build: &str) -> Workbench {
    let bench = Workbench::new();
    bench.fbin("b.fbin", &Rows::random(400, 24, 51));
    bench.fbin("q.fbin", &Rows::random(4, 24, 52));
    bench.run(&format!("build b.fbin --out i {build}")).ok();
    bench
}

/// Name and content of every file of an index.
fn content(bench: &Workbench, index: &str) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(bench.path(index))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).unwrap_or_default())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn generated_files_depend_on_the_seed_alone() {
    let bench = Workbench::new();
    let line = "generate --n 500 --dim 24 --queries 20";
    bench.run(&format!("{line} --out a.fbin --queries-out qa.fbin --threads 1")).ok();
    bench.run(&format!("{line} --out b.fbin --queries-out qb.fbin --threads 3")).ok();
    bench.run(&format!("{line} --out c.fbin --queries-out qc.fbin --seed 7")).ok();
    assert_eq!(bench.read("a.fbin"), bench.read("b.fbin"));
    assert_eq!(bench.read("qa.fbin"), bench.read("qb.fbin"));
    assert_ne!(bench.read("a.fbin"), bench.read("c.fbin"));
    bench.run("generate --n 50 --dim 24 --out u.u8bin --spectrum flat --norms spread").ok();
    assert_eq!(bench.read("u.u8bin").len(), 8 + 50 * 24);
    bench.run("generate --n 50 --dim 24 --out v.u8bin --dtype f32").fails(1, &["v.u8bin"]);
}

#[test]
fn conversion_there_and_back_gives_the_same_bytes() {
    let bench = Workbench::new();
    bench.fbin("a.fbin", &Rows::random(30, 7, 53));
    bench.run("convert a.fbin a.npy").ok();
    bench.run("convert a.npy a.fvecs").ok();
    bench.run("convert a.fvecs back.fbin").ok();
    assert_eq!(bench.read("a.fbin"), bench.read("back.fbin"));
    bench.write("old.u8bin", b"precious");
    bench.run("convert a.fbin old.u8bin").fails(1, &["old.u8bin", "row 0"]);
    assert_eq!(bench.read("old.u8bin"), b"precious");
    bench.run("convert a.fbin old.u8bin --rounding clamp").ok();
    assert_eq!(bench.read("old.u8bin").len(), 8 + 30 * 7);
}

#[test]
fn the_plan_is_kept_to_the_byte() {
    let bench = Workbench::new();
    bench.fbin("b.fbin", &Rows::random(3000, 200, 54));
    for (name, options) in [("full", ""), ("short", "--prefix-dims 64"), ("fit", "--memory 150KiB")]
    {
        let rows = bench.run(&format!("build b.fbin --out {name} {options} --json")).ok().json();
        let info = bench.run(&format!("info {name} --json")).ok().json();
        assert_eq!(rows[0]["event"], "plan");
        assert_eq!(rows[1]["event"], "built");
        for key in ["resident_bytes", "ssd_bytes", "prefix_dims", "nlist", "records_per_page"] {
            assert_eq!(rows[0][key], info[0][key], "{name} {key}");
        }
    }
    let fit = bench.run("info fit --json").ok().json();
    assert!(fit[0]["resident_bytes"].as_u64() <= Some(150 << 10), "{}", fit[0]);
    let plan = bench.run("build b.fbin --out people").ok().stdout;
    for word in ["resident size", "bytes (", "on SSD", "sign bits", "a page", "Next:"] {
        assert!(plan.contains(word), "{word:?} is not in: {plan}");
    }
}

#[test]
fn a_budget_below_the_least_names_the_least() {
    let bench = Workbench::new();
    bench.fbin("b.fbin", &Rows::random(500, 128, 55));
    let run = bench.run("build b.fbin --out i --memory 1000").fails(2, &["--memory", "least"]);
    let least: Option<u64> =
        run.stderr.split(|c: char| !c.is_ascii_digit()).filter_map(|s| s.parse().ok()).nth(1);
    let least = least.unwrap_or_default();
    bench.run(&format!("build b.fbin --out i --memory {}", least - 1)).fails(2, &["least"]);
    bench.run(&format!("build b.fbin --out i --memory {least}")).ok();
}

#[test]
fn an_existing_index_stays_until_its_replacement_is_complete() {
    let bench = built("");
    let before = content(&bench, "i");
    bench.run("build b.fbin --out i").fails(1, &["exists", "--overwrite"]);
    bench.write("bad.fbin", &bin(2, 24, &f32::NAN.to_le_bytes().repeat(48)));
    bench.run("build bad.fbin --out i --overwrite").fails(1, &["bad.fbin"]);
    assert_eq!(content(&bench, "i"), before);
    assert_eq!(bench.names(), ["b.fbin", "bad.fbin", "i", "q.fbin"]);
    bench.run("build b.fbin --out i --overwrite --seed 9").ok();
    assert_ne!(content(&bench, "i"), before);
    assert_eq!(bench.names(), ["b.fbin", "bad.fbin", "i", "q.fbin"]);
}

#[test]
fn a_folder_that_is_no_index_is_never_replaced() {
    let bench = built("");
    fs::create_dir(bench.path("home")).unwrap_or_default();
    bench.write("home/letter.txt", b"dear");
    bench.run("build b.fbin --out home --overwrite").fails(2, &["home"]);
    assert_eq!(bench.read("home/letter.txt"), b"dear");
}

#[test]
fn one_seed_gives_one_index_whatever_the_threads() {
    let bench = built("--nlist 6 --threads 1");
    bench.run("build b.fbin --out j --nlist 6 --threads 3").ok();
    bench.run("build b.fbin --out k --nlist 6 --seed 43").ok();
    let identity = |index: &str| {
        let mut files = content(&bench, index);
        files.retain(|(name, _)| name != "build.json");
        files
    };
    assert_eq!(identity("i"), identity("j"));
    assert_ne!(identity("i"), identity("k"));
}

#[test]
fn verify_names_the_damaged_file_and_page() {
    let bench = built("--nlist 4");
    assert_eq!(bench.run("verify i --json").ok().json()[0]["ok"], true);
    for (name, bytes) in content(&bench, "i") {
        if name == "build.json" || name == "manifest.json" || bytes.is_empty() {
            continue;
        }
        let at = bytes.len() / 2;
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        bench.write(&format!("i/{name}"), &damaged);
        let run = bench.run("verify i --json").fails(1, &[&name]);
        let report = &run.json()[0];
        assert_eq!(report["ok"], false, "{name}");
        let file = report["files"].as_array().into_iter().flatten().find(|f| f["name"] == *name);
        assert_eq!(file.map(|f| f["ok"] == false), Some(true), "{name}");
        bench.run("verify i").fails(1, &[&name]);
        bench.write(&format!("i/{name}"), &bytes);
    }
    bench.run("verify i").ok();
}

#[test]
fn truncated_files_are_refused_at_open_with_both_sizes() {
    let bench = built("--nlist 4");
    for (name, bytes) in content(&bench, "i") {
        if name == "build.json" || bytes.is_empty() {
            continue;
        }
        for length in [bytes.len() - 1, bytes.len() / 2, 0] {
            bench.write(&format!("i/{name}"), &bytes[..length]);
            bench.run("search i q.fbin --quiet").fails(1, &[&name]);
        }
        bench.write(&format!("i/{name}"), &bytes);
    }
    bench.run("info i").ok();
}

#[test]
fn another_format_version_is_refused_with_both_numbers() {
    let bench = built("");
    let manifest = String::from_utf8(bench.read("i/manifest.json")).unwrap_or_default();
    let later = manifest.replacen("\"format\": 1", "\"format\": 77", 1);
    let later = later.replacen("\"format\":1", "\"format\":77", 1);
    assert_ne!(manifest, later);
    bench.write("i/manifest.json", later.as_bytes());
    for line in ["info i", "search i q.fbin", "verify i"] {
        bench.run(line).fails(1, &["format 77", "reads format 1"]);
    }
}

#[test]
fn quickstart_keeps_its_folder_and_its_suggestions_work() {
    let bench = Workbench::new();
    let first = bench.run("quickstart --n 1000 --dim 32").ok();
    for word in
        ["recall", "QPS", "p99 ms", "pages/query", "resident size", "on SSD", "kernels", "I/O"]
    {
        assert!(first.stdout.contains(word), "{word:?} is not in: {}", first.stdout);
    }
    let suggested: Vec<&str> = first
        .stdout
        .lines()
        .filter_map(|line| line.split_once("rabitq-quickstart/index").map(|_| line.trim()))
        .collect();
    assert_eq!(suggested.len(), 2, "{}", first.stdout);
    for line in suggested {
        let at = line.find("search ").or(line.find("bench ")).unwrap_or_default();
        bench.run(&line[at..]).ok();
    }

    let base = bench.read("rabitq-quickstart/base.fbin");
    let again = bench.run("quickstart --n 1000 --dim 32").ok();
    assert!(again.stderr.contains("using the data"), "{}", again.stderr);
    bench.run("quickstart --n 900 --dim 16").ok();
    assert_ne!(bench.read("rabitq-quickstart/base.fbin"), base);
    assert_eq!(bench.names(), ["rabitq-quickstart"]);
}

#[test]
fn quickstart_leaves_the_folders_of_others_alone() {
    let bench = Workbench::new();
    fs::create_dir(bench.path("mine")).unwrap_or_default();
    bench.write("mine/base.fbin", b"precious");
    bench.run("quickstart --dir mine --n 100 --dim 8").fails(1, &["mine", "--dir"]);
    assert_eq!(bench.read("mine/base.fbin"), b"precious");
    bench.write("file", b"x");
    bench.run("quickstart --dir file --n 100 --dim 8").fails(1, &["file"]);
}
