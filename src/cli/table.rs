//! Tables for people: right-aligned columns under a line, or names beside values.

use std::fmt::{self, Display};

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, presets};

/// Columns of numbers below their names.
pub(crate) struct Grid(Table);

impl Grid {
    pub(crate) fn new(names: &[&str]) -> Self {
        let line = LineStyle::none().fill('─').junction('─');
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING.header_separator(line))
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(names.to_vec());
        for column in table.column_iter_mut() {
            column.set_cell_alignment(CellAlignment::Right);
        }
        Self(table)
    }

    /// The last column holds text.
    pub(crate) fn with_text(mut self) -> Self {
        if let Some(column) = self.0.column_iter_mut().last() {
            column.set_cell_alignment(CellAlignment::Left);
        }
        self
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.0.add_row(cells);
    }
}

impl Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.trim_fmt())
    }
}

/// Names beside values, one pair a line.
#[derive(Default)]
pub(crate) struct Pairs(Vec<(&'static str, String)>);

impl Pairs {
    pub(crate) fn add(&mut self, name: &'static str, value: impl Display) -> &mut Self {
        self.0.push((name, value.to_string()));
        self
    }
}

impl Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (i, (name, value)) in self.0.iter().enumerate() {
            let end = if i + 1 < self.0.len() { "\n" } else { "" };
            write!(f, "  {name:width$}  {value}{end}")?;
        }
        Ok(())
    }
}
