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
        // What was built was described without opening it.
        assert_eq!(rows[1]["info"]["resident"], info[0]["resident"]);
        assert_eq!(rows[1]["info"]["list_sizes"], info[0]["list_sizes"]);
    }
    let fit = bench.run("info fit --json").ok().json();
    assert!(fit[0]["resident_bytes"].as_u64() <= Some(150 << 10), "{}", fit[0]);
    let plan = bench.run("build b.fbin --out people").ok().stdout;
    for word in ["resident size", "bytes (", "on SSD", "sign bits", "a page", "Next:"] {
        assert!(plan.contains(word), "{word:?} is not in: {plan}");
    }
    let info = bench.run("info people").ok().stdout;
    for stage in ["check", "train", "assign", "balance", "encode", "merge", "write"] {
        assert!(info.contains(&format!(" {stage}: ")), "{stage} is not in: {info}");
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
fn results_are_never_written_over_what_is_read() {
    let bench = built("");
    let (base, queries, index) = (bench.read("b.fbin"), bench.read("q.fbin"), content(&bench, "i"));
    for line in [
        "search i q.fbin --out q.fbin",
        "search i q.fbin --out ./q.fbin",
        "search i q.fbin --out i/records.bin",
        "search i q.fbin --out i/new.bin",
        "groundtruth --base b.fbin --queries q.fbin --out i/../b.fbin",
        "groundtruth --base b.fbin --queries q.fbin --out q.fbin",
        "convert b.fbin b.fbin --dtype f32",
    ] {
        bench.run(line).fails(2, &["would overwrite", "choose another"]);
    }
    bench
        .run("generate --n 9 --dim 4 --out g.fbin --queries-out ./g.fbin")
        .fails(2, &["same file"]);
    assert_eq!((bench.read("b.fbin"), bench.read("q.fbin")), (base, queries));
    assert_eq!(content(&bench, "i"), index);
    assert_eq!(bench.names(), ["b.fbin", "i", "q.fbin"]);
}

#[test]
fn overwrite_removes_nothing_but_an_index() {
    let bench = built("");
    bench.write("i/notes.txt", b"precious");
    bench.run("build b.fbin --out i --overwrite").fails(2, &["--overwrite", "other things"]);
    assert_eq!(bench.read("i/notes.txt"), b"precious");
    fs::remove_file(bench.path("i/notes.txt")).unwrap_or_default();
    bench.write("i/manifest.json", b"damaged");
    bench.run("build b.fbin --out i --overwrite").ok();

    fs::create_dir(bench.path("site")).unwrap_or_default();
    bench.write("site/manifest.json", b"{\"name\": \"an app\"}");
    bench.run("build b.fbin --out site --overwrite").fails(2, &["--overwrite", "site"]);
    assert_eq!(bench.read("site/manifest.json"), b"{\"name\": \"an app\"}");
    bench.run("build b.fbin --out b.fbin/").fails(1, &["b.fbin exists"]);
    bench.write("line.txt", b"a line without an end");
    bench.run("groundtruth --base b.fbin --queries q.fbin --out gt.bin --k 10 --quiet").ok();
    bench.run("bench i q.fbin gt.bin --jsonl line.txt").fails(1, &["line.txt", "no row"]);
    assert_eq!(bench.read("line.txt"), b"a line without an end");
}

#[cfg(unix)]
#[test]
fn a_build_goes_on_when_nobody_reads_its_plan() {
    let bench = Workbench::new();
    bench.fbin("b.fbin", &Rows::random(400, 24, 57));
    for json in ["", "--json"] {
        let line = format!("build b.fbin --out i --overwrite {json}");
        let (reader, writer) = std::io::pipe().unwrap_or_else(|e| panic!("{e}"));
        drop(reader);
        let status = std::process::Command::new(env!("CARGO_BIN_EXE_rabitq-ssd"))
            .current_dir(bench.path("."))
            .args(line.split_whitespace())
            .stdout(writer)
            .status();
        assert_eq!(status.ok().and_then(|status| status.code()), Some(0));
        bench.run("verify i").ok();
        fs::remove_dir_all(bench.path("i")).unwrap_or_default();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_are_no_utf8_work_and_are_shown_with_replacements() {
    use std::os::unix::ffi::OsStrExt;
    let bench = Workbench::new();
    bench.fbin("b.fbin", &Rows::random(400, 24, 58));
    let odd = |name: &[u8]| bench.path(".").join(std::ffi::OsStr::from_bytes(name));
    let run = |words: &[&std::ffi::OsStr]| {
        let output = assert_cmd::Command::new(env!("CARGO_BIN_EXE_rabitq-ssd"))
            .current_dir(bench.path("."))
            .args(words)
            .arg("--json")
            .output();
        let output = output.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap_or_else(|e| panic!("{e}"))
    };
    let [base, index, truth] =
        [odd(b"\xff.fbin"), odd(b"\xffi"), odd(b"\xffgt")].map(std::path::PathBuf::into_os_string);
    let out = "--out".as_ref();
    run(&["convert".as_ref(), "b.fbin".as_ref(), &base]);
    run(&[
        "groundtruth".as_ref(),
        "--base".as_ref(),
        &base,
        "--queries".as_ref(),
        &base,
        out,
        &truth,
    ]);
    assert!(run(&["build".as_ref(), &base, out, &index]).contains('\u{fffd}'));
    run(&["verify".as_ref(), &index]);
    run(&["search".as_ref(), &index, &base]);
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
