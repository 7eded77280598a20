//! What one query did and when: the changes of activity and the reads, for timelines like the
//! paper's Figure 4.
//!
//! A search carries a [`Tracer`], which is off unless a trace was asked for; off, every call is
//! one test of a null pointer, made once a read or once a list and never for each code.

use std::time::Instant;

use serde::Serialize;

/// The course of one query.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Trace {
    /// In order of time.
    pub events: Vec<Event>,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Nanoseconds from the start of the search.
    pub at_ns: u64,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum EventKind {
    /// The thread turned to something else, and stays with it until the next `Phase`.
    Phase(Phase),
    /// A read was handed to the reader.
    Submit,
    /// A read was seen to be complete.
    Complete,
}

/// What the thread of a search is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Phase {
    /// Rotating the query, finding lists, making tables.
    #[default]
    Route,
    /// Scanning codes and choosing pages.
    Scan,
    /// Re-ranking what came back, and, once the scan is over, issuing the last reads.
    Rank,
    /// Blocked until a read completes.
    Wait,
}

/// A trace in the making.
#[derive(Debug)]
pub(crate) struct Recorder {
    start: Instant,
    /// The phase that others interrupt.
    base: Phase,
    trace: Trace,
}

impl Default for Recorder {
    fn default() -> Self {
        Self { start: Instant::now(), base: Phase::Route, trace: Trace::default() }
    }
}

impl Recorder {
    pub(crate) fn finish(self) -> Trace {
        self.trace
    }

    fn push(&mut self, kind: EventKind) {
        let at_ns = self.start.elapsed().as_nanos() as u64;
        self.trace.events.push(Event { at_ns, kind });
    }
}

/// A recorder, or nothing.
#[derive(Debug, Default)]
pub(crate) struct Tracer<'a>(Option<&'a mut Recorder>);

impl<'a> Tracer<'a> {
    /// A search begins, which starts the recorder's clock.
    pub(crate) fn new(mut recorder: Option<&'a mut Recorder>) -> Self {
        if let Some(recorder) = &mut recorder {
            recorder.start = Instant::now();
            recorder.push(EventKind::Phase(Phase::Route));
        }
        Self(recorder)
    }

    /// When the search began: by the recorder's clock, so that no event is later than its end.
    pub(crate) fn start(&self) -> Instant {
        self.0.as_ref().map_or_else(Instant::now, |recorder| recorder.start)
    }

    /// The same tracer for a part of the search.
    pub(crate) fn lend(&mut self) -> Tracer<'_> {
        Tracer(self.0.as_deref_mut())
    }

    /// A phase begins that others only interrupt.
    pub(crate) fn begin(&mut self, phase: Phase) {
        if let Some(recorder) = &mut self.0 {
            recorder.base = phase;
            recorder.push(EventKind::Phase(phase));
        }
    }

    /// A phase begins that ends by [`resume`](Self::resume) or by the next one.
    pub(crate) fn interrupt(&mut self, phase: Phase) {
        if let Some(recorder) = &mut self.0 {
            recorder.push(EventKind::Phase(phase));
        }
    }

    /// Back to the phase that was interrupted.
    pub(crate) fn resume(&mut self) {
        if let Some(recorder) = &mut self.0 {
            recorder.push(EventKind::Phase(recorder.base));
        }
    }

    /// A read was submitted.
    pub(crate) fn submitted(&mut self) {
        if let Some(recorder) = &mut self.0 {
            recorder.push(EventKind::Submit);
        }
    }

    /// `reads` reads have completed.
    pub(crate) fn completed(&mut self, reads: usize) {
        if let Some(recorder) = &mut self.0 {
            (0..reads).for_each(|_| recorder.push(EventKind::Complete));
        }
    }
}
