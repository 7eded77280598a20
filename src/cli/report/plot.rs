//! A plot: grid, lines and points.
//!
//! ```text
//!   y label
//!   tick ┼──────────────
//!        │    ·──·
//!   tick ┼──·───────────
//!        └──┴────┴────┴─
//!          tick     tick
//!            x label
//! ```

use super::html::digits;
use super::scale::Scale;
use super::svg::{Anchor, Svg, colour};
use super::{Plot, Point, Spread};

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 310.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 50.0;

/// The plot for a page: each way its y axis can be spread, by name.
pub(super) fn variants(plot: &Plot) -> Vec<(&'static str, String)> {
    let draw = |log| {
        let mut svg = Svg::default();
        draw(&mut svg, plot, 0.0, log);
        svg.inline((WIDTH, HEIGHT), &plot.title)
    };
    match plot.y.spread {
        Spread::Linear => vec![("linear", draw(false))],
        Spread::Log => vec![("log", draw(true))],
        Spread::Either => vec![("linear", draw(false)), ("log", draw(true))],
    }
}

/// The plot as a file of its own, with title and legend.
pub(super) fn file(plot: &Plot) -> String {
    let mut svg = Svg::default();
    let top = svg.title(&plot.title, WIDTH);
    draw(&mut svg, plot, top, plot.y.spread == Spread::Log);
    let keys = plot.series.iter().enumerate().map(|(i, s)| (colour(i), s.name.as_str()));
    let end = svg.legend(keys, top + HEIGHT + 14.0, WIDTH);
    svg.file((WIDTH, end))
}

/// A point in the terms of the axes.
fn place(plot: &Plot, point: &Point) -> String {
    let (x, y) = (digits(point.x), digits(point.y));
    format!("{}: {x}\n{}: {y}", plot.x.label, plot.y.label)
}

/// Zero, when it is near enough to the values that leaving it out would flatter differences.
fn from_zero(plot: &Plot, log: bool) -> Option<f64> {
    let values = plot.series.iter().flat_map(|s| &s.points).map(|p| p.y);
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    (!log && low >= 0.0 && low < 0.6 * high).then_some(0.0)
}

fn draw(svg: &mut Svg, plot: &Plot, top: f64, log: bool) {
    let points = plot.series.iter().flat_map(|series| &series.points);
    let x = Scale::over(points.clone().map(|p| p.x), plot.x.spread == Spread::Log);
    let (zero, values) = (from_zero(plot, log), points.map(|p| p.y));
    let y = Scale::over(values.chain(zero), log);
    let (bottom, height) = (top + HEIGHT - BOTTOM, HEIGHT - TOP - BOTTOM);
    let right = WIDTH - RIGHT;
    let across = |value| LEFT + x.share(value) * (right - LEFT);
    let up = |value| bottom - y.share(value) * height;

    for &tick in &y.ticks {
        let at = up(tick);
        svg.line((LEFT, at), (right, at), "grid");
        svg.text((LEFT - 6.0, at + 4.0), Anchor::End, "tick", &y.label(tick));
    }
    for &tick in &x.ticks {
        let at = across(tick);
        svg.line((at, bottom), (at, bottom + 4.0), "axis");
        svg.text((at, bottom + 19.0), Anchor::Middle, "tick", &x.label(tick));
    }
    svg.line((LEFT, bottom), (right, bottom), "axis");
    svg.text((4.0, top + 14.0), Anchor::Start, "label", &plot.y.label);
    let middle = f64::midpoint(LEFT, right);
    svg.text((middle, bottom + 42.0), Anchor::Middle, "label", &plot.x.label);

    for (i, series) in plot.series.iter().enumerate() {
        let class = colour(i);
        let shown: Vec<_> = series.points.iter().filter(|p| x.shows(p.x) && y.shows(p.y)).collect();
        svg.open(&format!("data-series=\"{i}\""));
        let mut d = String::new();
        for (j, p) in shown.iter().enumerate() {
            let step = if j == 0 { 'M' } else { 'L' };
            d.push_str(&format!("{step}{:.1} {:.1}", across(p.x), up(p.y)));
        }
        if shown.len() > 1 {
            svg.path(&d, &format!("line {class}"));
        }
        for p in shown {
            let spot = (across(p.x), up(p.y));
            if p.note.is_empty() {
                svg.point(spot, &class, &format!("{}\n{}", series.name, place(plot, p)));
            } else {
                svg.point(spot, &class, &p.note);
            }
        }
        svg.close();
    }
}
