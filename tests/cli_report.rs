//! Reports of `bench`: one file that needs nothing else, with every row in it, and a browser that
//! has nothing to complain about.

mod workbench;
use std::process::Command;

use serde_json::Value;
use workbench::Workbench;

/// A folder with `b.fbin`, `q.fbin`, `gt.bin` of k 10 and an index `i` of 16 lists.
fn measured() -> Workbench {
    let bench = Workbench::new();
    bench.run("generate --n 2000 --dim 32 --out b.fbin --queries 20 --queries-out q.fbin").ok();
    bench.run("groundtruth --base b.fbin --queries q.fbin --k 10 --out gt.bin").ok();
    bench.run("build b.fbin --out i --nlist 16").ok();
    bench
}

const SWEEP: &str = "bench i q.fbin gt.bin --nprobe 2,4,8 --pipeline naive,full --alpha 0.4,1 \
                     --inflight 4,16 --threads 1,2 --rounds 1";

fn page(bench: &Workbench) -> String {
    String::from_utf8(bench.read("r.html")).unwrap_or_default()
}

/// The block of JSON in a page.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"data\">").unwrap_or_default();
    let (json, _) = rest.split_once("</script>").unwrap_or_default();
    serde_json::from_str(json).unwrap_or_default()
}

fn sections<'a>(data: &'a Value, kind: &str) -> Vec<&'a Value> {
    let all = data["sections"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().filter(|section| section["kind"] == kind).collect()
}

fn titles(data: &Value, kind: &str) -> Vec<String> {
    let titles = sections(data, kind).into_iter().filter_map(|s| s["title"].as_str());
    titles.map(str::to_string).collect()
}

#[test]
fn a_report_holds_every_row_and_what_all_rows_share() {
    let bench = measured();
    let rows = bench.run(&format!("{SWEEP} --report r.html --json")).ok().json();
    let data = data(&page(&bench));
    let tables = sections(&data, "table");
    let column = |table: &Value, name: &str| {
        let columns = table["columns"].as_array().cloned().unwrap_or_default();
        columns.iter().position(|column| column == name)
    };
    let shown = tables[0]["rows"].as_array().cloned().unwrap_or_default();
    assert_eq!(shown.len(), rows.len());
    for name in ["nprobe", "recall", "qps", "p99_ms", "pages_per_query", "alpha", "pipeline"] {
        let at = column(tables[0], name).unwrap_or(usize::MAX);
        for (shown, row) in shown.iter().zip(&rows) {
            assert_eq!(shown[at], row[name], "{name}");
        }
    }
    assert_eq!(column(tables[0], "dim"), None);
    let shared = tables[1]["rows"].as_array().cloned().unwrap_or_default();
    assert!(shared.contains(&serde_json::json!(["dim", 32])), "{shared:?}");
    let index = tables[2]["rows"].as_array().cloned().unwrap_or_default();
    assert!(index.contains(&serde_json::json!(["nlist", 16])), "{index:?}");
}

#[test]
fn a_plot_is_there_when_something_varies_along_it() {
    let bench = measured();
    bench.run(&format!("{SWEEP} --report r.html --svg figures")).ok();
    let all = data(&page(&bench));
    let plots = titles(&all, "plot");
    for plot in [
        "Recall against QPS",
        "Recall against pages read",
        "Recall against p50 latency",
        "Pages read against alpha",
        "QPS against reads in flight",
        "QPS against threads",
    ] {
        assert!(plots.iter().any(|title| title == plot), "{plot} is not among {plots:?}");
    }
    let timelines = sections(&all, "timeline");
    assert_eq!(timelines.len(), 3);
    let names = bench.path("figures").read_dir().map(|files| files.count()).unwrap_or(0);
    assert_eq!(names, plots.len() + timelines.len());

    bench.run("bench i q.fbin gt.bin --nprobe 4 --rounds 1 --no-probe --report r.html").ok();
    assert_eq!(titles(&data(&page(&bench)), "plot"), Vec::<String>::new());
}

