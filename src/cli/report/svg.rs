//! The few SVG shapes that figures are drawn with.
//!
//! Colours are classes of figure.css, so that the page can change them in the dark; a file of
//! its own carries that style inside.

use super::html::escape;

/// The style of every figure.
pub(super) const STYLE: &str = include_str!("figure.css");

/// Series beyond these repeat their colours, dashed.
const COLOURS: usize = 8;

/// A drawing under way.
#[derive(Debug, Default)]
pub(super) struct Svg {
    body: String,
}

/// Where a text is held.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        self.body.push_str(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>\n"
        ));
    }

    /// The title of a file in as many lines as it needs; what follows begins below the height
    /// returned.
    pub(super) fn title(&mut self, title: &str, width: f64) -> f64 {
        const FIRST: f64 = 22.0;
        const NEXT: f64 = 19.0;
        let mut lines = vec![String::new()];
        for word in title.split(' ') {
            match lines.last_mut() {
                Some(line) if line.is_empty() => line.push_str(word),
                Some(line) if title_width(line) + title_width(word) < width - 24.0 => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.into()),
            }
        }
        for (i, line) in lines.iter().enumerate() {
            self.text((width / 2.0, FIRST + NEXT * i as f64), Anchor::Middle, "title", line);
        }
        FIRST + NEXT * (lines.len() - 1) as f64 + 8.0
    }

    pub(super) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        self.path(&format!("M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}"), class);
    }

    pub(super) fn path(&mut self, d: &str, class: &str) {
        self.body.push_str(&format!("<path class=\"{class}\" d=\"{d}\"/>\n"));
    }

    /// A point; `note` is shown when the pointer comes near.
    pub(super) fn point(&mut self, (x, y): (f64, f64), class: &str, note: &str) {
        let note = escape(note).replace('\n', "&#10;");
        self.body.push_str(&format!(
            "<circle class=\"point {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" data-note=\"{note}\"/>\n"
        ));
    }

    /// Opens a group with these attributes.
    pub(super) fn open(&mut self, attributes: &str) {
        self.body.push_str(&format!("<g {attributes}>\n"));
    }

    /// Closes the group opened last.
    pub(super) fn close(&mut self) {
        self.body.push_str("</g>\n");
    }

    /// The drawing as part of a page, as wide as its place.
    pub(super) fn inline(self, (width, height): (f64, f64), label: &str) -> String {
        let label = escape(label);
        format!(
            "<svg class=\"figure\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-label=\"{label}\">\n{}</svg>\n",
            self.body
        )
    }

    /// The drawing as a file of its own.
    pub(super) fn file(self, (width, height): (f64, f64)) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"figure\" width=\"{width}\" \
             height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n<style>\n{STYLE}</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}</svg>\n",
            self.body
        )
    }

    /// Coloured keys with names from `top` down, wrapped at `width`; returns where they end.
    pub(super) fn legend<'a>(
        &mut self,
        keys: impl Iterator<Item = (String, &'a str)>,
        top: f64,
        width: f64,
    ) -> f64 {
        let (mut x, mut y) = (MARGIN, top);
        for (class, name) in keys {
            let wide = KEY + text_width(name);
            if x > MARGIN && x + wide > width {
                (x, y) = (MARGIN, y + LINE);
            }
            self.line((x, y - 4.0), (x + 14.0, y - 4.0), &format!("key {class}"));
            self.text((x + 20.0, y), Anchor::Start, "name", name);
            x += wide;
        }
        y + LINE
    }
}

const MARGIN: f64 = 16.0;
const LINE: f64 = 18.0;
/// A key with the gaps around it.
const KEY: f64 = 38.0;

/// Generous, as the reader's fonts are unknown.
fn title_width(text: &str) -> f64 {
    text.chars().count() as f64 * 9.0
}

/// The same for names of a legend.
fn text_width(text: &str) -> f64 {
    7.0 * text.chars().count() as f64
}

/// The class that colours a series.
pub(super) fn colour(series: usize) -> String {
    let dash = if series >= COLOURS { " dashed" } else { "" };
    format!("c{}{dash}", series % COLOURS)
}
