//! The right number of the right results, in the right order, whatever the options.

mod workbench;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use workbench::{Rows, Workbench};

const EXACT: &str = "--nprobe 1000000 --alpha 1 --epsilon 4";

/// A folder with `b.fbin`, `q.fbin` and an index `i`.
fn indexed(n: usize, dim: usize, build: &str) -> (Workbench, Rows, Rows) {
    let bench = Workbench::new();
    let (base, queries) = (Rows::random(n, dim, 31), Rows::random(8, dim, 32));
    bench.fbin("b.fbin", &base);
    bench.fbin("q.fbin", &queries);
    bench.run(&format!("build b.fbin --out i {build}")).ok();
    (bench, base, queries)
}

#[test]
fn one_small_list_is_not_enough_so_the_next_ones_are_visited() {
    let (bench, _, _) = indexed(60, 100, "--nlist 45");
    for (ids, scores) in bench.search("i q.fbin --k 11 --nprobe 1") {
        assert_eq!(ids.len(), 11);
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 11);
        assert!(ids.iter().all(|&id| id < 60) && scores.iter().all(|s| s.is_finite()));
    }
}

#[test]
fn k_above_n_returns_n_and_k_of_0_is_refused() {
    let (bench, base, queries) = indexed(5, 16, "--record f32");
    for k in [5, 10, 1_000_000_000] {
        for (query, (ids, _)) in bench.search(&format!("i q.fbin --k {k}")).iter().enumerate() {
            let nearest = base.nearest(queries.row(query), 5, "l2");
            assert_eq!(*ids, nearest.iter().map(|&(id, _)| id).collect::<Vec<_>>());
        }
    }
    bench.run("search i q.fbin --k 0").fails(2, &["--k", "at least 1"]);
}

#[test]
fn nprobe_below_1_is_refused_and_above_nlist_means_all_lists() {
    let (bench, _, _) = indexed(300, 16, "--nlist 6 --record f32");
    bench.run("search i q.fbin --nprobe 0").fails(2, &["--nprobe", "at least 1"]);
    bench.run("search i q.fbin --nprobe -1").fails(2, &["--nprobe", "at least 1"]);
    let all = bench.search("i q.fbin --nprobe 6 --deterministic");
    for nprobe in [7, 1_000_000_000] {
        let line = format!("i q.fbin --nprobe {nprobe} --deterministic");
        assert_eq!(bench.search(&line), all);
        let run = bench.run(&format!("search {line}")).ok();
        assert!(run.stderr.contains("warning: ") && run.stderr.contains("6"), "{}", run.stderr);
    }
}

#[test]
fn alpha_epsilon_and_names_out_of_range_are_refused() {
    let (bench, _, _) = indexed(40, 8, "");
    for option in [
        "--alpha 0",
        "--alpha -0.5",
        "--alpha 1.5",
        "--alpha nan",
        "--epsilon -1",
        "--epsilon inf",
        "--inflight 0",
        "--threads 0",
        "--pipeline eager",
        "--threshold none",
        "--table-bits 4",
        "--io-backend floppy",
        "--direct maybe",
        "--io-timeout soon",
        "--io-timeout -1",
        "--rows 5..99",
        "--rows x",
        "--deterministic --alpha 0.4",
    ] {
        let run = bench.run(&format!("search i q.fbin --out r.bin {option}"));
        run.fails(2, &[option.split(' ').next().unwrap_or_default()]);
    }
    bench.run("search i q.fbin --deterministic --alpha 1").ok();
    assert!(!bench.path("r.bin").exists());
}

#[test]
fn as_many_lists_are_visited_as_asked_for() {
    let bench = Workbench::new();
    let mut base = Rows { dim: 12, values: vec![0.0; 12 * 12] };
    for row in 0..12 {
        base.row_mut(row)[row] = 100.0;
    }
    bench.fbin("b.fbin", &base);
    bench.run("build b.fbin --out i --nlist 12").ok();
    bench.run("groundtruth --base b.fbin --queries b.fbin --k 1 --out gt.bin").ok();
    let line = "bench i b.fbin gt.bin --k 1 --nprobe 1,5,11,12 --rounds 1 --no-probe --json";
    let visited: Vec<_> =
        bench.run(line).ok().json().iter().map(|row| row["lists_probed"].as_f64()).collect();
    assert_eq!(visited, [Some(1.0), Some(5.0), Some(11.0), Some(12.0)]);
}

