//! What a trace says must agree with what the query cost.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, unreachable_pub)]
mod support;

use rabitq_ssd::{BuildOptions, Event, EventKind, Phase, Pipeline, SearchOptions};
use support::Fixture;

#[test]
fn a_trace_agrees_with_the_result_and_with_what_it_cost() {
    let f = Fixture::clustered(11_000, 96, 3);
    let index = f.index(&BuildOptions { nlist: Some(20), ..BuildOptions::default() });
    for pipeline in [
        Pipeline::Naive,
        Pipeline::Coalesced,
        Pipeline::Overlapped,
        Pipeline::Scheduled,
        Pipeline::Full,
        Pipeline::Fifo,
    ] {
        let o = SearchOptions { pipeline, deterministic: true, alpha: 1.0, ..Default::default() };
        for query in f.rows.iter().step_by(1000) {
            let plain = index.search(query, &o).unwrap();
            let (result, trace) = index.trace(query, &o).unwrap();
            assert_eq!((&result.ids, &result.scores), (&plain.ids, &plain.scores), "{pipeline}");
            check(&trace.events, result.stats.issued, result.stats.total_ns);
        }
    }
}

fn check(events: &[Event], issued: u64, total_ns: u64) {
    assert!(events.is_sorted_by_key(|event| event.at_ns));
    assert!(events.last().is_some_and(|last| last.at_ns <= total_ns));
    let count = |kind| events.iter().filter(|event| event.kind == kind).count() as u64;
    assert_eq!(count(EventKind::Submit), issued);
    assert_eq!(count(EventKind::Complete), issued);
    let mut in_flight = 0;
    for event in events {
        match event.kind {
            EventKind::Submit => in_flight += 1,
            EventKind::Complete => in_flight -= 1,
            _ => {}
        }
        assert!(in_flight >= 0, "completed before it was submitted");
    }
    let phases: Vec<Phase> = events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Phase(phase) => Some(phase),
            _ => None,
        })
        .collect();
    assert_eq!(phases[..2], [Phase::Route, Phase::Scan]);
    assert!(phases.contains(&Phase::Wait) && phases.contains(&Phase::Rank));
}
