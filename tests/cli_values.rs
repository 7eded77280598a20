//! Vectors of every shape, and vectors that are none: built, searched, or refused with a reason.

mod workbench;
use workbench::{Rows, Workbench, bin, floats, npy};

/// No pruning that could lose anything.
const EXACT: &str = "--nprobe 1000000 --alpha 1 --epsilon 4";

/// Build raw records of `base`, search `queries` exhaustively, compare with brute force.
fn assert_exact(base: &Rows, queries: &Rows, metric: &str, build: &str) {
    let bench = Workbench::new();
    bench.fbin("b.fbin", base);
    bench.fbin("q.fbin", queries);
    bench.run(&format!("build b.fbin --out i --record f32 --metric {metric} {build}")).ok();
    let k = base.n().min(10);
    let results = bench.search(&format!("i q.fbin --k {k} {EXACT}"));
    assert_eq!(results.len(), queries.n());
    for (query, (ids, scores)) in results.iter().enumerate() {
        let nearest = base.nearest(queries.row(query), k, metric);
        let what = format!("n {} dim {} {metric} query {query}", base.n(), base.dim);
        for (rank, (expected, &score)) in nearest.iter().zip(scores).enumerate() {
            let slack = 1e-4 * (1.0 + expected.1.abs());
            assert!(
                (expected.1 - score).abs() <= slack,
                "{what} rank {rank}: {score} {expected:?}"
            );
        }
        // Ids may differ only where scores are equal in f32.
        for (id, &score) in ids.iter().zip(scores) {
            let own = workbench::score(base.row(*id as usize), queries.row(query), metric);
            assert!(
                (own - score).abs() <= 1e-4 * (1.0 + own.abs()),
                "{what}: id {id} {own} {score}"
            );
        }
        assert_eq!(ids.len(), k, "{what}");
    }
}

#[test]
fn nan_rows_are_refused_with_the_first_and_the_count_or_left_out() {
    let bench = Workbench::new();
    let mut base = Rows::random(1000, 32, 3);
    for bad in 0..24 {
        base.row_mut(17 + 40 * bad)[bad % 32] = f32::NAN;
    }
    bench.fbin("b.fbin", &base);
    bench.fbin("q.fbin", &Rows::random(5, 32, 4));
    bench.run("build b.fbin --out i --nlist 1").fails(1, &["b.fbin", "row 17", "24 of 1000"]);
    assert_eq!(bench.names(), ["b.fbin", "q.fbin"]);

    bench.run("build b.fbin --out i --nlist 1 --record f32 --on-invalid skip").ok();
    let valid = |id: u64| base.row(id as usize).iter().all(|v| v.is_finite());
    let queries = Rows::random(5, 32, 4);
    for (query, (ids, _)) in bench.search(&format!("i q.fbin --k 20 {EXACT}")).iter().enumerate() {
        let mut nearest = base.nearest(queries.row(query), 1000, "l2");
        nearest.retain(|&(id, _)| valid(id));
        let expected: Vec<u64> = nearest.iter().take(20).map(|&(id, _)| id).collect();
        assert_eq!(ids, &expected, "query {query}");
    }
}

#[test]
fn a_base_of_nothing_but_nan_is_an_error_that_leaves_nothing_behind() {
    let bench = Workbench::new();
    bench.fbin("b.fbin", &Rows { dim: 8, values: vec![f32::NAN; 8 * 50] });
    bench.run("build b.fbin --out i").fails(1, &["50 of 50"]);
    bench.run("build b.fbin --out i --on-invalid skip").fails(1, &[]);
    assert_eq!(bench.names(), ["b.fbin"]);
}

#[test]
fn zero_rows_under_cosine_score_0_and_rank_last() {
    let bench = Workbench::new();
    let mut base = Rows::random(1000, 32, 5);
    for zero in 0..10 {
        base.row_mut(100 * zero).fill(0.0);
    }
    let queries = Rows::random(3, 32, 6);
    bench.fbin("b.fbin", &base);
    bench.fbin("q.fbin", &queries);
    let built = bench.run("build b.fbin --out i --metric cosine --record f32").ok();
    assert!(built.stderr.contains("10 rows are zero"), "{}", built.stderr);
    for (query, (ids, scores)) in
        bench.search(&format!("i q.fbin --k 1000 {EXACT}")).iter().enumerate()
    {
        assert_eq!(ids.len(), 1000);
        assert_eq!(ids[990..], [0, 100, 200, 300, 400, 500, 600, 700, 800, 900]);
        assert_eq!(scores[990..], [0.0; 10]);
        let best = base.nearest(queries.row(query), 1, "cosine")[0];
        assert_eq!(ids[0], best.0);
    }
}