#[test]
fn without_nprobe_the_documented_default_is_used() {
    let (bench, _, _) = indexed(2000, 16, "--nlist 200 --record f32");
    let default = bench.search("i q.fbin --deterministic");
    assert_eq!(default, bench.search("i q.fbin --deterministic --nprobe 128 --k 10"));
    assert_ne!(default, bench.search("i q.fbin --deterministic --nprobe 1"));
}

#[test]
fn recall_rises_to_one_with_bits_under_inner_product() {
    let bench = Workbench::new();
    let mut base = Rows::random(2000, 64, 33);
    for row in 0..2000 {
        let scale = 10f32.powf(row as f32 / 1000.0 - 1.0);
        base.row_mut(row).iter_mut().for_each(|v| *v *= scale);
    }
    bench.fbin("b.fbin", &base);
    bench.fbin("q.fbin", &Rows::random(50, 64, 34));
    bench.run("groundtruth --base b.fbin --queries q.fbin --k 10 --metric ip --out gt.bin").ok();
    let recall = |bits: u32| {
        bench.run(&format!("build b.fbin --out i{bits} --metric ip --bits {bits} --nlist 8")).ok();
        let line = format!(
            "bench i{bits} q.fbin gt.bin --nprobe 8 --alpha 1 --epsilon 3 --rounds 1 --no-probe --json"
        );
        bench.run(&line).ok().json()[0]["recall"].as_f64().unwrap_or(0.0)
    };
    let recalls = [2, 4, 9].map(recall);
    assert!(recalls[0] < recalls[1] && recalls[1] < recalls[2], "{recalls:?}");
    assert!(recalls[2] >= 0.99, "{recalls:?}");
}

#[test]
fn cosine_and_l2_pick_different_rows() {
    let bench = Workbench::new();
    bench.fbin("b.fbin", &Rows::of(&[&[10.0, 0.0], &[1.0, 0.1]]));
    bench.fbin("q.fbin", &Rows::of(&[&[1.0, -0.1]]));
    for (metric, first) in [("cosine", 0), ("l2", 1)] {
        bench.run(&format!("build b.fbin --out {metric} --metric {metric} --record f32")).ok();
        assert_eq!(bench.search(&format!("{metric} q.fbin --k 1"))[0].0, [first]);
    }
}

#[test]
fn raw_records_return_exact_scores_in_order_for_every_metric() {
    for metric in ["l2", "ip", "cosine"] {
        let (bench, base, queries) =
            indexed(500, 40, &format!("--nlist 7 --record f32 --metric {metric}"));
        for (query, (ids, scores)) in
            bench.search(&format!("i q.fbin --k 50 {EXACT}")).iter().enumerate()
        {
            let nearest = base.nearest(queries.row(query), 50, metric);
            let expected: Vec<u64> = nearest.iter().map(|&(id, _)| id).collect();
            assert_eq!(ids, &expected, "{metric} query {query}");
            for (found, (_, own)) in scores.iter().zip(&nearest) {
                assert!((found - own).abs() <= 1e-5 * (1.0 + own.abs()), "{metric}: {found} {own}");
            }
        }
    }
}

#[test]
fn code_records_return_close_scores_in_order_for_every_metric() {
    for metric in ["l2", "ip", "cosine"] {
        let (bench, base, queries) = indexed(500, 64, &format!("--nlist 7 --metric {metric}"));
        for (query, (ids, scores)) in
            bench.search(&format!("i q.fbin --k 20 {EXACT}")).iter().enumerate()
        {
            let sign = if metric == "l2" { 1.0 } else { -1.0 };
            assert!(scores.windows(2).all(|pair| sign * pair[0] <= sign * pair[1]), "{metric}");
            for (&id, score) in ids.iter().zip(scores) {
                let own = workbench::score(base.row(id as usize), queries.row(query), metric);
                assert!((own - score).abs() <= 0.01 * (1.0 + own.abs()), "{metric}: {score} {own}");
            }
        }
    }
}

