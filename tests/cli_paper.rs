//! The paper's configuration, and its experiments on a small generated set.

#![allow(clippy::unwrap_used)]

mod workbench;
use rabitq_ssd::{
    Bound, BuildOptions, CoarseKind, Pipeline, Prefix, RecordKind, SearchOptions, TableBits,
    Threshold,
};
use serde_json::Value;
use workbench::Workbench;

#[test]
fn the_presets_are_the_configuration_of_the_paper() {
    let build = BuildOptions::paper(1_000_000);
    assert_eq!(build.nlist, Some(976));
    assert_eq!((build.bits, build.record), (9, RecordKind::Split));
    assert_eq!((build.bound, build.coarse), (Bound::Paper, CoarseKind::Irq));
    assert_eq!(build.prefix, Prefix::Full);
    assert_eq!(BuildOptions::paper(5).nlist, Some(1));

    let search = SearchOptions::paper();
    assert_eq!(search.pipeline, Pipeline::Full);
    assert_eq!((search.threshold, search.table_bits), (Threshold::Paper, TableBits::Sixteen));
    assert_eq!((search.alpha, search.epsilon), (0.4, 1.9));
    let budgets = [1, 16, 17, 64].map(|threads| search.effective_inflight(threads));
    assert_eq!(budgets, [16, 16, 8, 8]);
}

#[test]
fn a_preset_stands_for_every_option_that_is_not_given() {
    let bench = Workbench::new();
    bench.run("generate --n 3000 --dim 64 --out b.fbin --queries 8 --queries-out q.fbin").ok();
    bench.run("groundtruth --base b.fbin --queries q.fbin --k 10 --out gt.bin").ok();
    bench.run("build b.fbin --out paper --preset paper").ok();
    let manifest: Value = serde_json::from_slice(&bench.read("paper/manifest.json")).unwrap();
    assert_eq!(manifest["bound"], "paper");
    let info = bench.run("info paper --json").ok().json().remove(0);
    assert_eq!((&info["nlist"], &info["coarse"]), (&2.into(), &"irq".into()));
    assert_eq!((&info["record"], &info["bits"]), (&"split".into(), &9.into()));

    let given = "--bound per-vector --nlist 7 --bits 4 --coarse flat";
    bench.run(&format!("build b.fbin --out mixed --preset paper {given}")).ok();
    let info = bench.run("info mixed --json").ok().json().remove(0);
    assert_eq!((&info["bound"], &info["nlist"]), (&"per-vector".into(), &7.into()));
    assert_eq!((&info["bits"], &info["coarse"]), (&4.into(), &"flat".into()));

    let line = "bench paper q.fbin gt.bin --preset paper --rounds 1 --no-probe --json";
    let row = bench.run(line).ok().json().remove(0);
    assert_eq!((&row["threshold"], &row["table_bits"]), (&"paper".into(), &"16".into()));
    let row = bench.run(&format!("{line} --threshold seeded")).ok().json().remove(0);
    assert_eq!((&row["threshold"], &row["table_bits"]), (&"seeded".into(), &"16".into()));
    bench.run("build b.fbin --out x --preset newspaper").fails(2, &["--preset", "default, paper"]);
}

/// What the tables begin with.
const TABLES: [&str; 17] = [
    "Table 1, k = 10:",
    "Table 1, k = 100:",
    "Section 4.4:",
    "Figure 3: coarse quantizers, k = 10, n/1024 lists",
    "Figure 3: coarse quantizers, k = 10, 187 lists",
    "Tables 3 and 8, Figures 5 and 6:",
    "Table 4:",
    "Figure 7(a):",
    "Figure 7(b):",
    "Figures 1, 8 and 9:",
    "Table 5 and Figure 13:",
    "Table 6:",
    "Appendix A.4 and Figure 12:",
    "Table 7:",
    "Appendix B: --deterministic over 20 runs",
    "Figure 14:",
    "Figure 15:",
];

/// The rows of one experiment in `results.jsonl`.
fn results(bench: &Workbench, experiment: &str) -> Vec<Value> {
    let text = String::from_utf8(bench.read("d/results.jsonl")).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let rows: Vec<Value> = rows.filter(|row: &Value| row["experiment"] == experiment).collect();
    assert!(!rows.is_empty(), "{experiment}");
    rows
}

