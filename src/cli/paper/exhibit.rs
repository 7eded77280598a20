//! A table or a figure of the paper, measured: for the terminal and for the report.

use std::fmt;

use rabitq_ssd::evaluate::BenchRow;

use crate::cli::report::Timeline;
use crate::cli::table::Grid;

/// A cell: text, or a number with the digits it is shown with.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Text(String),
    Number(f64, usize),
    /// Not measured, or not reached.
    Nothing,
}

impl Cell {
    pub(crate) fn percent(share: f64) -> Self {
        Self::Number(100.0 * share, 2)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        Self::Number(count as f64, 0)
    }
}

impl From<(f64, usize)> for Cell {
    fn from((number, digits): (f64, usize)) -> Self {
        Self::Number(number, digits)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.pad(text),
            Self::Number(number, digits) => write!(f, "{number:.digits$}"),
            Self::Nothing => f.pad("-"),
        }
    }
}

/// A line of a figure.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// The figure of an exhibit.
pub(crate) struct Figure {
    pub(crate) x: &'static str,
    pub(crate) y: &'static str,
    pub(crate) lines: Vec<Line>,
}

/// One table or figure.
pub(crate) struct Exhibit {
    /// As the paper numbers it, and what it shows.
    pub(crate) title: String,
    /// What the paper reports.
    pub(crate) claim: &'static str,
    pub(crate) columns: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<Cell>>,
    pub(crate) figure: Option<Figure>,
    /// Searches over time; only the report shows them.
    pub(crate) timelines: Vec<Timeline>,
}

impl Exhibit {
    pub(crate) fn new(
        title: impl Into<String>,
        claim: &'static str,
        columns: &[&'static str],
    ) -> Self {
        Self {
            title: title.into(),
            claim,
            columns: columns.to_vec(),
            rows: Vec::new(),
            figure: None,
            timelines: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Give it a figure, if any line has two points.
    pub(crate) fn plot(&mut self, x: &'static str, y: &'static str, lines: Vec<Line>) {
        if lines.iter().any(|line| line.points.len() > 1) {
            self.figure = Some(Figure { x, y, lines });
        }
    }
}

impl fmt::Display for Exhibit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut grid = Grid::new(&self.columns);
        for row in &self.rows {
            grid.row(row.iter().map(Cell::to_string).collect());
        }
        write!(f, "{}\nThe paper: {}\n\n{grid}\n", self.title, self.claim)
    }
}

/// Columns of a row that most tables share.
pub(crate) const COST: [&str; 7] =
    ["nprobe", "recall", "QPS", "QPS min..max", "rounds", "pages/query", "reads %"];

/// The cells below [`COST`].
pub(crate) fn cost(row: &BenchRow) -> Vec<Cell> {
    vec![
        row.nprobe.into(),
        (row.recall, 4).into(),
        (row.qps, 0).into(),
        format!("{:.0}..{:.0}", row.qps_min, row.qps_max).into(),
        row.rounds.into(),
        (row.pages_per_query, 1).into(),
        row.read_share.map_or(Cell::Nothing, |share| Cell::Number(100.0 * share, 0)),
    ]
}

/// `parts`, then the cells of `tail`.
pub(crate) fn joined(parts: Vec<Cell>, tail: Vec<Cell>) -> Vec<Cell> {
    parts.into_iter().chain(tail).collect()
}

/// Names, then [`COST`].
pub(crate) fn columns(names: &[&'static str]) -> Vec<&'static str> {
    names.iter().copied().chain(COST).collect()
}
