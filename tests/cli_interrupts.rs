//! Signals: the first stops work in order and leaves nothing half done, the second stops at once.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod workbench;

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use workbench::{Rows, Workbench};

/// Minutes of work, unless somebody stops it.
const GENERATE: &str = "generate --n 4000000 --dim 1024 --out g.fbin --queries-out gq.fbin";
const GROUNDTRUTH: &str = "groundtruth --base big.u8bin --queries q.fbin --k 1 --out g.bin";

/// A base of 2^28 equal rows, sparse, and a few queries.
fn bench() -> Workbench {
    let bench = Workbench::new();
    bench.write("big.u8bin", &[1u32 << 28, 8].map(u32::to_le_bytes).concat());
    let file = fs_err::File::options().write(true).open(bench.path("big.u8bin")).unwrap();
    file.set_len(8 + (8 << 28)).unwrap();
    bench.fbin("q.fbin", &Rows::random(20, 8, 71));
    bench
}

/// Start the command and wait until it catches both signals.
fn start(bench: &Workbench, line: &str) -> Child {
    let child = Command::new(env!("CARGO_BIN_EXE_rabitq-ssd"))
        .current_dir(bench.path(""))
        .args(line.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let caught = || {
        let status = fs_err::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
        let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
        mask & 1 << 1 != 0 && mask & 1 << 14 != 0
    };
    while !caught() {
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn send(child: &Child, signals: &[&str]) {
    let pid = child.id();
    let kills: Vec<String> = signals.iter().map(|s| format!("kill -s {s} {pid}")).collect();
    assert!(Command::new("sh").args(["-c", &kills.join(" && ")]).status().unwrap().success());
}

fn end(mut child: Child) -> (ExitStatus, String) {
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (child.wait().unwrap(), stderr)
}

#[test]
fn the_first_signal_stops_in_order_and_leaves_no_file() {
    let bench = bench();
    let before = bench.names();
    for line in [GENERATE, GROUNDTRUTH] {
        for signal in ["INT", "TERM"] {
            let child = start(&bench, line);
            std::thread::sleep(Duration::from_millis(100));
            send(&child, &[signal]);
            let (status, stderr) = end(child);
            assert_eq!(status.code(), Some(1), "{line}: {stderr}");
            let (said, error) =
                ("stopping at the next checkpoint; once more", "error: interrupted\n");
            assert_eq!(stderr.matches(said).count(), 1, "{stderr}");
            assert!(stderr.ends_with(error), "{stderr}");
            assert_eq!(bench.names(), before, "{line}");
        }
    }
}

#[test]
fn the_second_signal_ends_the_process() {
    let bench = bench();
    let child = start(&bench, GROUNDTRUTH);
    // Two signals of one kind may become one before the process sees them, and of two kinds that
    // come together either may be the second.
    send(&child, &["INT", "TERM"]);
    let (status, stderr) = end(child);
    assert!(matches!(status.signal(), Some(2 | 15)), "{status}: {stderr}");
    assert!(!bench.path("g.bin").exists());
}

#[test]
fn quiet_work_stops_without_a_note() {
    let bench = bench();
    let child = start(&bench, &format!("{GENERATE} --quiet"));
    send(&child, &["INT"]);
    let (status, stderr) = end(child);
    assert_eq!((status.code(), stderr.as_str()), (Some(1), "error: interrupted\n"));
}