#[test]
fn every_experiment_of_the_paper_runs_and_its_figures_are_finite() {
    let bench = Workbench::new();
    bench.run("generate --n 12000 --dim 64 --out b.fbin --queries 50 --queries-out q.fbin").ok();
    bench.run("groundtruth --base b.fbin --queries q.fbin --k 100 --out gt.bin").ok();
    let line = "bench --paper --base b.fbin --queries q.fbin --groundtruth gt.bin --dir d --quick \
                --threads 1,2 --io-backend memory --svg figures";
    let run = bench.run(line).ok();
    for stage in ["[1 of 12] table1: 0 rows", "[12 of 12] alpha:", "since the start"] {
        assert!(run.stderr.contains(stage), "{stage} is not in: {}", run.stderr);
    }
    let out = run.stdout;
    for title in TABLES {
        assert!(out.contains(title), "{title} is not in: {out}");
    }
    let page = String::from_utf8(bench.read("d/report.html")).unwrap();
    for title in TABLES {
        assert!(page.contains(title), "{title} is not in the report");
    }
    assert!(!out.contains("NaN") && !out.contains("inf"), "{out}");
    for (experiment, rows) in [
        ("table1", 2 * 2 * 6),
        ("repeat", 2 * 7),
        ("table5", 5 * 2 * 2),
        ("table6", 2),
        ("scaling", 4 * 2),
        ("figure14", 2 * 2 * 6),
        ("errors", (2 * 3 + 1) * 3),
        ("determinism", 2 * 3),
        ("quantile", 2 * 5 * 2),
    ] {
        assert_eq!(results(&bench, experiment).len(), rows, "{experiment}");
    }
    figures_are_in_the_report_and_in_files(&bench, &page);
    quantizers_are_compared_at_equal_effort(&results(&bench, "coarse"));
    reads_follow_the_pipeline(&results(&bench, "table1"));
    bounds_keep_their_promise(&results(&bench, "errors"), &results(&bench, "quantile"));
    let repeatable = |row: &&Value| row["variant"] == "deterministic";
    for row in results(&bench, "determinism").iter().filter(repeatable) {
        assert_eq!(row["agreement"]["top_k"], 1.0, "{row}");
        assert_eq!(row["recall_spread_pp"], 0.0, "{row}");
    }
    for row in results(&bench, "repeat") {
        assert_eq!(row["identical"], true, "{row}");
    }
}

/// Plots, and a timeline of every pipeline for each k and number of threads: the same in the page
/// and as files.
fn figures_are_in_the_report_and_in_files(bench: &Workbench, page: &str) {
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    let data: Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    let sections = data["sections"].as_array().unwrap();
    let of = |kind: &str| sections.iter().filter(|s| s["kind"] == kind).collect::<Vec<_>>();
    let (plots, timelines) = (of("plot"), of("timeline"));
    assert_eq!(timelines.len(), 2 * 2);
    for timeline in &timelines {
        let lanes = timeline["lanes"].as_array().unwrap();
        let names: Vec<&str> =
            lanes.iter().map(|l| l["name"].as_str().unwrap().split(',').next().unwrap()).collect();
        assert_eq!(names, ["naive", "coalesced", "overlapped", "scheduled", "full"]);
        for lane in lanes {
            assert!(lane["reads"].as_array().unwrap().len() > 1, "{}", timeline["title"]);
        }
    }
    let files = bench.path("figures").read_dir().unwrap().count();
    assert_eq!(files, plots.len() + timelines.len());
}

/// Every quantizer, with few lists and many, at the nprobe of `flat` and at its own.
fn quantizers_are_compared_at_equal_effort(rows: &[Value]) {
    for nlist in [11, 187] {
        let of = |coarse: &str| {
            rows.iter().filter(|r| r["nlist"] == nlist && r["coarse"] == coarse).collect::<Vec<_>>()
        };
        let flat = of("flat");
        assert_eq!(flat.len(), 2 * 2, "two recalls, two numbers of threads");
        for coarse in ["flat", "hnsw", "irq"] {
            let found = of(coarse);
            for like in &flat {
                assert!(found.iter().any(|r| r["nprobe"] == like["nprobe"]), "{coarse}");
            }
            for row in found {
                let share = row["lists_found"].as_f64().unwrap();
                let least = if coarse == "flat" { 1.0 } else { 0.7 };
                assert!((least..=1.0).contains(&share), "{row}");
                assert!(row["route_ms"].as_f64().unwrap() <= row["mean_ms"].as_f64().unwrap());
            }
        }
    }
}