#[test]
fn equal_scores_are_ordered_by_id() {
    let bench = Workbench::new();
    let one = Rows::random(20, 16, 35);
    bench.fbin("b.fbin", &Rows { dim: 16, values: one.values.repeat(5) });
    bench.fbin("q.fbin", &one);
    bench.run("build b.fbin --out i --nlist 3 --record f32").ok();
    for (query, (ids, _)) in bench.search(&format!("i q.fbin --k 5 {EXACT}")).iter().enumerate() {
        let copies: Vec<u64> = (0..5).map(|copy| (copy * 20 + query) as u64).collect();
        assert_eq!(*ids, copies);
    }
}

#[test]
fn any_number_of_threads_gives_the_same_results() {
    let (bench, _, _) = indexed(3000, 32, "--nlist 20");
    let one = bench.search("i q.fbin --nprobe 5 --deterministic --threads 1");
    for (ids, _) in &one {
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    }
    for threads in [2, 32, 128] {
        let line = format!("i q.fbin --nprobe 5 --deterministic --threads {threads}");
        assert_eq!(bench.search(&line), one, "{threads}");
    }
}

#[test]
fn the_deterministic_mode_repeats_itself_over_backends() {
    let (bench, _, _) = indexed(3000, 32, "--nlist 20");
    let first = bench.search("i q.fbin --nprobe 8 --deterministic");
    let mut lines = vec!["", "", "", "--io-backend pread", "--io-backend memory", "--direct off"];
    for line in ["--io-backend io_uring", "--io-backend aio", "--io-backend aio --direct off"] {
        if bench.run(&format!("info i {line}")).code == 0 {
            lines.push(line);
        }
    }
    for line in lines {
        assert_eq!(bench.search(&format!("i q.fbin --nprobe 8 --deterministic {line}")), first);
    }
}

#[test]
fn rows_select_queries_and_keep_their_numbers() {
    let (bench, _, _) = indexed(200, 16, "");
    let all = bench.run("search i q.fbin --deterministic --json").ok().stdout;
    let some = bench.run("search i q.fbin --deterministic --json --rows 2..4").ok().stdout;
    let expected: Vec<&str> = all.lines().skip(2).take(2).collect();
    assert_eq!(some.lines().collect::<Vec<_>>(), expected);
    assert!(some.starts_with("{\"query\":2,"));
}

#[test]
fn results_are_written_in_the_shape_of_ground_truth() {
    let (bench, base, queries) = indexed(6, 16, "--record f32");
    bench.run("groundtruth --base b.fbin --queries q.fbin --k 6 --out gt.bin").ok();
    bench.run(&format!("search i q.fbin --k 6 {EXACT} --out r.bin")).ok();
    let (truth, found) = (bench.read("gt.bin"), bench.read("r.bin"));
    assert_eq!(truth.len(), found.len());
    let ids = 8 + 4 * 6 * queries.n();
    assert_eq!(truth[..ids], found[..ids]);
    bench.run(&format!("search i q.fbin --k 1000000000 {EXACT} --out wide.bin")).ok();
    assert_eq!(bench.read("wide.bin")[4..8], (base.n() as u32).to_le_bytes());
}

#[test]
fn people_see_a_table_and_what_ran() {
    let (bench, _, _) = indexed(300, 16, "");
    let out = bench.run("search i q.fbin").ok().stdout;
    for word in ["query", "QPS", "pages read", "kernels", "I/O", "... and 3 more"] {
        assert!(out.contains(word), "{word:?} is not in: {out}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let (bench, _, _) = indexed(2000, 16, "--record f32");
    let mut child = Command::new(env!("CARGO_BIN_EXE_rabitq-ssd"))
        .current_dir(bench.path(""))
        .args(["search", "i", "b.fbin", "--k", "100", "--json", "--quiet"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| unreachable!("{error}"));
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).unwrap_or_default();
    }
    let mut errors = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut errors).unwrap_or_default();
    }
    assert_eq!(
        (child.wait().ok().and_then(|status| status.code()), errors.as_str()),
        (Some(0), "")
    );
    assert!(line.starts_with("{\"query\":0,"));
}

#[test]
fn a_query_that_takes_too_long_fails_and_says_how_long_it_had() {
    let (bench, _, _) = indexed(3000, 32, "");
    let search = |seconds: &str| bench.run(&format!("search i q.fbin --query-timeout {seconds}"));
    search("60").ok();
    search("0.000001").fails(1, &["was not answered within 0.001 ms", "allow more time"]);
    for wrong in ["0", "-1", "soon", "inf"] {
        search(wrong).fails(2, &["--query-timeout", "is not a number of seconds above 0"]);
    }
}
