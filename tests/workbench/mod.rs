//! A folder of small inputs, the command run in it, and brute force to compare with.

// Each test file compiles this module for itself and uses its own part of it.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use fs_err as fs;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

/// A temporary folder in which the command runs.
pub struct Workbench {
    dir: TempDir,
}

/// How a run of the command ended.
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Rows of `dim` values.
#[derive(Clone)]
pub struct Rows {
    pub dim: usize,
    pub values: Vec<f32>,
}

impl Workbench {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Run `rabitq-ssd` with the words of `line`.
    pub fn run(&self, line: &str) -> Run {
        let output = assert_cmd::Command::new(env!("CARGO_BIN_EXE_rabitq-ssd"))
            .current_dir(self.dir.path())
            .args(line.split_whitespace())
            .output()
            .unwrap();
        Run {
            code: output.status.code().expect("ended by a signal"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Names of everything in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The files of an index that its identity covers: all but build.json.
    pub fn index_files(&self, name: &str) -> BTreeMap<String, Vec<u8>> {
        fs::read_dir(self.path(name))
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap()))
            .filter(|(name, _)| name != "build.json")
            .collect()
    }

    /// The least `--build-memory` that a build takes, in bytes, as it says itself.
    pub fn least_build_memory(&self, build: &str) -> u64 {
        let run = self.run(&format!("{build} --build-memory 1MiB"));
        let least = run.stderr.split("at least ").nth(1).and_then(|rest| rest.split(' ').next());
        least.and_then(|bytes| bytes.parse().ok()).unwrap_or_else(|| panic!("{}", run.stderr))
    }

    /// Write rows as `.fbin`.
    pub fn fbin(&self, name: &str, rows: &Rows) {
        self.write(name, &bin(rows.n(), rows.dim, &floats(&rows.values)));
    }

    /// Results of a search with `--json`: ids and scores of each query.
    pub fn search(&self, line: &str) -> Vec<(Vec<u64>, Vec<f64>)> {
        let run = self.run(&format!("search {line} --json")).ok();
        let mut results = Vec::new();
        for (query, row) in run.json().iter().enumerate() {
            assert_eq!(row["query"], query);
            let ids = row["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap());
            let scores = row["scores"].as_array().unwrap().iter().map(|s| s.as_f64().unwrap());
            results.push((ids.collect(), scores.collect()));
        }
        results
    }
}

impl Run {
    /// The run succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self
    }

    /// The run failed with this code, and stderr holds an error with all of these words.
    #[track_caller]
    pub fn fails(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        assert!(self.stderr.contains("error: "), "{}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is not in: {}", self.stderr);
        }
        self
    }

    /// Every line of stdout as JSON.
    #[track_caller]
    pub fn json(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    }
}

impl Rows {
    pub fn n(&self) -> usize {
        self.values.len() / self.dim
    }

    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.dim..(row + 1) * self.dim]
    }

    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        let dim = self.dim;
        &mut self.values[row * dim..(row + 1) * dim]
    }

    pub fn of(rows: &[&[f32]]) -> Self {
        Self { dim: rows[0].len(), values: rows.concat() }
    }

    /// Roughly normal values, the same for the same seed.
    pub fn random(n: usize, dim: usize, seed: u64) -> Self {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut uniform = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 24) as f32
        };
        let values = (0..n * dim).map(|_| (0..6).map(|_| uniform()).sum::<f32>() - 3.0).collect();
        Self { dim, values }
    }

    /// The k nearest rows by `metric`, ties by row number, computed in f64.
    pub fn nearest(&self, query: &[f32], k: usize, metric: &str) -> Vec<(u64, f64)> {
        let mut scored: Vec<(u64, f64)> =
            (0..self.n()).map(|row| (row as u64, score(self.row(row), query, metric))).collect();
        let sign = if metric == "l2" { 1.0 } else { -1.0 };
        scored.sort_by(|a, b| (sign * a.1).total_cmp(&(sign * b.1)).then(a.0.cmp(&b.0)));
        scored.truncate(k);
        scored
    }
}

/// Squared distance, inner product or cosine, in f64.
pub fn score(a: &[f32], b: &[f32], metric: &str) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    match metric {
        "l2" => a.iter().zip(b).map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2)).sum(),
        "ip" => dot(a, b),
        "cosine" => {
            let norms = (dot(a, a) * dot(b, b)).sqrt();
            if norms == 0.0 { 0.0 } else { dot(a, b) / norms }
        }
        _ => panic!("{metric}"),
    }
}

/// A `bin` file: u32 rows, u32 dim, values.
pub fn bin(n: usize, dim: usize, values: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from((n as u32).to_le_bytes());
    bytes.extend((dim as u32).to_le_bytes());
    bytes.extend(values);
    bytes
}

pub fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// A `.npy` file of format version 1.
pub fn npy(descr: &str, fortran: bool, shape: &str, values: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let mut dict = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    while (10 + dict.len() + 1) % 64 != 0 {
        dict.push(' ');
    }
    dict.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dict.len() as u16).to_le_bytes());
    bytes.extend(dict.as_bytes());
    bytes.extend(values);
    bytes
}