#[test]
fn a_timeline_tells_reads_and_activities_of_each_pipeline() {
    let bench = Workbench::new();
    // Records of this dim have room for their ids: all reads are the pipeline's own.
    bench.run("generate --n 2000 --dim 200 --out b.fbin --queries 20 --queries-out q.fbin").ok();
    bench.run("groundtruth --base b.fbin --queries q.fbin --k 10 --out gt.bin").ok();
    bench.run("build b.fbin --out i --nlist 16").ok();
    let line = "bench i q.fbin gt.bin --nprobe 8 --pipeline naive,overlapped,full --rounds 1";
    bench.run(&format!("{line} --report r.html")).ok();
    let all = data(&page(&bench));
    for timeline in sections(&all, "timeline") {
        let lanes = timeline["lanes"].as_array().cloned().unwrap_or_default();
        assert_eq!(lanes.len(), 3);
        for lane in lanes {
            let activities = lane["activities"].as_array().cloned().unwrap_or_default();
            let times: Vec<f64> = activities.iter().filter_map(|a| a[0].as_f64()).collect();
            assert!(times.is_sorted() && times.last() <= lane["end"].as_f64().as_ref());
            assert_eq!((&activities[0][1], &activities[1][1]), (&"route".into(), &"scan".into()));
            let reads = lane["reads"].as_array().cloned().unwrap_or_default();
            let most = reads.iter().filter_map(|r| r[1].as_u64()).max();
            assert!(most >= Some(1));
            assert_eq!(reads.last().map(|last| &last[1]), Some(&0.into()));
            if lane["name"].as_str().is_some_and(|name| name.starts_with("naive")) {
                assert_eq!(most, Some(1));
            }
        }
    }
}

#[test]
fn a_report_needs_no_network_and_its_tags_are_balanced() {
    let bench = measured();
    bench.run(&format!("{SWEEP} --report r.html --svg figures")).ok();
    let page = page(&bench);
    for reference in ["http://", "https://", "src=", "@import", "url(", "<link"] {
        assert!(!page.contains(reference), "{reference}");
    }
    assert_balanced(&page);
    for file in bench.path("figures").read_dir().into_iter().flatten().flatten() {
        let svg = fs_err::read_to_string(file.path()).unwrap_or_default();
        assert!(svg.starts_with("<svg ") && svg.contains("class=\"title\""));
        assert_eq!(svg.matches("http").count(), 1, "the name space and nothing else");
        assert_balanced(&svg);
    }
}

/// Every tag that opens closes, in order; scripts and styles are not looked into.
fn assert_balanced(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let raw = open.last().is_some_and(|tag| ["script", "style"].contains(tag));
        let tag = rest.split(['>', ' ', '\n']).next().unwrap_or_default();
        if raw && tag.strip_prefix('/') != open.last().copied() {
            continue;
        }
        let inside = rest.split('>').next().unwrap_or_default();
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "before {}", &rest[..rest.len().min(80)]);
        } else if !inside.ends_with('/') && !["!doctype", "meta", "br"].contains(&tag) {
            open.push(tag);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_report_without_a_place_is_refused_before_anything_is_measured() {
    let bench = measured();
    let run = bench.run("bench i q.fbin gt.bin --report no/r.html --json");
    let run = run.fails(1, &["no/r.html"]);
    assert_eq!(run.stdout, "");
    bench.run("bench i q.fbin gt.bin --report q.fbin").fails(2, &["q.fbin", "overwrite"]);
}

#[test]
#[allow(clippy::print_stdout)]
fn a_browser_renders_a_report_without_an_error() {
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok())
    else {
        println!("skipped: no Chromium is installed");
        return;
    };
    let bench = measured();
    bench.run(&format!("{SWEEP} --report r.html")).ok();
    let paper = "bench --paper --base b.fbin --queries q.fbin --groundtruth gt.bin --dir d --quick";
    bench.run(&format!("{paper} --only table1,errors,inflight")).ok();
    for page in ["r.html", "d/report.html"] {
        assert_renders(browser, &bench, page);
    }
}

/// Without a word on the console, at the width of a phone.
fn assert_renders(browser: &str, bench: &Workbench, page: &str) {
    let screenshot = bench.path(&format!("{page}.png"));
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", "--v=0", "--window-size=390,2000"])
        .arg(format!("--user-data-dir={}", bench.path("profile").display()))
        .arg(format!("--screenshot={}", screenshot.display()))
        .arg(format!("file://{}", bench.path(page).display()))
        .output();
    let said = output.map(|o| String::from_utf8_lossy(&o.stderr).into_owned()).unwrap_or_default();
    assert!(!said.contains("CONSOLE"), "{said}");
    assert!(screenshot.metadata().is_ok_and(|file| file.len() > 10_000), "{said}");
}
