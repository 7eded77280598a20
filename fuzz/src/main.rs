//! Fuzzing without a special toolchain: changes corpus inputs at random, keeps those with a new outcome.
//!
//! ```text
//! mutate [--seconds N] [--seed S] [TARGET...]      all targets, 10 seconds each, seed 1
//! mutate --collect FOLDER [TARGET...]              only writes the inputs to FOLDER/TARGET
//! ```
//! A panic, a run of more than 10 seconds or one that holds more memory than
//! [`rabitq_ssd_fuzz::alloc::LIMIT`] ends it with code 1; the input is then in
//! `artifacts/TARGET`, and belongs into the corpus once it is dealt with.

use std::collections::HashSet;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rabitq_ssd_fuzz::alloc::{Counting, LIMIT, peak_of};
use rabitq_ssd_fuzz::mutate::{Rng, mutate};
use rabitq_ssd_fuzz::{TARGETS, Target, corpus};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Longest time one run may take.
const LONGEST: Duration = Duration::from_secs(10);
/// Inputs kept beside the corpus.
const KEPT: usize = 2000;

/// The run under way, for the watchdog.
static UNDER_WAY: Mutex<Option<(Instant, &str, Vec<u8>)>> = Mutex::new(None);

fn main() -> ExitCode {
    let (mut seconds, mut seed, mut folder, mut names) = (10, 1, None, Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|word| word.parse().ok());
        match word.as_str() {
            "--seconds" => seconds = number().expect("--seconds takes a number"),
            "--seed" => seed = number().expect("--seed takes a number"),
            "--collect" => folder = Some(words.next().expect("--collect takes a folder")),
            _ => names.push(word),
        }
    }
    let unknown = |name: &&String| TARGETS.iter().all(|target| target.name != **name);
    if let Some(name) = names.iter().find(unknown) {
        eprintln!("no target is called {name}");
        return ExitCode::from(2);
    }
    std::thread::spawn(watch);
    let wanted = |target: &&Target| names.is_empty() || names.iter().any(|n| n == target.name);
    for target in TARGETS.iter().filter(wanted) {
        let done = match &folder {
            Some(folder) => collect(target, Path::new(folder)),
            None => fuzz(target, Duration::from_secs(seconds), seed),
        };
        if let Err(problem) = done {
            eprintln!("{}: {problem}", target.name);
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Writes the inputs of a target where libFuzzer may add to them.
fn collect(target: &Target, folder: &Path) -> Result<(), String> {
    let folder = folder.join(target.name);
    fs_err::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let read = corpus::read(target.name).map_err(|e| e.to_string())?;
    let mut inputs = read.into_iter();
    inputs
        .try_for_each(|(name, input)| fs_err::write(folder.join(name), input))
        .map_err(|e| e.to_string())
}

/// Runs one target until the time is over.
fn fuzz(target: &'static Target, time: Duration, seed: u64) -> Result<(), String> {
    let read = corpus::read(target.name).map_err(|e| e.to_string())?;
    let mut pool: Vec<Vec<u8>> = read.into_iter().map(|(_, bytes)| bytes).collect();
    let corpus = pool.len();
    let (mut seen, mut rng, mut runs) = (HashSet::new(), Rng(seed), 0);
    let start = Instant::now();
    while runs < corpus || start.elapsed() < time {
        let mut input = pool[if runs < corpus { runs } else { rng.below(pool.len()) }].clone();
        if runs >= corpus {
            let other = rng.below(pool.len());
            mutate(&mut input, &pool[other], &mut rng);
        }
        let outcome = run(target, &input, runs == 0)?;
        runs += 1;
        if seen.insert(shape(&outcome)) && pool.len() < corpus + KEPT {
            pool.push(input);
        }
    }
    println!("{:<10} {runs:>9} runs, {} outcomes, seed {seed}: clean", target.name, seen.len());
    Ok(())
}

/// One run, watched; `first` when the target prepares what later runs share.
fn run(target: &'static Target, input: &[u8], first: bool) -> Result<String, String> {
    let under_way = |state| *UNDER_WAY.lock().unwrap_or_else(|e| e.into_inner()) = state;
    under_way(Some((Instant::now(), target.name, input.to_vec())));
    let (outcome, peak) = peak_of(|| catch_unwind(|| (target.run)(input)));
    under_way(None);
    let what = match outcome {
        Ok(_) if peak > LIMIT && !first => format!("{peak} bytes held"),
        Ok(outcome) => return Ok(outcome),
        Err(_) => "a panic".to_owned(),
    };
    Err(format!("{what} on {}", keep(target.name, input)))
}

/// Ends the process when a run does not end.
fn watch() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let under_way = UNDER_WAY.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((start, name, input)) = &*under_way
            && start.elapsed() > LONGEST
        {
            eprintln!("{name}: no end after {LONGEST:?} on {}", keep(name, input));
            std::process::exit(1);
        }
    }
}

/// Writes an input that broke something; says where to.
fn keep(target: &str, input: &[u8]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("artifacts").join(target);
    let path = folder.join(format!("{:08x}", crc32c::crc32c(input)));
    let written = fs_err::create_dir_all(&folder).and_then(|()| fs_err::write(&path, input));
    written.map_or_else(|e| e.to_string(), |()| path.display().to_string())
}

/// An outcome without its numbers: what tells one way through a reader from another.
fn shape(outcome: &str) -> String {
    outcome.chars().filter(|c| c.is_ascii_alphabetic() || *c == ' ').take(300).collect()
}
