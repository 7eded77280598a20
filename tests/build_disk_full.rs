//! A disk without room: a build is refused before it starts, or stops and says what it needs; what
//! was on the disk before is there after.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod workbench;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use workbench::Workbench;

const BUILD: &str = "build base.fbin --record f32 --nlist 200 --threads 2";

/// A file system in memory, of its own size. Needs the right to mount.
struct Disk(PathBuf);

impl Disk {
    /// `None`, with the reason printed, where mounting is not allowed.
    fn mount(at: PathBuf, mib: u64) -> Option<Self> {
        fs_err::create_dir(&at).unwrap();
        let size = format!("size={mib}m");
        let mut mount = Command::new("mount");
        let mount = mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&at).output();
        match mount {
            Ok(output) if output.status.success() => Some(Self(at)),
            Ok(output) => {
                eprint!("skipped, no disk to fill: {}", String::from_utf8_lossy(&output.stderr));
                None
            }
            Err(error) => {
                eprintln!("skipped, no disk to fill: mount: {error}");
                None
            }
        }
    }

    fn names(&self) -> Vec<String> {
        let entries = fs_err::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Takes all the room that is left, while others write.
    fn fill(&self) {
        let ballast = fs_err::File::create(self.0.join("ballast")).unwrap();
        let mut at = 0;
        while let left @ 1.. = available(&self.0) {
            // Half of it when all of it is gone in the meantime.
            let take = [left, left / 2, 4096].into_iter().find(|&take| {
                fallocate(&ballast, FallocateFlags::empty(), at, take.max(4096)).is_ok()
            });
            at += take.unwrap_or(0);
        }
    }
}

fn available(at: &Path) -> u64 {
    let stat = statvfs(at).unwrap();
    stat.f_bavail * stat.f_frsize
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// The bytes that a message says are needed, and are available.
fn needed_and_available(stderr: &str) -> (u64, u64) {
    let number = |before: &str| {
        let rest = stderr.split(before).nth(1).unwrap_or_else(|| panic!("{before:?} in {stderr}"));
        rest.split(' ').next().unwrap().parse().unwrap()
    };
    (number("the build needs "), number("until it is done), "))
}

fn bench() -> Workbench {
    let bench = Workbench::new();
    let generate = "generate --n 60000 --dim 64 --out base.fbin --queries 10";
    bench.run(&format!("{generate} --queries-out queries.fbin")).ok();
    bench
}

#[test]
fn too_little_room_is_told_before_the_start() {
    let bench = bench();
    let Some(disk) = Disk::mount(bench.path("disk"), 8) else { return };
    let run = bench.run(&format!("{BUILD} --out disk/index")).fails(1, &["disk: no space"]);
    let (needed, room) = needed_and_available(&run.stderr);
    assert_eq!(room, available(&disk.0));
    assert!(needed > 60_000 * 64 * 4, "{needed} for records as long as the rows");
    assert_eq!(disk.names(), Vec::<String>::new());
}

#[test]
fn room_that_goes_while_a_build_runs_stops_it_and_damages_nothing() {
    let bench = bench();
    let Some(disk) = Disk::mount(bench.path("disk"), 256) else { return };
    bench.run(&format!("{BUILD} --out disk/index --seed 7")).ok();
    let search = "disk/index queries.fbin --k 5 --deterministic";
    let before = bench.search(search);
    let memory = bench.least_build_memory(&format!("{BUILD} --out other"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_rabitq-ssd"))
        .current_dir(bench.path(""))
        .args(BUILD.split_whitespace())
        .args(["--out", "disk/index", "--overwrite", "--build-memory", &memory.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !disk.0.join(".index.partial/scratch/assignment.bin").exists() {
        assert!(child.try_wait().unwrap().is_none(), "the build ended");
        std::thread::sleep(Duration::from_millis(1));
    }
    disk.fill();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let (needed, room) = needed_and_available(&stderr);
    assert!(needed > 60_000 * 64 * 4 && room < needed, "{stderr}");
    assert_eq!(disk.names(), ["ballast", "index"]);
    assert_eq!(bench.search(search), before);
}

#[test]
fn a_file_that_may_not_grow_is_named() {
    let bench = bench();
    let before = bench.names();
    // Blocks of 512 bytes: 5 MB. Where the signal is ignored, writing fails.
    let limited = "trap '' XFSZ; ulimit -f 10000; exec \"$0\" \"$@\"";
    let output = Command::new("sh")
        .current_dir(bench.path(""))
        .args(["-c", limited, env!("CARGO_BIN_EXE_rabitq-ssd")])
        .args(BUILD.split_whitespace())
        .args(["--out", "index"])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("records.bin"), "{stderr}");
    assert_eq!(bench.names(), before);
}
