//! Vector files as arguments: opened, checked, read.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{anyhow, bail};
use rabitq_ssd::dataset::{Base, RowCheck, check_rows};

use super::failure::usage;
use super::pattern;

/// Queries in memory.
pub(crate) struct Queries {
    /// `n` · dim values.
    pub(crate) values: Vec<f32>,
    /// Number of queries.
    pub(crate) n: usize,
    /// Number of the first one in its file.
    pub(crate) first: usize,
}

impl Queries {
    /// Read the queries for vectors of `dim`, all or some; `of` names those vectors in errors.
    pub(crate) fn read(
        path: &Path,
        dim: usize,
        of: &Path,
        rows: Option<&Rows>,
    ) -> anyhow::Result<Self> {
        let base = Base::open(&[path])?;
        if base.dim() != dim {
            bail!(
                "{}: the queries have {} dims, {} has {dim}",
                path.display(),
                base.dim(),
                of.display()
            );
        }
        let n = usize::try_from(base.n())?;
        let rows = rows.map_or(Ok(0..n), |rows| rows.within(n, path))?;
        let mut values = vec![0.0; rows.len() * dim];
        base.read_f32(rows.start as u64, &mut values)?;
        let mut check = RowCheck::default();
        check_rows(&values, dim, rows.start as u64, &mut check);
        if let Some(bad) = check.first() {
            return Err(anyhow!("{}: query {}: {}", path.display(), bad.row, bad.reason));
        }
        Ok(Self { values, n: rows.len(), first: rows.start })
    }
}

/// Open one file or several, or those that patterns match, as one base.
pub(crate) fn open(paths: &[PathBuf]) -> anyhow::Result<Base> {
    Ok(Base::open(&pattern::expand(paths)?)?)
}

/// The same, and only the first `rows` rows of it if a number is given.
pub(crate) fn open_first(paths: &[PathBuf], rows: Option<usize>) -> anyhow::Result<Base> {
    let base = open(paths)?;
    let (Some(rows), n) = (rows, base.n()) else { return Ok(base) };
    base.first_rows(rows as u64)
        .map_err(|_| usage(format!("--rows {rows}: the base has {n} rows; give at most that")))
}

/// An error when a command would write `out` over one of its `inputs` or into one of them, which
/// the old content would not survive.
pub(crate) fn keep_inputs<'a>(
    out: &Path,
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> anyhow::Result<()> {
    for input in inputs {
        if place(out).starts_with(place(input)) {
            let (out, input) = (out.display(), input.display());
            let problem =
                format!("{out} would overwrite {input}, which is read: choose another file");
            return Err(usage(problem));
        }
    }
    Ok(())
}

/// Whether two paths name one file, which need not exist yet.
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    place(a) == place(b)
}

/// Where a path leads, as far as that exists: two names of one file give the same.
fn place(path: &Path) -> PathBuf {
    if let Ok(place) = fs_err::canonicalize(path) {
        return place;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if parent == Path::new("") => place(Path::new(".")).join(name),
        (Some(parent), Some(name)) => place(parent).join(name),
        _ => path.into(),
    }
}

/// A range of row numbers: `5`, `10..20`, `10..`, `..20`; from 0, the end not included.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rows {
    start: usize,
    end: Option<usize>,
}

impl Rows {
    fn within(&self, n: usize, path: &Path) -> anyhow::Result<Range<usize>> {
        let end = self.end.unwrap_or(n);
        if self.start > end || end > n {
            let found = path.display();
            return Err(usage(format!("--rows {}..{end}: {found} has rows 0..{n}", self.start)));
        }
        Ok(self.start..end)
    }
}

impl FromStr for Rows {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.parse()
                .map_err(|_| format!("expected rows like 5, 10..20, 10.. or ..20, found {text:?}"))
        };
        match text.split_once("..") {
            None => {
                number(text).map(|row: usize| Self { start: row, end: Some(row.saturating_add(1)) })
            }
            Some((start, end)) => Ok(Self {
                start: if start.is_empty() { 0 } else { number(start)? },
                end: if end.is_empty() { None } else { Some(number(end)?) },
            }),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_rows_are_read() {
        let within = |text: &str| text.parse::<Rows>().unwrap().within(30, Path::new("q")).unwrap();
        assert_eq!(within("5"), 5..6);
        assert_eq!(within("10..20"), 10..20);
        assert_eq!(within("10.."), 10..30);
        assert_eq!(within("..20"), 0..20);
        assert_eq!(within(".."), 0..30);
    }

    #[test]
    fn ranges_beyond_the_file_and_other_text_are_refused() {
        for text in ["30", "20..31", "20..10", "31.."] {
            assert!(text.parse::<Rows>().unwrap().within(30, Path::new("q")).is_err(), "{text}");
        }
        for text in ["", "-1", "a..b", "1..2..3"] {
            assert!(text.parse::<Rows>().is_err(), "{text}");
        }
    }
}
