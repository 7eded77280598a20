//! What was shown, as a report for a browser.

use serde_json::Value;

use super::exhibit::{Cell, Exhibit};
use super::lab::Lab;
use crate::cli::report::{self, Axis, Plot, Report, Section, Spread, Table};

impl Exhibit {
    /// Its sections of a report.
    pub(crate) fn sections(&self) -> Vec<Section> {
        let value = |cell: &Cell| match cell {
            Cell::Text(text) => Value::from(text.as_str()),
            Cell::Number(number, _) => Value::from(*number),
            Cell::Nothing => Value::Null,
        };
        let mut sections = vec![Section::Table(Table {
            title: self.title.clone(),
            note: format!("The paper: {}", self.claim),
            columns: self.columns.iter().map(|&name| name.into()).collect(),
            rows: self.rows.iter().map(|row| row.iter().map(value).collect()).collect(),
        })];
        if let Some(figure) = &self.figure {
            let axis = |label: &str| Axis { label: label.into(), spread: Spread::Either };
            let series = figure.lines.iter().map(|line| report::Series {
                name: line.name.clone(),
                points: line.points.iter().map(point).collect(),
            });
            sections.push(Section::Plot(Plot {
                title: self.title.clone(),
                note: String::new(),
                x: Axis { spread: Spread::Linear, ..axis(figure.x) },
                y: axis(figure.y),
                series: series.collect(),
            }));
        }
        sections.extend(self.timelines.iter().cloned().map(Section::Timeline));
        sections
    }
}

fn point(&(x, y): &(f64, f64)) -> report::Point {
    report::Point { x, y, note: String::new() }
}

/// The report of an experiment's exhibits, under what they were measured on.
pub(super) fn report(lab: &Lab<'_>, sections: Vec<Section>) -> Report {
    Report {
        title: format!("The paper's experiments on {}", lab.data.name),
        machine: lab.conditions(),
        sections,
    }
}
