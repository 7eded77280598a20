//! Measured rows: their names, their number, and what they are measured against.

#![allow(clippy::panic)]

mod workbench;
use std::process::{Command, Stdio};

use serde_json::Value;
use workbench::{Rows, Workbench, npy};

const NAMES: &str = "run_id system dataset metric n dim k threads nprobe recall qps qps_min qps_max \
    mean_ms p50_ms p95_ms p99_ms pages_per_query bytes_per_query record prefix_dims bits nlist \
    alpha epsilon inflight pipeline threshold coarse io_backend direct issued dropped wasted \
    survivors reranked lists_probed codes_scanned drain_share resident_bytes ssd_bytes kernels \
    table_bits mean_inflight completed_in_scan route_ms scan_ms drain_ms wait_share \
    target_recall ceiling_reads_per_s read_share rounds queries p999_ms pages_p99 pages_max";

/// A folder with `b.fbin`, `q.fbin`, `gt.bin` of k 20 and an index `i` of 16 lists.
fn measured() -> Workbench {
    let bench = Workbench::new();
    bench.run("generate --n 2000 --dim 32 --out b.fbin --queries 40 --queries-out q.fbin").ok();
    bench.run("groundtruth --base b.fbin --queries q.fbin --k 20 --out gt.bin").ok();
    bench.run("build b.fbin --out i --nlist 16").ok();
    bench
}

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or(f64::NAN)
}

#[test]
fn a_row_has_every_name_and_the_csv_has_the_same() {
    let bench = measured();
    let run = bench.run("bench i q.fbin gt.bin --rounds 1 --csv rows.csv --json").ok();
    let names: Vec<&str> = NAMES.split_whitespace().collect();
    let row = &run.json()[0];
    for name in &names {
        assert!(row.get(name).is_some(), "{name} is not in {row}");
    }
    assert_eq!(row.as_object().map(serde_json::Map::len), Some(names.len()));
    let csv = String::from_utf8(bench.read("rows.csv")).unwrap_or_default();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], names.join(","));
    assert_eq!(lines.len(), 2);
    assert!(number(row, "ceiling_reads_per_s") > 0.0);
    let reads = number(row, "pages_per_query") * number(row, "qps");
    let share = number(row, "read_share") * number(row, "ceiling_reads_per_s");
    assert!((reads / share - 1.0).abs() < 1e-6, "{row}");
    assert!(number(row, "qps_min") <= number(row, "qps"));
    assert!(number(row, "qps") <= number(row, "qps_max"));
    assert_eq!(number(row, "bytes_per_query"), number(row, "pages_per_query") * 4096.0);
    assert_eq!((&row["system"], &row["dataset"]), (&"rabitq-ssd".into(), &"q".into()));
    assert_eq!((&row["rounds"], &row["queries"]), (&1.into(), &40.into()));
    assert!(number(row, "p99_ms") <= number(row, "p999_ms"));
    assert!(number(row, "pages_per_query") <= number(row, "pages_max"));
    assert!(number(row, "pages_p99") <= number(row, "pages_max"));
}

#[test]
fn a_row_is_named_after_its_index_its_data_and_every_parameter() {
    let bench = measured();
    let line = "bench i q.fbin gt.bin --rounds 1 --no-probe --json";
    let info = bench.run("info i --json").ok().json().remove(0);
    let uuid = info["uuid"].as_str().unwrap_or_default().to_string();
    let mut names = std::collections::BTreeSet::new();
    for options in [
        "",
        "--k 5",
        "--nprobe 3",
        "--alpha 1",
        "--pipeline fifo",
        "--epsilon 2",
        "--inflight 3",
        "--threads 3",
        "--threshold paper",
        "--recall 0.5",
        "--dataset mine",
    ] {
        let row = bench.run(&format!("{line} {options}")).ok().json().remove(0);
        let name = row["run_id"].as_str().unwrap_or_default().to_string();
        assert!(name.starts_with(&uuid[..8]), "{name}");
        assert!(names.insert(name), "{options}");
    }
    let row = bench.run(&format!("{line} --dataset mine --csv r.csv")).ok().json().remove(0);
    assert_eq!(row["dataset"], "mine");
    let csv = String::from_utf8(bench.read("r.csv")).unwrap_or_default();
    let cells: Vec<&str> = csv.lines().nth(1).unwrap_or_default().split(',').collect();
    assert_eq!(
        (cells[0].into(), cells[1..3].to_vec()),
        (row["run_id"].clone(), vec!["rabitq-ssd", "mine"])
    );
}

