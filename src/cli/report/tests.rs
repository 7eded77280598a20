#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn report() -> Report {
    let axis = |label: &str, spread| Axis { label: label.into(), spread };
    let point = |x, y| Point { x, y, note: format!("x {x}\n\"y\" {y}") };
    let lane = Lane {
        name: "full".into(),
        activities: vec![(0.0, Activity::Route), (10.0, Activity::Scan), (80.0, Activity::Wait)],
        reads: vec![(20.0, 1), (85.0, 0)],
        end: 90.0,
    };
    Report {
        title: "A <title> & more".into(),
        machine: vec![("processor".into(), "x\ny".into())],
        sections: vec![
            Section::Table(Table {
                title: "Rows".into(),
                note: "one </script>".into(),
                columns: vec!["k".into(), "kind".into()],
                rows: vec![vec![json!(10), json!("a<b")], vec![json!(0.123_456), json!(null)]],
            }),
            Section::Plot(Plot {
                title: "Recall against QPS".into(),
                note: "A note".into(),
                x: axis("recall@10", Spread::Linear),
                y: axis("QPS", Spread::Either),
                series: vec![Series {
                    name: "a & b".into(),
                    points: vec![point(0.8, 100.0), point(0.9, 50.0), point(f64::NAN, 1.0)],
                }],
            }),
            Section::Timeline(Timeline {
                title: "Query 0".into(),
                note: String::new(),
                lanes: vec![lane.clone(), lane],
            }),
        ],
    }
}

#[test]
fn the_data_survives_in_the_page() {
    let page = html::page(&report()).unwrap();
    let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let end = start + page[start..].find("</script>").unwrap();
    let data: Value = serde_json::from_str(&page[start..end]).unwrap();
    assert_eq!(data["title"], "A <title> & more");
    assert_eq!(data["sections"][0]["note"], "one </script>");
    assert_eq!(data["sections"][0]["rows"], json!([[10, "a<b"], [0.123_456, null]]));
    assert_eq!(data["sections"][2]["lanes"][0]["activities"][1], json!([10.0, "scan"]));
}

#[test]
fn every_plot_and_timeline_is_a_file_with_title_units_and_legend() {
    let dir = tempfile::tempdir().unwrap();
    let svgs = dir.path().join("new/svgs");
    write_svgs(&report(), &svgs).unwrap();
    let plot = fs_err::read_to_string(svgs.join("01-recall-against-qps.svg")).unwrap();
    for part in [">Recall against QPS<", ">recall@10<", ">QPS<", ">a &amp; b<"] {
        assert!(plot.contains(part), "{part} is not in {plot}");
    }
    assert_eq!(plot.matches("<circle").count(), 2);
    assert!(!plot.contains("NaN"));
    let timeline = fs_err::read_to_string(svgs.join("02-query-0.svg")).unwrap();
    assert!(timeline.contains("µs") && timeline.contains(">reads in flight<"));
    assert_eq!(fs_err::read_dir(&svgs).unwrap().count(), 2);
}

#[test]
fn a_long_title_takes_further_lines() {
    let dir = tempfile::tempdir().unwrap();
    let mut report = report();
    let long = "Appendix A.4 and Figure 12: the error of the prefix estimator on this data";
    for section in &mut report.sections {
        if let Section::Plot(plot) = section {
            plot.title = long.into();
        }
    }
    write_svgs(&report, dir.path()).unwrap();
    let file = fs_err::read_dir(dir.path()).unwrap().map(|f| f.unwrap().path()).min().unwrap();
    let svg = fs_err::read_to_string(file).unwrap();
    let titles = svg.lines().filter(|line| line.contains("class=\"title\""));
    let lines: Vec<&str> =
        titles.map(|line| line.split_once('>').unwrap().1.split_once('<').unwrap().0).collect();
    assert_eq!(lines.join(" "), long);
    assert!(lines.len() == 2 && lines.iter().all(|line| line.len() < 54), "{lines:?}");
}

#[test]
fn a_page_replaces_an_older_one_and_leaves_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("report.html");
    for _ in 0..2 {
        write_html(&report(), &path).unwrap();
    }
    assert_eq!(fs_err::read_dir(dir.path()).unwrap().count(), 1);
    assert!(write_html(&report(), &dir.path().join("no/report.html")).is_err());
}
