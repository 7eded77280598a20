//! A timeline: what the CPU did, as coloured strips, over the reads in flight, as steps.
//!
//! ```text
//! full                 max 16 in flight
//! ▒▒███████▓██▓██▓░▓░▓░       route ▒ scan █ re-rank ▓ wait ░
//!     ┌──┐  ┌─┐ ┌──┐
//!  ┌──┘  └──┘ └─┘  └─┐
//! ─┴─────────────────┴──
//! 0         100 µs
//! ```
//! Lanes can share one time axis, to compare pipelines, or have their own, to see the short ones.

use super::scale::Scale;
use super::svg::{Anchor, Svg};
use super::{Activity, Lane, Timeline};

const WIDTH: f64 = 480.0;
const LEFT: f64 = 36.0;
const RIGHT: f64 = 24.0;
/// Height of a lane, and within it: the strip, the steps.
const LANE: f64 = 132.0;
const STRIP: (f64, f64) = (24.0, 40.0);
const STEPS: (f64, f64) = (48.0, 98.0);
const LABEL: f64 = 24.0;

const ACTIVITIES: [(Activity, &str, &str); 4] = [
    (Activity::Route, "route", "route"),
    (Activity::Scan, "scan", "scan"),
    (Activity::Rank, "rank", "harvest and re-rank"),
    (Activity::Wait, "wait", "wait for reads"),
];

/// Beyond this ratio of the longest lane to the shortest, one axis shows nothing of the short ones.
const COMPARABLE: f64 = 4.0;

/// The timeline for a page: on one time axis and, when there are several lanes, on their own; first
/// what shows more.
pub(super) fn variants(timeline: &Timeline) -> Vec<(&'static str, String)> {
    let draw = |shared| {
        let mut svg = Svg::default();
        draw(&mut svg, timeline, 0.0, shared);
        svg.inline((WIDTH, height(timeline)), &timeline.title)
    };
    let own = (timeline.lanes.len() > 1).then(|| ("own time axes", draw(false)));
    let mut all: Vec<_> = std::iter::once(("one time axis", draw(true))).chain(own).collect();
    if !comparable(timeline) {
        all.reverse();
    }
    all
}

/// Whether one time axis suits all lanes.
fn comparable(timeline: &Timeline) -> bool {
    let ends = || timeline.lanes.iter().map(|lane| lane.end);
    ends().fold(0.0, f64::max) <= COMPARABLE * ends().fold(f64::INFINITY, f64::min)
}

/// The timeline as a file of its own, with title and legend.
pub(super) fn file(timeline: &Timeline) -> String {
    let mut svg = Svg::default();
    let top = svg.title(&timeline.title, WIDTH);
    draw(&mut svg, timeline, top, comparable(timeline));
    let keys = legend().map(|(class, name)| (class.to_string(), name));
    let end = svg.legend(keys, top + height(timeline) + 14.0, WIDTH);
    svg.file((WIDTH, end))
}

/// Class and name of everything that is drawn.
pub(super) fn legend() -> impl Iterator<Item = (&'static str, &'static str)> {
    let activities = ACTIVITIES.iter().map(|&(_, class, name)| (class, name));
    activities.chain([("reads", "reads in flight")])
}

fn height(timeline: &Timeline) -> f64 {
    LANE * timeline.lanes.len() as f64 + LABEL
}

fn draw(svg: &mut Svg, timeline: &Timeline, top: f64, shared: bool) {
    let longest = timeline.lanes.iter().map(|lane| lane.end).fold(0.0, f64::max);
    for (i, lane) in timeline.lanes.iter().enumerate() {
        let time = Scale::until(if shared { longest } else { lane.end });
        let end = if shared { longest } else { lane.end };
        svg.open(&format!(
            "data-lane=\"{i}\" data-left=\"{LEFT}\" data-right=\"{}\" data-end=\"{end}\"",
            WIDTH - RIGHT
        ));
        draw_lane(svg, lane, &time, top + LANE * i as f64);
        svg.close();
    }
    let bottom = top + height(timeline) - 6.0;
    svg.text((WIDTH / 2.0, bottom), Anchor::Middle, "label", "time from the query's start (µs)");
}

fn draw_lane(svg: &mut Svg, lane: &Lane, time: &Scale, top: f64) {
    let across = |at: f64| LEFT + time.share(at) * (WIDTH - LEFT - RIGHT);
    let most = lane.reads.iter().map(|&(_, reads)| reads).max().unwrap_or(0);
    svg.path(&format!("M0 {top}h{WIDTH}v{LANE}h-{WIDTH}z"), "ground");
    svg.text((LEFT, top + 16.0), Anchor::Start, "name", &lane.name);
    let read = lane.reads.windows(2).filter(|pair| pair[1].1 > pair[0].1).count();
    let read = read + usize::from(!lane.reads.is_empty());
    let summary = format!("{} reads, {:.0} µs", read, lane.end);
    svg.text((WIDTH - RIGHT, top + 16.0), Anchor::End, "tick", &summary);

    for (activity, class, _) in ACTIVITIES {
        let strips = strips(lane, activity);
        let mut d = String::new();
        for (from, to) in strips {
            let (x, width) = (across(from), across(to) - across(from));
            d.push_str(&format!(
                "M{x:.2} {:.1}h{width:.2}v{:.1}h-{width:.2}z",
                top + STRIP.0,
                STRIP.1 - STRIP.0
            ));
        }
        svg.path(&d, &format!("strip {class}"));
    }

    let (roof, floor) = (top + STEPS.0, top + STEPS.1);
    let up = |reads: u32| floor - f64::from(reads) / f64::from(most.max(1)) * (floor - roof);
    let mut d = format!("M{:.2} {floor:.1}", across(0.0));
    for &(at, reads) in &lane.reads {
        d.push_str(&format!("H{:.2}V{:.1}", across(at), up(reads)));
    }
    d.push_str(&format!("H{:.2}V{floor:.1}", across(lane.end)));
    svg.path(&d, "reads");
    svg.text((LEFT - 6.0, roof + 8.0), Anchor::End, "tick", &most.to_string());
    svg.text((LEFT - 6.0, floor + 2.0), Anchor::End, "tick", "0");
    svg.line((LEFT, floor), (WIDTH - RIGHT, floor), "axis");
    for &tick in &time.ticks {
        svg.line((across(tick), floor), (across(tick), floor + 4.0), "axis");
        svg.text((across(tick), floor + 19.0), Anchor::Middle, "tick", &time.label(tick));
    }
}

/// When `activity` went on, from and to.
fn strips(lane: &Lane, activity: Activity) -> impl Iterator<Item = (f64, f64)> {
    let ends = lane.activities.iter().skip(1).map(|&(at, _)| at).chain([lane.end]);
    let spans = lane.activities.iter().zip(ends);
    spans.filter(move |((_, what), _)| *what == activity).map(|(&(from, _), to)| (from, to))
}