#[test]
fn lists_of_options_are_crossed() {
    let bench = measured();
    let line = "bench i q.fbin gt.bin --k 1,10 --nprobe 1,4,12 --threads 1,2 --alpha 0.5,1 \
                --pipeline naive,full --inflight 4,8 --rounds 1 --no-probe --json";
    let rows = bench.run(line).ok().json();
    assert_eq!(rows.len(), 2 * 3 * 2 * 2 * 2 * 2);
    let recall = |nprobe: u64| {
        let of_k10 = rows.iter().filter(|r| r["k"] == 10 && r["nprobe"] == nprobe);
        of_k10.map(|r| number(r, "recall")).fold(0.0, f64::max)
    };
    assert!(recall(1) < recall(4) && recall(4) < recall(12));
    assert!(rows.iter().all(|row| row["ceiling_reads_per_s"].is_null()));
}

#[test]
fn a_target_recall_is_reached_with_the_least_nprobe() {
    let bench = measured();
    let settings = "--alpha 1 --rounds 1 --no-probe --json";
    let rows = bench.run(&format!("bench i q.fbin gt.bin --recall 0.6,0.9 {settings}")).ok().json();
    assert_eq!(rows.len(), 2);
    for (row, target) in rows.iter().zip([0.6, 0.9]) {
        assert_eq!(number(row, "target_recall"), target);
        assert!(number(row, "recall") >= target, "{row}");
        let fewer = number(row, "nprobe") - 1.0;
        if fewer >= 1.0 {
            let line = format!("bench i q.fbin gt.bin --nprobe {fewer} {settings}");
            assert!(number(&bench.run(&line).ok().json()[0], "recall") < target);
        }
    }
}

#[test]
fn a_recall_out_of_reach_is_said() {
    let bench = measured();
    bench.run("build b.fbin --out rough --nlist 16 --bits 2").ok();
    let run = bench.run("bench rough q.fbin gt.bin --recall 1 --rounds 1 --no-probe --json").ok();
    assert!(run.stderr.contains("out of reach"), "{}", run.stderr);
    assert_eq!(run.json()[0]["nprobe"], 16);
}

#[test]
fn a_sweep_crosses_its_lists_over_indexes_and_goes_on_where_it_stopped() {
    let bench = measured();
    bench.run("build b.fbin --out rough --nlist 16 --bits 3").ok();
    let sweep = "index = [\"rough\"]\nk = [1, 10]\nrecall = [0.5, 0.9]\n\
                 threshold = [\"seeded\", \"paper\"]\npipeline = [\"full\", \"overlapped\"]\n";
    bench.write("sweep.toml", sweep.as_bytes());
    let line = "bench i q.fbin gt.bin --sweep sweep.toml --k 10 --threads 1 --rounds 1 --no-probe \
                --jsonl rows.jsonl --json";
    let first = bench.run(line).ok().json();
    assert_eq!(first.len(), 2 * 2 * 2 * 2);
    assert!(first.iter().all(|row| row["k"] == 10));
    assert_eq!(first.iter().filter(|row| row["bits"] == 3).count(), 8);

    let whole = String::from_utf8(bench.read("rows.jsonl")).unwrap_or_default();
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!(lines.len(), first.len());
    // The last row was being written when the run stopped; the first holds a sign of its own.
    let marked = lines[0].replacen("\"recall\":", "\"recall\":7", 1);
    let cut = &lines[lines.len() - 1][..50];
    let rest = lines[1..lines.len() - 1].join("\n");
    bench.write("rows.jsonl", format!("{marked}\n{rest}\n{cut}").as_bytes());
    let second = bench.run(line).ok().json();
    assert!(number(&second[0], "recall") > 7.0);
    assert_eq!(second[1], first[1]);
    assert_eq!(second.len(), first.len());
    let whole = String::from_utf8(bench.read("rows.jsonl")).unwrap_or_default();
    assert_eq!(whole.lines().count(), first.len());
    assert!(whole.ends_with('\n'));
}

