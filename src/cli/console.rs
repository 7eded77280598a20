//! Where output goes: results to stdout, as text or as JSON lines; everything else to stderr.

use std::fmt::Display;
use std::io::{self, Write};

use serde::Serialize;

/// The two output streams, and how the user wants them.
#[derive(Debug)]
pub(crate) struct Console {
    json: bool,
    quiet: bool,
}

impl Console {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        Self { json, quiet }
    }

    pub(crate) fn json(&self) -> bool {
        self.json
    }

    pub(crate) fn quiet(&self) -> bool {
        self.quiet
    }

    /// A result for programs: one line of JSON, with `--json` only.
    pub(crate) fn object(&self, value: &impl Serialize) -> anyhow::Result<()> {
        if self.json {
            let mut line = serde_json::to_string(value)?;
            line.push('\n');
            io::stdout().lock().write_all(line.as_bytes())?;
        }
        Ok(())
    }

    /// A result for people: text on stdout, without `--json` only.
    pub(crate) fn text(&self, text: impl Display) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        writeln!(io::stdout().lock(), "{text}")
    }

    /// Something about the run that is not a result. Silent with `--quiet`.
    pub(crate) fn note(&self, text: impl Display) {
        if !self.quiet {
            to_stderr(text);
        }
    }

    /// Something that works, but perhaps not as expected.
    pub(crate) fn warn(&self, text: impl Display) {
        to_stderr(format_args!("warning: {text}"));
    }
}

/// A closed stderr is no reason to stop the work.
fn to_stderr(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
