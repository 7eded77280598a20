//! What an error says on stderr, and the exit code it ends with.
//!
//! 0 success · 1 the work failed on the files as they are, a damaged index included · 2 wrong
//! usage: a value or combination of options that cannot work.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use rabitq_ssd::{BuildError, SearchError};

/// A wrong use of the command line that parsing alone cannot see.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(String);

/// A usage error as the error of a command.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    Usage(message.into()).into()
}

/// Write the error and what caused it to stderr; the exit code to end with.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    // Nothing is left to do if stderr is closed as well.
    let _ = std::io::stderr().write_all(message(error).as_bytes());
    ExitCode::from(exit_code(error))
}

/// `error: ...`, then one line for each cause that says something new.
fn message(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    let mut lines = format!("error: {text}\n");
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            lines.push_str(&format!("  because: {cause}\n"));
        }
        text = cause;
    }
    lines
}

fn exit_code(error: &anyhow::Error) -> u8 {
    let wrong_usage = error.chain().any(|cause| {
        cause.is::<Usage>()
            || matches!(cause.downcast_ref(), Some(SearchError::Option { .. }))
            || matches!(
                cause.downcast_ref(),
                Some(BuildError::Option { .. } | BuildError::Budget { .. })
            )
    });
    if wrong_usage { 2 } else { 1 }
}

/// Goes on when the reader of stdout went away: for what is printed before the work is done.
pub(crate) fn unless_closed(printed: anyhow::Result<()>) -> anyhow::Result<()> {
    printed.or_else(|error| if is_closed_pipe(&error) { Ok(()) } else { Err(error) })
}

/// The reader of stdout went away, as `head` does: the rest is not wanted, and that is no error.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_cause_that_repeats_its_effect_is_said_once() {
        let io = std::io::Error::new(ErrorKind::NotFound, "no such file");
        let error = anyhow::Error::from(io).context("cannot open a.fbin: no such file");
        assert_eq!(message(&error), "error: cannot open a.fbin: no such file\n");
        let error = anyhow::anyhow!("disk full").context("cannot write b.fbin");
        assert_eq!(message(&error), "error: cannot write b.fbin\n  because: disk full\n");
    }

    #[test]
    fn options_end_with_2_and_failed_work_with_1() {
        let option = SearchError::Option { option: "k", problem: "0".into() };
        assert_eq!(exit_code(&option.into()), 2);
        assert_eq!(exit_code(&usage("bad range")), 2);
        assert_eq!(exit_code(&SearchError::Dim { expected: 3, found: 4 }.into()), 1);
        let nested = Err::<(), _>(BuildError::Budget { budget: 1, least: 2 }).context("building");
        assert_eq!(nested.map_err(|error| exit_code(&error)), Err(2));
    }
}