#[test]
fn an_index_of_nothing_but_zero_rows_is_searched_with_defaults() {
    let bench = Workbench::new();
    let zeros = Rows { dim: 16, values: vec![0.0; 16 * 20] };
    bench.fbin("b.fbin", &zeros);
    bench.fbin("q.fbin", &Rows::random(2, 16, 93));
    bench.run("build b.fbin --out i --metric cosine").ok();
    for (ids, scores) in bench.search("i q.fbin --k 3") {
        assert_eq!((ids, scores), (vec![0, 1, 2], vec![0.0; 3]));
    }
    bench.run("groundtruth --base b.fbin --queries q.fbin --metric cosine --k 3 --out gt.bin").ok();
    let rows = bench.run("bench i q.fbin gt.bin --k 3 --no-probe --json").ok().json();
    assert_eq!(rows[0]["recall"], 1.0, "{rows:?}");
}

#[test]
fn a_zero_query_and_a_constant_query_have_finite_scores_and_the_right_neighbours() {
    let queries = Rows::of(&[&[0.0; 24], &[0.5; 24]]);
    for metric in ["l2", "ip"] {
        assert_exact(&Rows::random(600, 24, 7), &queries, metric, "--nlist 8");
    }
}

#[test]
fn a_zero_query_scores_0_everywhere_under_cosine() {
    let bench = Workbench::new();
    bench.fbin("b.fbin", &Rows::random(200, 16, 8));
    bench.fbin("q.fbin", &Rows::of(&[&[0.0; 16]]));
    bench.run("build b.fbin --out i --metric cosine --record f32 --nlist 4").ok();
    let results = bench.search(&format!("i q.fbin --k 5 {EXACT}"));
    assert_eq!(results, [(vec![0, 1, 2, 3, 4], vec![0.0; 5])]);
}

#[test]
fn as_many_lists_as_rows_and_identical_rows_work() {
    let distinct = Rows::random(50, 12, 9);
    assert_exact(&distinct, &distinct, "l2", "--nlist 50");

    let bench = Workbench::new();
    let row = Rows::random(1, 12, 10);
    bench.fbin("b.fbin", &Rows { dim: 12, values: row.values.repeat(1000) });
    bench.fbin("q.fbin", &row);
    for record in ["split", "f32"] {
        bench.run(&format!("build b.fbin --out {record} --nlist 4 --record {record}")).ok();
        let (ids, scores) = &bench.search(&format!("{record} q.fbin --k 10 {EXACT}"))[0];
        assert_eq!(ids.len(), 10, "{record}");
        assert!(scores.iter().all(|score| score.abs() < 1e-6), "{record}: {scores:?}");
    }
}

#[test]
fn more_lists_than_rows_are_refused_with_the_largest_that_fit() {
    let bench = Workbench::new();
    bench.fbin("b.fbin", &Rows::random(796, 8, 11));
    bench.run("build b.fbin --out i --nlist 1024").fails(2, &["--nlist", "1024", "796"]);
    assert_eq!(bench.names(), ["b.fbin"]);
    bench.run("build b.fbin --out i").ok();
}

#[test]
fn tiny_bases_are_searched_exactly_with_defaults() {
    for n in [1, 2, 10, 100] {
        let bench = Workbench::new();
        let base = Rows::random(n, 16, 12);
        bench.fbin("b.fbin", &base);
        bench.run("build b.fbin --out i --record f32").ok();
        for (query, (ids, _)) in bench.search("i b.fbin").iter().enumerate() {
            let nearest = base.nearest(base.row(query), 10, "l2");
            assert_eq!(*ids, nearest.iter().map(|&(id, _)| id).collect::<Vec<_>>(), "n {n}");
        }
    }
}

#[test]
fn files_without_rows_are_refused() {
    let bench = Workbench::new();
    bench.write("none.fbin", &bin(0, 8, &[]));
    bench.write("header.fbin", &[0; 4]);
    bench.write("empty.fbin", &[]);
    for name in ["none.fbin", "header.fbin", "empty.fbin"] {
        bench.run(&format!("build {name} --out i")).fails(1, &[name]);
    }
    assert_eq!(bench.names(), ["empty.fbin", "header.fbin", "none.fbin"]);
}

#[test]
fn odd_dims_give_the_same_neighbours_as_brute_force() {
    for dim in [1, 3, 7, 13, 65, 100, 127] {
        let (base, queries) = (Rows::random(300, dim, 13), Rows::random(4, dim, 14));
        assert_exact(&base, &queries, "l2", "--nlist 5");
    }
}

#[test]
fn few_dims_and_many_rows_work() {
    for dim in [1, 2, 8] {
        assert_exact(&Rows::random(4000, dim, 15), &Rows::random(3, dim, 16), "l2", "");
    }
}

#[test]
fn records_larger_than_a_page_give_the_same_neighbours() {
    for dim in [1536, 5000] {
        assert_exact(&Rows::random(60, dim, 17), &Rows::random(2, dim, 18), "ip", "--nlist 3");
    }
}

