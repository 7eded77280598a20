//! The page: head, one `<section>` a part, the data, the script. Everything is inside the file.

use serde_json::Value;

use super::svg::{STYLE, colour};
use super::{Plot, Report, Section, Table, Timeline, plot, timeline};
use crate::cli::size::grouped;

const PAGE_STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The whole page.
pub(super) fn page(report: &Report) -> anyhow::Result<String> {
    let title = escape(&report.title);
    let mut body = format!("<h1>{title}</h1>\n{}", machine(&report.machine));
    for (i, section) in report.sections.iter().enumerate() {
        body.push_str(&match section {
            Section::Table(table) => table_section(i, table),
            Section::Plot(plot) => plot_section(i, plot),
            Section::Timeline(timeline) => timeline_section(i, timeline),
        });
    }
    // "<" never stands in JSON but in strings, and there "</script>" must not end the block.
    let data = serde_json::to_string(report)?.replace('<', "\\u003c");
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}{PAGE_STYLE}</style>\n</head>\n<body>\n<main>\n\
         {body}</main>\n<div id=\"tip\" hidden></div>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    ))
}

/// Text as HTML and XML show it, inside an attribute or not.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn machine(pairs: &[(String, String)]) -> String {
    let mut list = String::from("<dl class=\"pairs\">\n");
    for (name, value) in pairs {
        let lines: Vec<String> = value.lines().map(escape).collect();
        let class = if value.len() > LONG { " class=\"long\"" } else { "" };
        let (name, value) = (escape(name), lines.join("<br>"));
        list.push_str(&format!("<div{class}><dt>{name}</dt><dd>{value}</dd></div>\n"));
    }
    list + "</dl>\n"
}

/// Letters beyond which a value gets a line of its own.
const LONG: usize = 80;

fn heading(title: &str, note: &str) -> String {
    let note = if note.is_empty() {
        String::new()
    } else {
        format!("<p class=\"note\">{}</p>\n", escape(note))
    };
    format!("<h2>{}</h2>\n{note}", escape(title))
}

fn table_section(section: usize, table: &Table) -> String {
    let mut head = String::new();
    for column in &table.columns {
        head.push_str(&format!("<th><button type=\"button\">{}</button></th>", escape(column)));
    }
    let is_numeric = |column: usize| {
        let mut cells = table.rows.iter().filter_map(|row| row.get(column));
        cells.all(|cell| cell.is_number() || cell.is_null())
    };
    let numeric: Vec<bool> = (0..table.columns.len()).map(is_numeric).collect();
    let mut rows = String::new();
    for (i, row) in table.rows.iter().enumerate() {
        let cells: String = row
            .iter()
            .zip(&numeric)
            .map(|(cell, &numeric)| {
                let class = if numeric { " class=\"number\"" } else { "" };
                format!("<td{class}>{}</td>", escape(&shown(cell)))
            })
            .collect();
        rows.push_str(&format!("<tr data-row=\"{i}\">{cells}</tr>\n"));
    }
    format!(
        "<section>\n{}<div class=\"scroll\" tabindex=\"0\"><table data-section=\"{section}\">\n\
         <thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n</section>\n",
        heading(&table.title, &table.note)
    )
}

/// A cell: whole numbers in groups of three digits, others to four digits.
fn shown(cell: &Value) -> String {
    match cell {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(whole), _) => grouped(whole),
            (None, Some(real)) => digits(real),
            (None, None) => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// A number to four digits, as people write it.
pub(super) fn digits(number: f64) -> String {
    let size = number.abs();
    if (1000.0..1e15).contains(&size) {
        let sign = if number < 0.0 { "-" } else { "" };
        return format!("{sign}{}", grouped(size.round() as u64));
    }
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    if !(1e-4..1e15).contains(&size) {
        return format!("{number:.3e}");
    }
    let decimals = (3 - size.log10().floor() as i32).clamp(0, 8) as usize;
    let text = format!("{number:.decimals$}");
    if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_string() }
}

fn plot_section(section: usize, plot: &Plot) -> String {
    let keys = plot.series.iter().enumerate().map(|(i, series)| {
        let name = escape(&series.name);
        format!(
            "<button type=\"button\" class=\"legend\" aria-pressed=\"true\" data-series=\"{i}\">\
             {}{name}</button>\n",
            key(&colour(i))
        )
    });
    let legend: String = keys.collect();
    figure("plot", section, &heading(&plot.title, &plot.note), plot::variants(plot), &legend)
}

fn timeline_section(section: usize, timeline: &Timeline) -> String {
    let keys = timeline::legend().map(|(class, name)| {
        format!("<span class=\"legend\">{}{}</span>\n", key(class), escape(name))
    });
    let legend: String = keys.collect();
    let head = heading(&timeline.title, &timeline.note);
    figure("timeline", section, &head, timeline::variants(timeline), &legend)
}

fn key(class: &str) -> String {
    format!(
        "<svg class=\"figure swatch\" viewBox=\"0 0 16 8\" aria-hidden=\"true\">\
         <path class=\"key {class}\" d=\"M0 4L16 4\"/></svg>"
    )
}

/// A drawing with buttons that choose among its variants; the first is shown.
fn figure(
    class: &str,
    section: usize,
    heading: &str,
    variants: Vec<(&str, String)>,
    legend: &str,
) -> String {
    let mut buttons = String::new();
    let mut drawings = String::new();
    for (i, (name, svg)) in variants.iter().enumerate() {
        if variants.len() > 1 {
            buttons.push_str(&format!(
                "<button type=\"button\" class=\"variant\" aria-pressed=\"{}\" \
                 data-variant=\"{i}\">{name}</button>\n",
                i == 0
            ));
        }
        let hidden = if i == 0 { "" } else { " hidden" };
        drawings.push_str(&format!("<div data-variant=\"{i}\"{hidden}>\n{svg}</div>\n"));
    }
    format!(
        "<section class=\"{class}\" data-section=\"{section}\">\n{heading}\
         <div class=\"buttons\">\n{buttons}</div>\n<figure>\n{drawings}</figure>\n\
         <div class=\"legends\">\n{legend}</div>\n</section>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_to_four_digits() {
        for (number, text) in [
            (0.94631, "0.9463"),
            (0.9, "0.9"),
            (12.3456, "12.35"),
            (12345.6, "12,346"),
            (999.96, "1000"),
            (0.0, "0"),
            (-3.25, "-3.25"),
            (0.00012, "0.00012"),
            (0.000_046_178_115, "4.618e-5"),
            (-2.5e-9, "-2.500e-9"),
        ] {
            assert_eq!(digits(number), text);
        }
    }
}
