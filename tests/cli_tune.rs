//! `tune` keeps operating points in the index, `search --recall` takes them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod workbench;

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use workbench::Workbench;

fn bench() -> Workbench {
    let bench = Workbench::new();
    bench.run("generate --n 6000 --dim 32 --queries 200 --queries-out q.fbin --out b.fbin").ok();
    bench.run("build b.fbin --out i --nlist 60").ok();
    bench
}

fn points(bench: &Workbench, line: &str) -> Vec<Value> {
    bench.run(line).ok().json()
}

#[test]
fn rows_of_the_base_stand_in_for_queries_and_the_points_hold_for_others() {
    let bench = bench();
    let points = points(&bench, "tune i --base b.fbin --k 5 --recall 0.8,0.95 --sample 300 --json");
    assert_eq!(points.len(), 2);
    let mode = |name: &str| fs_err::metadata(bench.path(name)).unwrap().permissions().mode();
    assert_eq!(mode("i/tuning.json"), mode("i/manifest.json"), "whoever may search may read both");
    for (point, target) in points.iter().zip([0.8, 0.95]) {
        assert_eq!(point["target_recall"], target);
        assert!(point["recall"].as_f64().unwrap() >= target, "{point}");
        assert!(point["nprobe"].as_u64().unwrap() <= 60);
    }
    assert!(points[0]["nprobe"].as_u64() <= points[1]["nprobe"].as_u64());
    // Other queries of the same kind reach about as much.
    bench.run("groundtruth --base b.fbin --queries q.fbin --k 5 --out gt.bin").ok();
    let nprobe = &points[1]["nprobe"];
    let (alpha, epsilon) = (&points[1]["alpha"], &points[1]["epsilon"]);
    let line = format!(
        "bench i q.fbin gt.bin --k 5 --nprobe {nprobe} --alpha {alpha} --epsilon {epsilon} --json \
         --no-probe"
    );
    let rows = self::points(&bench, &line);
    assert!(rows[0]["recall"].as_f64().unwrap() > 0.9, "{}", rows[0]);
    // The index is the same index, and search takes its point.
    bench.run("verify i").ok();
    let text = bench.run("search i q.fbin --k 5 --recall 0.9").ok().stdout;
    assert!(text.contains(&format!("nprobe {nprobe}")), "{text}");
    assert!(text.contains("at least 0.9 when the index was tuned"), "{text}");
}

#[test]
fn a_recall_nobody_tuned_for_is_refused_with_those_there_are() {
    let bench = bench();
    bench.run("search i q.fbin --recall 0.9").fails(2, &["knows none", "tune i"]);
    bench.run("groundtruth --base b.fbin --queries q.fbin --k 10 --out gt.bin").ok();
    bench.run("tune i --queries q.fbin --groundtruth gt.bin --recall 0.85").ok();
    bench.run("search i q.fbin --recall 0.85").ok();
    bench.run("search i q.fbin --recall 0.95").fails(2, &["0.85 at k 10"]);
    // Points of an index that was replaced are not taken for the new one's.
    bench.run("build b.fbin --out i --nlist 50 --overwrite").ok();
    bench.run("search i q.fbin --recall 0.85").fails(2, &["knows none"]);
}

#[test]
fn another_base_is_refused() {
    let bench = bench();
    bench.run("generate --n 100 --dim 32 --out other.fbin").ok();
    bench.run("tune i --base other.fbin").fails(1, &["100 rows", "6000"]);
}