#[test]
fn sizes_that_contradict_the_header_are_refused_with_both_numbers() {
    let bench = Workbench::new();
    let rows = Rows::random(900, 4, 19);
    bench.write("short.fbin", &bin(1000, 4, &floats(&rows.values)));
    bench.run("build short.fbin --out i").fails(1, &["16008", "14408", "900 rows fit"]);
    let mut long = bin(900, 4, &floats(&rows.values));
    long.extend([1, 2, 3]);
    bench.write("long.fbin", &long);
    bench.run("build long.fbin --out i").fails(1, &["14408", "14411", "3 bytes"]);
    bench.write("bytes.fbin", &bin(500, 16, &[7; 500 * 16]));
    bench.run("build bytes.fbin --out i").fails(1, &["32008", "8008", ".u8bin"]);
    assert_eq!(bench.names(), ["bytes.fbin", "long.fbin", "short.fbin"]);
}

#[test]
fn queries_of_another_dim_are_refused_with_both_numbers() {
    let bench = Workbench::new();
    bench.fbin("b.fbin", &Rows::random(50, 32, 20));
    bench.fbin("q.fbin", &Rows::random(2, 33, 20));
    bench.run("build b.fbin --out i").ok();
    for line in [
        "search i q.fbin",
        "groundtruth --base b.fbin --queries q.fbin --out gt.bin",
        "search i q.fbin --json --out r.bin",
    ] {
        let run = bench.run(line).fails(1, &["q.fbin", "33", "32"]);
        assert_eq!(run.stdout, "");
    }
    assert_eq!(bench.names(), ["b.fbin", "i", "q.fbin"]);
}

#[test]
fn a_nan_query_is_refused_by_its_row() {
    let bench = Workbench::new();
    let base = Rows::random(50, 8, 21);
    let mut queries = Rows::random(5, 8, 22);
    queries.row_mut(3)[2] = f32::INFINITY;
    bench.fbin("b.fbin", &base);
    bench.fbin("q.fbin", &queries);
    bench.run("build b.fbin --out i").ok();
    bench.run("search i q.fbin").fails(1, &["q.fbin", "query 3"]);
    bench.run("groundtruth --base b.fbin --queries q.fbin --out gt.bin").fails(1, &["query 3"]);
    bench.run("search i q.fbin --rows ..3").ok();
}

#[test]
fn float64_arrays_are_converted_and_fortran_order_is_never_misread() {
    let bench = Workbench::new();
    let base = Rows::random(80, 6, 23);
    let wide: Vec<u8> = base.values.iter().flat_map(|&v| f64::from(v).to_le_bytes()).collect();
    bench.write("b.npy", &npy("<f8", false, "(80, 6)", &wide));
    bench.fbin("q.fbin", &base);
    bench.run("build b.npy --out i --record f32").ok();
    for (query, (ids, scores)) in bench.search("i q.fbin --k 1").iter().enumerate() {
        assert_eq!((ids[0], scores[0]), (query as u64, 0.0));
    }
    bench.write("f.npy", &npy("<f4", true, "(80, 6)", &floats(&base.values)));
    bench.run("build f.npy --out f").fails(1, &["f.npy", "ortran"]);
}

#[test]
fn several_files_are_one_base_and_every_format_is_read() {
    let bench = Workbench::new();
    let base = Rows::random(120, 8, 24);
    let half = |from: usize| Rows { dim: 8, values: base.values[from * 8..][..60 * 8].to_vec() };
    bench.fbin("q.fbin", &base);
    bench.fbin("0.fbin", &half(0));
    bench.fbin("1.fbin", &half(60));
    bench.run("convert 1.fbin 1.fvecs").ok();
    bench.run("build 0.fbin 1.fvecs --out i --record f32").ok();
    for (query, (ids, _)) in bench.search("i q.fbin --k 1").iter().enumerate() {
        assert_eq!(ids, &[query as u64]);
    }
}

#[test]
fn ids_that_cannot_name_every_row_are_refused_with_the_reason() {
    let bench = Workbench::new();
    bench.fbin("b.fbin", &Rows::random(3, 8, 91));
    let ids = |ids: &[u64]| {
        let words = ids.iter().flat_map(|id| id.to_le_bytes());
        let header = [ids.len() as u32, 1].map(u32::to_le_bytes).concat();
        bench.write("ids.u64bin", &header.into_iter().chain(words).collect::<Vec<u8>>());
        bench.run("build b.fbin --out i --ids ids.u64bin")
    };
    ids(&[7, 8, 7]).fails(1, &["ids.u64bin", "id 7 stands at rows 0 and 2"]);
    ids(&[7, 8]).fails(2, &["--ids", "2 ids for 3 rows"]);
    bench.run("build b.fbin --out i --ids missing.npy").fails(1, &["missing.npy", "No such file"]);
    assert_eq!(bench.names(), ["b.fbin", "ids.u64bin"]);
    ids(&[7, 8, 9]).ok();
}

#[test]
fn more_threads_than_help_are_refused_with_the_most_that_work() {
    let bench = Workbench::new();
    bench.fbin("b.fbin", &Rows::random(30, 8, 92));
    for threads in ["0", "-1", "1025", "1000000000"] {
        bench
            .run(&format!("build b.fbin --out i --threads {threads}"))
            .fails(2, &["from 1 to 1024"]);
    }
    bench.run("build b.fbin --out i --threads 128").ok();
    bench.run("search i b.fbin --threads 128").ok();
}
