//! Builds in the least memory that they say they need: they keep to it, and memory and threads do
//! not show in the index.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod workbench;

use workbench::Workbench;

/// Peak resident bytes of a build in `memory` bytes.
fn peak(bench: &Workbench, build: &str, memory: u64) -> u64 {
    let rows = bench.run(&format!("{build} --build-memory {memory} --json")).ok().json();
    rows[1]["peak_memory_bytes"].as_u64().unwrap()
}

#[test]
fn the_least_memory_is_enough_and_does_not_show() {
    let bench = Workbench::new();
    bench.run("generate --n 60000 --dim 96 --out base.fbin").ok();
    let options = [
        "--record f32 --nlist 200",
        "--rows 20000 --record sq8 --nlist 1000 --coarse irq --metric ip",
        "--rows 20000 --nlist 1000 --coarse hnsw --metric cosine",
    ];
    for (i, options) in options.iter().enumerate() {
        let plenty = format!("plenty{i}");
        bench.run(&format!("build base.fbin {options} --out {plenty}")).ok();
        for threads in [1, 4] {
            let out = format!("least{i}-{threads}");
            let build = format!("build base.fbin {options} --out {out} --threads {threads}");
            let least = bench.least_build_memory(&build);
            let peak = peak(&bench, &build, least);
            assert!(peak <= least, "{build}: {peak} bytes, {least} allowed");
            assert!(bench.index_files(&out) == bench.index_files(&plenty), "{build}");
        }
    }
}