#[test]
fn a_thousand_neighbours_are_searched_for_where_the_ground_truth_holds_them() {
    let bench = Workbench::new();
    bench.run("generate --n 11000 --dim 64 --out b.fbin --queries 9 --queries-out q.fbin").ok();
    bench.run("groundtruth --base b.fbin --queries q.fbin --k 1000 --out gt.bin").ok();
    let line = "bench --paper --base b.fbin --queries q.fbin --groundtruth gt.bin --dir d --quick \
                --threads 1 --io-backend memory --max-queries 4";
    let out = bench.run(&format!("{line} --only operating-points,inflight")).ok().stdout;
    assert!(out.contains("Figure 14"), "{out}");
    for experiment in ["operating_points", "figure14"] {
        let rows = results(&bench, experiment);
        let of_k = |k: u64| rows.iter().filter(|row| row["k"] == k).count();
        assert!(of_k(1000) >= 6 && of_k(10) >= 6, "{experiment}");
        for row in rows.iter().filter(|row| row["k"] == 1000) {
            assert_eq!((&row["queries"], &row["rounds"]), (&4.into(), &1.into()));
            assert!(row["reranked"].as_f64() >= Some(900.0), "{row}");
            assert!(row["recall"].as_f64() >= Some(0.5), "{row}");
        }
    }
}

/// What holds whatever the timing: one read a page is at most one a survivor, waiting for a better
/// threshold saves reads, and blocking pipelines, which see every result before they decide, read
/// nothing in vain.
fn reads_follow_the_pipeline(rows: &[Value]) {
    let number = |row: &Value, name: &str| row[name].as_f64().unwrap();
    for k in [10, 100] {
        let of = |pipeline: &str| {
            let found = rows
                .iter()
                .find(|row| row["pipeline"] == pipeline && row["k"] == k && row["threads"] == 1);
            found.unwrap()
        };
        let issued = |pipeline: &str| number(of(pipeline), "issued");
        assert!(issued("naive") >= issued("coalesced"));
        assert!(issued("overlapped") >= issued("scheduled"));
        assert_eq!(number(of("naive"), "wasted"), 0.0);
        assert!(number(of("full"), "nprobe") < number(of("full"), "nlist"));
    }
}

/// Misses of the tight bound are near 2.87 %, of synthetic pairs, at every prefix length.
fn bounds_keep_their_promise(errors: &[Value], quantile: &[Value]) {
    let synthetic = errors.iter().filter(|row| row["pairs"].as_str().unwrap().contains("beta"));
    for row in synthetic.filter(|row| row["bound"] == "tight") {
        let rate = row["miss_rate"].as_f64().unwrap();
        assert!((0.022..0.036).contains(&rate), "{row}");
    }
    for rows in quantile.chunks(2 * 5) {
        let shares: Vec<f64> =
            rows.iter().step_by(2).map(|row| row["tight"].as_f64().unwrap()).collect();
        assert!(shares.is_sorted() && shares[0] > 0.2 && shares[4] > 0.9, "{shares:?}");
    }
}

#[test]
fn experiments_are_chosen_by_name_and_indexes_are_used_again() {
    let bench = Workbench::new();
    bench.run("generate --n 1500 --dim 64 --out b.fbin --queries 10 --queries-out q.fbin").ok();
    bench.run("groundtruth --base b.fbin --queries q.fbin --k 10 --out gt.bin").ok();
    let line = "bench --paper --base b.fbin --queries q.fbin --groundtruth gt.bin --dir d --quick";
    let out = bench.run(&format!("{line} --only building")).ok().stdout;
    assert!(out.contains("Table 6") && !out.contains("Table 1"), "{out}");
    assert!(out.contains("kernels") && out.contains("system"), "{out}");
    let built = bench.read("d/b-paper.index/build.json");
    bench.run(&format!("{line} --only building,quantile")).ok();
    assert_eq!(bench.read("d/b-paper.index/build.json"), built);

    bench.run(&format!("{line} --only table9")).fails(2, &["table9", "table1"]);
    bench.run(&format!("{line} --nprobe 4")).fails(2, &["--nprobe"]);
    bench.run("bench --paper --base b.fbin --dir d").fails(2, &["--queries"]);
    bench.run("bench --quick").fails(2, &["--paper"]);
    bench.run(&format!("{line} --max-queries 0")).fails(2, &["--max-queries"]);
    bench.run(&format!("{line} --svg gt.bin")).fails(2, &["gt.bin", "overwrite"]);
    bench.run(&line.replace("q.fbin", "b.fbin")).fails(1, &["gt.bin"]);
}
