//! Which rows a command takes for its base: patterns, windows, more rows than 32 bits count.

mod workbench;
use workbench::{Rows, Workbench};

/// Twelve parts of ten rows, named part1 to part12: every row its own nearest.
fn parts() -> (Workbench, Rows) {
    let bench = Workbench::new();
    let all = Rows::random(120, 8, 61);
    for part in 0..12 {
        let values = all.values[part * 80..][..80].to_vec();
        bench.fbin(&format!("part{}.fbin", part + 1), &Rows { dim: 8, values });
    }
    bench.fbin("all.fbin", &all);
    bench.fbin("q.fbin", &all);
    (bench, all)
}

/// The nearest row of every query of q.fbin.
fn nearest(bench: &Workbench, index: &str) -> Vec<u64> {
    let found = bench.search(&format!("{index} q.fbin --k 1 --nprobe 1000"));
    found.into_iter().map(|(ids, _)| ids[0]).collect()
}

#[test]
fn a_pattern_stands_for_its_files_in_the_order_of_their_numbers() {
    let (bench, _) = parts();
    bench.run("build part*.fbin --out i --record f32").ok();
    assert!(nearest(&bench, "i").into_iter().eq(0..120));
    bench.run("build part?.fbin part1?.fbin --out j --record f32").ok();
    assert!(nearest(&bench, "j").into_iter().eq(0..120));
    bench.run("build part1?.fbin part?.fbin --out k --record f32").ok();
    assert_eq!(nearest(&bench, "k")[..2], [30, 31]);
    bench.run("groundtruth --base part*.fbin --queries q.fbin --k 3 --out a.bin").ok();
    bench.run("groundtruth --base all.fbin --queries q.fbin --k 3 --out b.bin").ok();
    assert_eq!(bench.read("a.bin"), bench.read("b.bin"));
}

#[test]
fn a_pattern_that_matches_nothing_is_named_and_a_file_called_so_wins() {
    let (bench, _) = parts();
    bench.run("build nothing*.fbin --out i").fails(1, &["nothing*.fbin", "no file matches"]);
    bench.run("build nowhere/*.fbin --out i").fails(1, &["nowhere"]);
    bench.run("build *.txt --out i").fails(1, &["*.txt"]);
    bench.fbin("part*.fbin", &Rows::random(7, 8, 62));
    let built = bench.run("build part*.fbin --out i --json").ok().json();
    assert_eq!(built[0]["n"], 7);
    bench
        .run("groundtruth --base ./part1?.fbin --queries q.fbin --out part10.fbin")
        .fails(2, &["would overwrite", "part10.fbin"]);
}

#[test]
fn a_window_of_rows_gives_what_a_base_of_those_rows_gives() {
    let (bench, all) = parts();
    bench.fbin("cut.fbin", &Rows { dim: 8, values: all.values[..35 * 8].to_vec() });
    bench.run("build cut.fbin --out i").ok();
    bench.run("build part*.fbin --rows 35 --out j").ok();
    assert_eq!(bench.read("i/manifest.json"), bench.read("j/manifest.json"));
    for base in ["cut.fbin", "all.fbin --rows 35"] {
        let out = base.split('.').next().unwrap_or_default();
        bench.run(&format!("groundtruth --base {base} --queries q.fbin --out {out}.bin")).ok();
    }
    assert_eq!(bench.read("cut.bin"), bench.read("all.bin"));
    bench.run("build all.fbin --rows 120 --out k").ok();
}

#[test]
fn conversion_joins_parts_and_cuts() {
    let (bench, all) = parts();
    bench.run("convert part*.fbin joined.fbin").ok();
    assert_eq!(bench.read("joined.fbin"), bench.read("all.fbin"));
    bench.fbin("cut.fbin", &Rows { dim: 8, values: all.values[..33 * 8].to_vec() });
    bench.run("convert part*.fbin first.fbin --rows 33").ok();
    assert_eq!(bench.read("first.fbin"), bench.read("cut.fbin"));
    bench.run("convert part*.fbin part3.fbin").fails(2, &["would overwrite"]);
    bench.run("convert part*.fbin x.fbin --rows 121").fails(2, &["--rows 121", "120 rows"]);
}

#[test]
fn a_window_beyond_the_base_is_refused_with_both_numbers() {
    let (bench, _) = parts();
    let before = bench.names();
    bench.run("build all.fbin --rows 121 --out i").fails(2, &["--rows 121", "120 rows"]);
    bench
        .run("groundtruth --base part*.fbin --rows 500 --queries q.fbin --out g.bin")
        .fails(2, &["--rows 500", "120 rows"]);
    for rows in ["0", "-1", "x"] {
        bench.run(&format!("build all.fbin --rows {rows} --out i")).fails(2, &["--rows"]);
    }
    assert_eq!(bench.names(), before);
}

#[test]
fn a_window_takes_as_many_ids_and_may_leave_later_ones_unread() {
    let (bench, _) = parts();
    let ids = |count: u64| {
        let words = (0..count).flat_map(|row| (1000 + row % 40).to_le_bytes());
        let header = [count as u32, 1].map(u32::to_le_bytes).concat();
        bench.write("ids.u64bin", &header.into_iter().chain(words).collect::<Vec<u8>>());
    };
    // Ids repeat from row 40 on.
    ids(120);
    bench.run("build all.fbin --out i --ids ids.u64bin").fails(1, &["id 1000", "rows 0 and 40"]);
    bench.run("build all.fbin --rows 40 --out i --record f32 --ids ids.u64bin").ok();
    assert!(nearest(&bench, "i").into_iter().take(40).eq(1000..1040));
    ids(30);
    bench
        .run("build all.fbin --rows 40 --out j --ids ids.u64bin")
        .fails(2, &["30 ids for 40 rows"]);
}

#[test]
fn ground_truth_of_more_rows_than_its_file_can_number_is_refused_before_the_work() {
    let (bench, _) = parts();
    for part in 0..3 {
        let path = bench.path(&format!("big{part}.u8bin"));
        bench.write(&format!("big{part}.u8bin"), &[1u32 << 31, 8].map(u32::to_le_bytes).concat());
        let file = fs_err::File::options().write(true).open(path);
        if file.is_ok_and(|file| file.set_len(8 + (8 << 31)).is_err()) {
            // A file system without large sparse files.
            return;
        }
    }
    bench
        .run("groundtruth --base big*.u8bin --queries q.fbin --out g.bin")
        .fails(2, &["6,442,450,944 rows", "--rows 4294967296"]);
}