#[test]
fn a_run_that_is_killed_midway_goes_on_with_the_same_rows() {
    let bench = measured();
    bench.run("build b.fbin --out other --nlist 16 --bits 3").ok();
    bench.write("sweep.toml", b"index = [\"other\"]\nk = [1, 5, 10]\nnprobe = [1, 2, 4, 8]\n");
    let line = "bench i q.fbin gt.bin --sweep sweep.toml --threads 1 --rounds 40 --no-probe \
                --jsonl rows.jsonl --json";
    let mut child = Command::new(env!("CARGO_BIN_EXE_rabitq-ssd"))
        .current_dir(bench.path("."))
        .args(line.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{error}"));
    let kept = || {
        let text = fs_err::read_to_string(bench.path("rows.jsonl")).unwrap_or_default();
        text.lines().map(str::to_string).collect::<Vec<String>>()
    };
    while kept().len() < 4 && child.try_wait().is_ok_and(|ended| ended.is_none()) {
        std::thread::yield_now();
    }
    child.kill().and_then(|()| child.wait()).unwrap_or_else(|error| panic!("{error}"));
    let before = kept();
    assert!((4..24).contains(&before.len()), "{} rows when it was killed", before.len());

    let rows = bench.run(line).ok().json();
    assert_eq!(rows.len(), 2 * 3 * 4);
    for (row, line) in rows.iter().zip(&before) {
        // The last line may have been cut by the kill, and is then measured again.
        if let Ok(old) = serde_json::from_str::<Value>(line) {
            assert_eq!(*row, old);
        }
    }
    let names: Vec<&Value> = rows.iter().map(|row| &row["run_id"]).collect();
    let again = bench.run(line).ok().json();
    assert_eq!(again.iter().map(|row| &row["run_id"]).collect::<Vec<_>>(), names);
    assert_eq!(again, rows, "nothing is measured a second time");
}

#[test]
fn outputs_over_inputs_are_refused_before_anything_is_measured() {
    let bench = measured();
    bench.run("build b.fbin --out other --nlist 16").ok();
    bench.write("sweep.toml", b"index = [\"other\"]\n");
    let inputs = ["q.fbin", "gt.bin", "sweep.toml", "i/manifest.json", "other/codes.bin"];
    let before = inputs.map(|name| bench.read(name));
    for option in ["--csv", "--jsonl", "--report", "--svg"] {
        for input in inputs.into_iter().chain(["i", "other", "other/new.csv"]) {
            let line = format!("bench i q.fbin gt.bin --sweep sweep.toml {option} {input}");
            let run = bench.run(&line).fails(2, &["would overwrite", "choose another"]);
            assert_eq!(run.stdout, "", "{line}");
        }
    }
    assert_eq!(inputs.map(|name| bench.read(name)), before);
}

#[test]
fn a_sweep_that_makes_no_sense_is_refused() {
    let bench = measured();
    for (text, word) in
        [("q = [1]", "unknown field"), ("k = [0]", "at least 1"), ("recall = [2.0]", "recall")]
    {
        bench.write("s.toml", text.as_bytes());
        let run = bench.run("bench i q.fbin gt.bin --sweep s.toml");
        assert!(run.code != 0 && run.stderr.contains("s.toml"), "{}", run.stderr);
        assert!(run.stderr.contains(word), "{}", run.stderr);
    }
    bench.write("rows.jsonl", b"{}\n");
    bench.run("bench i q.fbin gt.bin --jsonl rows.jsonl").fails(1, &["rows.jsonl line 1"]);
}

#[test]
fn ground_truth_that_does_not_fit_is_refused() {
    let bench = measured();
    let before = bench.names();
    bench.run("bench i q.fbin gt.bin --k 21 --csv x.csv").fails(2, &["--k 21", "20"]);
    bench.run("bench i q.fbin gt.bin --recall 0.9 --nprobe 4").fails(2, &["--nprobe"]);
    bench.run("bench i q.fbin gt.bin --recall 1.5").fails(2, &["--recall"]);
    bench.run("bench i q.fbin gt.bin --deterministic --alpha 1,0.4").fails(2, &["--alpha 0.4"]);
    bench.run("bench i b.fbin gt.bin").fails(1, &["gt.bin", "40", "2000"]);
    bench.run("bench i q.fbin q.fbin").fails(1, &["q.fbin", "2000 rows"]);
    assert_eq!(bench.names(), before);
    bench.run("groundtruth --base b.fbin --queries q.fbin --k 20 --metric ip --out ip.bin").ok();
    bench.run("bench i q.fbin ip.bin").fails(1, &["ip.bin", "another metric"]);
}

#[test]
fn ties_count_whichever_came_back() {
    let bench = Workbench::new();
    let one = Rows::random(30, 16, 41);
    bench.fbin("b.fbin", &Rows { dim: 16, values: one.values.repeat(8) });
    bench.fbin("q.fbin", &one);
    bench.run("build b.fbin --out i --record f32 --nlist 4").ok();
    bench.run("groundtruth --base b.fbin --queries q.fbin --k 5 --out gt.bin").ok();
    let rows = bench.run("bench i q.fbin gt.bin --k 5 --nprobe 4 --no-probe --json").ok().json();
    assert_eq!(number(&rows[0], "recall"), 1.0);
}

#[test]
fn external_ids_are_returned_and_recognised_by_the_bench() {
    let bench = measured();
    let ids: Vec<u8> = (0..2000u64).flat_map(|row| ((1 << 40) + 7 * row).to_le_bytes()).collect();
    bench.write("ids.npy", &npy("<u8", false, "(2000,)", &ids));
    bench.run("build b.fbin --out e --nlist 16 --ids ids.npy").ok();
    let plain = bench.search("i q.fbin --deterministic");
    for ((rows, _), (ids, _)) in plain.iter().zip(bench.search("e q.fbin --deterministic")) {
        let expected: Vec<u64> = rows.iter().map(|row| (1 << 40) + 7 * row).collect();
        assert_eq!(ids, expected);
    }
    let line = "q.fbin gt.bin --deterministic --rounds 1 --no-probe --json";
    let plain = bench.run(&format!("bench i {line}")).ok().json();
    let external = bench.run(&format!("bench e {line} --ids ids.npy")).ok().json();
    assert_eq!(plain[0]["recall"], external[0]["recall"]);
    assert!(bench.run(&format!("bench e {line}")).ok().stderr.contains("external ids"));
    bench.write("few.npy", &npy("<u8", false, "(3,)", &ids[..24]));
    bench.run("build b.fbin --out f --ids few.npy").fails(2, &["--ids", "3", "2000"]);
}

#[test]
fn people_see_a_table_below_what_the_machine_is() {
    let bench = measured();
    let out = bench.run("bench i q.fbin gt.bin --nprobe 1,2 --rounds 1").ok().stdout;
    for word in ["kernels", "I/O", "ceiling", "recall", "QPS", "p99 ms", "pages/query"] {
        assert!(out.contains(word), "{word:?} is not in: {out}");
    }
    assert!(!out.contains("target"), "{out}");
}

#[test]
fn people_see_targets_the_median_of_the_rounds_and_their_spread() {
    let bench = measured();
    let line = "bench i q.fbin gt.bin --recall 0.5,0.9 --rounds 3 --no-probe --csv rows.csv";
    let out = bench.run(line).ok().stdout;
    let csv = String::from_utf8(bench.read("rows.csv")).unwrap_or_default();
    let names: Vec<&str> = csv.lines().next().unwrap_or_default().split(',').collect();
    for (line, target) in csv.lines().skip(1).zip(["0.5", "0.9"]) {
        let cell = |name: &str| {
            let at = names.iter().position(|n| *n == name).unwrap_or(usize::MAX);
            line.split(',').nth(at).and_then(|cell| cell.parse::<f64>().ok()).unwrap_or(f64::NAN)
        };
        let rounds = ["qps", "qps_min", "qps_max"].map(cell);
        let [median, least, most] = rounds.map(|qps| format!("{qps:.0}"));
        let shown = out.lines().find(|line| line.split_whitespace().nth(2) == Some(target));
        let shown = shown.unwrap_or_else(|| panic!("{target} is not in {out}"));
        let words: Vec<&str> = shown.split_whitespace().collect();
        assert!(words.contains(&median.as_str()), "{median}: {shown}");
        assert!(words.contains(&format!("{least}..{most}").as_str()), "{least}..{most}: {shown}");
    }
}
