//! Containers, file systems and limits that others stumbled over: the command finds the right
//! neighbours, or says within moments what is in the way and what to do.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod workbench;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rabitq_ssd::{Index, OpenOptions, SearchOptions};
use workbench::{Rows, Run, Workbench};

const BACKENDS: [&str; 4] = ["auto", "io_uring", "aio", "pread"];

/// Refuses system calls as containers do, with the numbers and the error it is given, and becomes
/// the command that follows them.
const SECCOMP: &str = "
import ctypes, os, struct, sys
errno, calls, command = int(sys.argv[1]), sys.argv[2].split(','), sys.argv[3:]
rules = [(0x20, 0, 0, 0)]
for call in calls:
    rules += [(0x15, 0, 1, int(call)), (0x06, 0, 0, 0x50000 | errno)]
rules += [(0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *rule) for rule in rules))
program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', len(rules), ctypes.addressof(code)))
prctl = ctypes.CDLL(None, use_errno=True).prctl
if prctl(38, 1, 0, 0, 0) or prctl(22, 2, program, 0, 0):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execv(command[0], command)
";
/// `io_uring_setup` and `io_setup`.
const RING: &str = "425";
const AIO: &str = if cfg!(target_arch = "x86_64") { "206" } else { "0" };

/// An index of raw records and the true neighbours of its queries.
struct Indexed {
    bench: Workbench,
    nearest: Vec<Vec<u64>>,
}

impl Indexed {
    fn new() -> Self {
        let bench = Workbench::new();
        let (base, queries) = (Rows::random(1500, 24, 51), Rows::random(6, 24, 52));
        bench.fbin("b.fbin", &base);
        bench.fbin("q.fbin", &queries);
        bench.run("build b.fbin --out i --record f32 --nlist 6").ok();
        let ids = |query| base.nearest(queries.row(query), 5, "l2").iter().map(|n| n.0).collect();
        Self { nearest: (0..6).map(ids).collect(), bench }
    }

