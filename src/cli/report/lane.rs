//! From the trace of a search to a lane of a timeline.

use rabitq_ssd::{EventKind, Phase, Trace};

use super::{Activity, Lane};

impl Lane {
    /// The lane of a search that took `total_ns`.
    pub(crate) fn of(name: String, trace: &Trace, total_ns: u64) -> Self {
        let micros = |ns: u64| ns as f64 / 1e3;
        let (mut activities, mut reads, mut in_flight) = (Vec::new(), Vec::new(), 0u32);
        for event in &trace.events {
            let at = micros(event.at_ns);
            match event.kind {
                EventKind::Phase(phase) => activities.push((at, activity(phase))),
                EventKind::Submit => {
                    in_flight += 1;
                    reads.push((at, in_flight));
                }
                EventKind::Complete => {
                    in_flight = in_flight.saturating_sub(1);
                    reads.push((at, in_flight));
                }
                _ => {}
            }
        }
        Self { name, activities, reads, end: micros(total_ns) }
    }
}

fn activity(phase: Phase) -> Activity {
    match phase {
        Phase::Route => Activity::Route,
        Phase::Scan => Activity::Scan,
        Phase::Rank => Activity::Rank,
        _ => Activity::Wait,
    }
}
