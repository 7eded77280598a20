//! The reads of one query: what is in flight, what came back, what it cost.

use std::time::Instant;

use pageio::{Completion, PageReader, ReadError, Slot};

use super::stats::SearchStats;
use super::stop::Stop;
use super::trace::{Phase, Tracer};
use crate::error::SearchError;
use crate::store::units::Units;

/// A reader with the clock and counters of the query it serves.
pub(crate) struct Reads<'a> {
    reader: &'a mut dyn PageReader,
    units: &'a Units,
    first: Option<Instant>,
    last: Instant,
    queued: bool,
    stop: Stop<'a>,
    trace: Tracer<'a>,
}

impl<'a> Reads<'a> {
    pub(crate) fn new(
        reader: &'a mut dyn PageReader,
        units: &'a Units,
        stop: Stop<'a>,
        trace: Tracer<'a>,
    ) -> Self {
        Self { reader, units, first: None, last: Instant::now(), queued: false, stop, trace }
    }

    /// An error when the query must not go on.
    pub(crate) fn check_stop(&self) -> Result<(), SearchError> {
        self.stop.check()
    }

    /// The tracer of the query, for what happens besides reads.
    pub(crate) fn trace(&mut self) -> &mut Tracer<'a> {
        &mut self.trace
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.reader.in_flight()
    }

    /// Queues the read of a unit; `flush` sends it.
    pub(crate) fn submit(
        &mut self,
        tag: u64,
        unit: u64,
        stats: &mut SearchStats,
    ) -> Result<(), ReadError> {
        self.tick(stats);
        let pages = self.units.geometry.unit_pages;
        self.reader.submit(tag, self.units.page(unit), pages as u32)?;
        self.queued = true;
        self.trace.submitted();
        stats.issued += 1;
        stats.pages += pages as u64;
        stats.bytes += (pages * pageio::PAGE) as u64;
        Ok(())
    }

    /// Sends what was queued.
    pub(crate) fn flush(&mut self) -> Result<(), ReadError> {
        if std::mem::take(&mut self.queued) { self.reader.flush() } else { Ok(()) }
    }

    /// Takes what has come back, waiting for at least one if `block`, and until the query is stopped.
    pub(crate) fn harvest(
        &mut self,
        block: bool,
        done: &mut Vec<Completion>,
        stats: &mut SearchStats,
    ) -> Result<usize, SearchError> {
        if self.reader.in_flight() == 0 {
            return Ok(0);
        }
        if !block {
            let before = self.reader.in_flight();
            let n = self.reader.poll(done)?;
            if n > 0 {
                self.tick_with(before, stats);
                self.arrived(n);
            }
            return Ok(n);
        }
        self.trace.interrupt(Phase::Wait);
        let (before, start) = (self.reader.in_flight(), Instant::now());
        let n = loop {
            self.stop.check()?;
            let ended = self.reader.wait_at_most(self.stop.slice(), done)?;
            if ended > 0 {
                break ended;
            }
        };
        self.queued = false;
        stats.wait_ns += start.elapsed().as_nanos() as u64;
        self.tick_with(before, stats);
        self.arrived(n);
        Ok(n)
    }

    /// Reads have come back: the caller turns to them.
    fn arrived(&mut self, reads: usize) {
        self.trace.completed(reads);
        self.trace.interrupt(Phase::Rank);
    }

    pub(crate) fn bytes(&self, slot: Slot) -> &[u8] {
        self.reader.bytes(slot)
    }

    pub(crate) fn release(&mut self, slot: Slot) {
        self.reader.release(slot);
    }

    fn tick(&mut self, stats: &mut SearchStats) {
        self.tick_with(self.reader.in_flight(), stats);
    }

    /// Adds the time since the last event, during which `in_flight` reads were on their way.
    fn tick_with(&mut self, in_flight: usize, stats: &mut SearchStats) {
        let now = Instant::now();
        let first = *self.first.get_or_insert(now);
        if first != now {
            let since = (now - self.last).as_nanos() as u64;
            stats.inflight_ns += since * in_flight as u64;
            stats.io_span_ns += since;
        }
        self.last = now;
    }
}