    /// Runs the command behind `before`, in its folder.
    fn run(&self, before: &[&str], line: &str) -> Run {
        let program = env!("CARGO_BIN_EXE_rabitq-ssd");
        let mut words = before.iter().copied().chain([program]).chain(line.split_whitespace());
        let mut command = Command::new(words.next().unwrap());
        let start = Instant::now();
        let output = command.args(words).current_dir(self.bench.path("")).output().unwrap();
        assert!(start.elapsed() < Duration::from_secs(30), "{line} took too long");
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let code = output.status.code().expect("ended by a signal");
        Run { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// A search of `index` that must find the neighbours.
    #[track_caller]
    fn finds(&self, before: &[&str], index: &str, options: &str) -> Run {
        let run = self.run(before, &format!("search {index} q.fbin --k 5 --json {options}")).ok();
        for (row, nearest) in run.json().iter().zip(&self.nearest) {
            let ids: Vec<u64> =
                row["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
            assert_eq!(ids, *nearest, "{options}");
        }
        assert_eq!(run.json().len(), self.nearest.len());
        run
    }

    /// Every backend finds the neighbours, or was demanded and is refused with cause and remedy.
    fn finds_or_refuses(&self, index: &str) {
        for backend in BACKENDS {
            let line = format!("search {index} q.fbin --io-backend {backend}");
            let run = self.run(&[], &line);
            if run.code == 0 {
                self.finds(&[], index, &format!("--io-backend {backend}"));
            } else {
                assert!(backend != "auto" && backend != "pread", "{}", run.stderr);
                run.fails(1, &[backend, "use backend auto"]);
            }
        }
    }

    fn info(&self, before: &[&str], index: &str) -> serde_json::Value {
        self.run(before, &format!("info {index} --json")).ok().json().remove(0)
    }

    fn copy_index(&self, to: &Path) -> String {
        fs_err::create_dir(to).unwrap();
        for (name, bytes) in self.bench.index_files("i") {
            fs_err::write(to.join(name), bytes).unwrap();
        }
        to.to_str().unwrap().to_owned()
    }
}

/// Whether a helper of the system did what it was asked; says what is left out if not.
fn does(command: &mut Command) -> bool {
    let why = match command.output() {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    eprintln!("skipped: {command:?}: {why}");
    false
}

/// A file system that is gone when dropped, with the loop device under it.
struct Mounted {
    at: PathBuf,
    device: Option<String>,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.at).output();
        if let Some(device) = &self.device {
            let _ = Command::new("losetup").args(["--detach", device]).output();
        }
    }
}

/// An ext4 on a loop device with sectors of this many bytes.
fn block_device(bench: &Workbench, sector: &str) -> Option<Mounted> {
    let (image, at) = (bench.path("image"), bench.path("disk"));
    fs_err::File::create(&image).unwrap().set_len(32 << 20).unwrap();
    fs_err::create_dir(&at).unwrap();
    let mut losetup = Command::new("losetup");
    losetup.args(["--find", "--show", "--sector-size", sector]).arg(&image);
    let output = losetup.output().ok().filter(|output| output.status.success());
    let Some(output) = output else {
        eprintln!("skipped: no loop device with sectors of {sector} bytes");
        return None;
    };
    let device = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let mounted = Mounted { at, device: Some(device.clone()) };
    let made = does(Command::new("mkfs.ext4").args(["-q", "-F", &device]))
        && does(Command::new("mount").arg(&device).arg(&mounted.at));
    made.then_some(mounted)
}

/// What goes before a command to refuse it system calls.
fn refusing<'a>(calls: &'a str, errno: &'a str) -> Option<Vec<&'a str>> {
    let before = vec!["python3", "-c", SECCOMP, errno, calls];
    does(Command::new(before[0]).args(&before[1..]).arg("/bin/true")).then_some(before)
}

#[test]
fn an_index_on_tmpfs_is_read_through_the_page_cache_and_says_so() {
    let indexed = Indexed::new();
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        return eprintln!("skipped: no /dev/shm");
    };
    let index = indexed.copy_index(&memory.path().join("i"));
    indexed.finds_or_refuses(&index);
    let info = indexed.info(&[], &index);
    assert_eq!(info["direct"], false);
    assert!(info["io_notes"].to_string().contains("through the page cache"), "{info}");
    let run = indexed.run(&[], &format!("search {index} q.fbin --direct on"));
    run.fails(1, &["tmpfs", "use direct = auto or off"]);
}

#[test]
fn an_index_in_a_layer_of_an_overlay_answers() {
    let indexed = Indexed::new();
    let path = |name| indexed.bench.path(name);
    for name in ["lower", "upper", "work", "merged"] {
        fs_err::create_dir(path(name)).unwrap();
    }
    indexed.copy_index(&path("lower").join("i"));
    let layers = "lowerdir=lower,upperdir=upper,workdir=work";
    let mut mount = Command::new("mount");
    mount.current_dir(path("")).args(["-t", "overlay", "overlay", "-o", layers, "merged"]);
    if !does(&mut mount) {
        return;
    }
    let mounted = Mounted { at: path("merged"), device: None };
    indexed.finds_or_refuses("merged/i");
    indexed.run(&[], "build b.fbin --out merged/i2 --record f32 --nlist 6").ok();
    indexed.finds_or_refuses("merged/i2");
    drop(mounted);
}

#[test]
fn block_devices_with_sectors_of_512_and_4096_bytes_are_read_around_the_page_cache() {
    for sector in ["512", "4096"] {
        let indexed = Indexed::new();
        let Some(disk) = block_device(&indexed.bench, sector) else { return };
        let index = indexed.copy_index(&disk.at.join("i"));
        indexed.finds_or_refuses(&index);
        assert_eq!(indexed.info(&[], &index)["direct"], true, "{sector}");
        indexed.finds(&[], &index, "--direct on");
    }
}

#[test]
fn without_memory_to_lock_the_deepest_queue_still_answers() {
    let indexed = Indexed::new();
    let before = ["sh", "-c", "ulimit -l 0 && exec \"$@\"", "sh"];
    for inflight in ["1", "16384"] {
        indexed.finds(&before, "i", &format!("--inflight {inflight}"));
        indexed.finds(&before, "i", &format!("--inflight {inflight} --threads 8"));
    }
    indexed.run(&[], "search i q.fbin --inflight 16385").fails(2, &["--inflight", "16384"]);
}

#[test]
fn where_seccomp_forbids_rings_and_aio_threads_answer_and_demands_are_refused() {
    let indexed = Indexed::new();
    let both = format!("{RING},{AIO}");
    let Some(container) = refusing(&both, "1") else { return };
    indexed.finds(&container, "i", "");
    let info = indexed.info(&container, "i");
    assert_eq!(info["io_backend"], "pread");
    assert!(info["io_notes"].to_string().contains("io_uring skipped"), "{info}");
    for backend in ["io_uring", "aio"] {
        let run = indexed.run(&container, &format!("search i q.fbin --io-backend {backend}"));
        run.fails(1, &[backend, "seccomp", "use backend auto"]);
    }
}

#[test]
fn where_a_sysctl_forbids_rings_it_is_named_and_the_search_works() {
    let indexed = Indexed::new();
    let Some(container) = refusing(RING, "1") else { return };
    // Seen by this command alone: the switch itself is the whole machine's.
    indexed.bench.write("two", b"2\n");
    let bind = "mount --bind two /proc/sys/kernel/io_uring_disabled && exec \"$@\"";
    let before = ["unshare", "--mount", "sh", "-c", bind, "sh"];
    let mut tried = Command::new(before[0]);
    if !does(tried.args(&before[1..]).arg("true").current_dir(indexed.bench.path(""))) {
        return;
    }
    let before: Vec<&str> = before.into_iter().chain(container).collect();
    indexed.finds(&before, "i", "");
    let notes = indexed.info(&before, "i")["io_notes"].to_string();
    assert_eq!(notes.matches("kernel.io_uring_disabled = 2").count(), 1, "{notes}");
    let run = indexed.run(&before, "search i q.fbin --io-backend io_uring");
    run.fails(1, &["kernel.io_uring_disabled = 2", "set kernel.io_uring_disabled to 0"]);
}

#[test]
fn where_no_aio_events_are_left_the_limit_is_named_and_threads_answer() {
    let indexed = Indexed::new();
    let both = format!("{RING},{AIO}");
    // EAGAIN: what io_setup says beyond fs.aio-max-nr.
    let Some(full) = refusing(&both, "11") else { return };
    indexed.finds(&full, "i", "--threads 70");
    let run = indexed.run(&full, "search i q.fbin --io-backend aio");
    run.fails(1, &["fs.aio-max-nr", "sysctl -w"]);
}

#[test]
fn sixty_four_open_indexes_answer_128_threads_at_once() {
    let indexed = Indexed::new();
    let path = indexed.bench.path("i");
    let open = |_| Index::open(&path, &OpenOptions::default()).unwrap();
    let indexes: Vec<Index> = (0..64).map(open).collect();
    let queries = Rows::random(6, 24, 52);
    let o = SearchOptions { k: 5, ..SearchOptions::default() };
    let (indexes, queries, indexed, o) = (&indexes, &queries, &indexed, &o);
    thread::scope(|scope| {
        for thread in 0..128 {
            scope.spawn(move || {
                for query in (0..6).cycle().skip(thread % 6).take(12) {
                    let found = indexes[thread % 64].search(queries.row(query), o).unwrap();
                    assert_eq!(found.ids, indexed.nearest[query], "thread {thread}");
                }
            });
        }
    });
}

#[test]
fn direct_and_buffered_reads_answer_alike_and_every_report_names_the_mode() {
    let indexed = Indexed::new();
    indexed.run(&[], "groundtruth --base b.fbin --queries q.fbin --k 5 --out truth").ok();
    let can = indexed.info(&[], "i")["direct"] == true;
    for (mode, named) in [("off", "through the page cache"), ("on", "O_DIRECT")] {
        if mode == "on" && !can {
            return eprintln!("skipped: no O_DIRECT here");
        }
        for _ in 0..2 {
            let run = indexed.finds(&[], "i", &format!("--direct {mode}"));
            assert!(run.stderr.contains(named), "{}", run.stderr);
        }
        let line = format!("bench i q.fbin truth --k 5 --rounds 1 --direct {mode}");
        let run = indexed.run(&[], &line).ok();
        assert!(run.stdout.contains(named) || run.stderr.contains(named), "{}", run.stdout);
    }
}
