//! Measured rows as they are printed and kept: each with a name made of everything that
//! determines it, so that a run that was interrupted goes on where it stopped.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, ensure};
use rabitq_ssd::evaluate::{BenchRow, Setting};
use rabitq_ssd::{IndexInfo, SearchOptions};
use serde::{Deserialize, Serialize};

/// A row, and what harnesses that gather rows of several systems ask for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NamedRow {
    /// The index and every parameter: rows of the same name measure the same.
    pub(crate) run_id: String,
    pub(crate) system: String,
    /// Name of the query file.
    pub(crate) dataset: String,
    #[serde(flatten)]
    pub(crate) row: BenchRow,
}

impl NamedRow {
    pub(crate) fn new(run_id: String, dataset: String, row: BenchRow) -> Self {
        Self { run_id, system: env!("CARGO_PKG_NAME").into(), dataset, row }
    }
}

/// The name of a row: `recall` is the target its nprobe is searched for.
pub(crate) fn run_id(
    info: &IndexInfo,
    dataset: &str,
    setting: &Setting,
    recall: Option<f64>,
    rounds: usize,
) -> String {
    let o: &SearchOptions = &setting.options;
    let mut id = format!(
        "{}-{dataset}-k{}-t{}-{}-{}-a{}-q{}-e{}-b{}-r{rounds}-{}",
        &info.uuid.get(..8).unwrap_or(&info.uuid),
        o.k,
        setting.threads,
        o.pipeline,
        o.threshold,
        o.effective_alpha(),
        o.effective_inflight(setting.threads),
        o.epsilon,
        o.table_bits,
        info.io_backend,
    );
    // Writing to a string cannot fail.
    let _ = match recall {
        Some(recall) => write!(id, "-recall{recall}"),
        None => write!(id, "-n{}", o.nprobe),
    };
    id.push_str(if o.deterministic { "-deterministic" } else { "" });
    id
}

/// A file of rows, one JSON object a line, that grows as rows are measured.
pub(crate) struct Journal {
    known: HashMap<String, NamedRow>,
    file: Option<fs_err::File>,
}

impl Journal {
    /// Open the journal at `path` and read what it holds; without a path, keep nothing.
    pub(crate) fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else {
            return Ok(Self { known: HashMap::new(), file: None });
        };
        let mut known = HashMap::new();
        let mut whole = 0;
        let text = match fs_err::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error.into()),
        };
        for (number, line) in text.split_inclusive('\n').enumerate() {
            // A line without its end was being written when the run stopped.
            if !line.ends_with('\n') {
                let (path, number) = (path.display(), number + 1);
                ensure!(line.starts_with('{'), "{path} line {number} is no row of `bench`");
                break;
            }
            whole += line.len() as u64;
            if line.trim().is_empty() {
                continue;
            }
            let row: NamedRow = serde_json::from_str(line).with_context(|| {
                format!("{} line {} is no row of `bench`", path.display(), number + 1)
            })?;
            known.insert(row.run_id.clone(), row);
        }
        let file = fs_err::OpenOptions::new().create(true).append(true).open(path)?;
        file.set_len(whole)?;
        Ok(Self { known, file: Some(file) })
    }

    /// The row of this name, if it was measured before.
    pub(crate) fn find(&self, run_id: &str) -> Option<&NamedRow> {
        self.known.get(run_id)
    }

    /// Append a row; it is in the file when this returns.
    pub(crate) fn add(&mut self, row: &NamedRow) -> anyhow::Result<()> {
        if let Some(file) = &mut self.file {
            let mut line = serde_json::to_string(row)?;
            line.push('\n');
            file.write_all(line.as_bytes())?;
        }
        Ok(())
    }
}
