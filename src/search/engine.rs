//! One query from probes to hits: the search pipeline of the paper (§4.3, §4.4), one engine with
//! a policy.
//!
//! ```text
//! for each list, near to far:
//!     for each batch of 32 codes:
//!         bounds ─▶ seeds tighten the threshold, survivors join page candidates
//!         poll, harvest, issue the next reads
//! drain: issue what still beats the alpha-quantile of the results, until nothing is left
//! ```
//! The threshold is the smaller of the seed (from RAM) and the k-th re-ranked distance (from SSD).
//! It only falls, so a candidate that fails once has failed for good.

use codec::{BATCH, Factors, Scan, Thresholds, TightBound};
use pageio::{Completion, Slot};
use simd::BatchBounds;

use super::options::Plan;
use super::pages::{Candidates, Member, Pending};
use super::reads::Reads;
use super::rerank::Rerank;
use super::seed::Seed;
use super::stats::SearchStats;
use super::topk::{Hit, TopK};
use super::trace::Phase;
use crate::coarse::Probe;
use crate::error::SearchError;
use crate::store::parts::Parts;

/// What a query fills and the next one reuses.
#[derive(Default)]
pub(crate) struct EngineScratch {
    candidates: Candidates,
    pending: Pending,
    seed: Seed,
    pub(crate) top: TopK,
    bounds: BatchBounds,
    done: Vec<Completion>,
}

/// One query under way.
pub(crate) struct Engine<'a> {
    pub(crate) parts: &'a Parts,
    pub(crate) plan: &'a Plan,
    pub(crate) probes: &'a [Probe],
    pub(crate) scan: Scan<'a>,
    pub(crate) tight: TightBound,
    pub(crate) rerank: Rerank<'a>,
    pub(crate) reads: Reads<'a>,
    pub(crate) s: &'a mut EngineScratch,
    pub(crate) stats: &'a mut SearchStats,
}

/// The page candidate that survivors of the list at hand join.
#[derive(Clone, Copy)]
struct Open {
    unit: u64,
    candidate: u32,
}

impl Engine<'_> {
    /// Scans every probe; reads go out and come back meanwhile.
    pub(crate) fn scan(&mut self) -> Result<(), SearchError> {
        self.reads.trace().begin(Phase::Scan);
        self.s.candidates.clear();
        self.s.pending.reset(self.plan.policy.order);
        self.s.seed.reset(if self.plan.seeded { self.plan.k } else { 0 });
        self.s.top.reset(self.plan.k, !self.parts.records.geometry.id_in_record);
        for probe in 0..self.probes.len() {
            self.reads.check_stop()?;
            self.scan_list(probe as u32)?;
        }
        Ok(())
    }

    fn scan_list(&mut self, probe: u32) -> Result<(), SearchError> {
        let Probe { list, terms } = self.probes[probe as usize];
        let range = self.parts.list(list);
        self.stats.lists_probed += 1;
        self.stats.codes_scanned += range.end - range.start;
        let mut open = None;
        let mut bounds = std::mem::take(&mut self.s.bounds);
        for batch in range.start / BATCH as u64..range.end.div_ceil(BATCH as u64) {
            let lanes = lanes_within(batch, &range);
            let thresholds =
                Thresholds { prune: self.threshold(), seed: self.s.seed.admits_below() };
            let (survivors, seeds) = self.scan.batch(batch, lanes, &terms, thresholds, &mut bounds);
            for slot in slots(seeds) {
                self.s.seed.push_upper(bounds.upper[slot]);
            }
            for slot in slots(survivors) {
                self.s.seed.push_estimate((bounds.lower[slot] + bounds.upper[slot]) / 2.0);
                let position = batch * BATCH as u64 + slot as u64;
                let sum = bounds.estimate_sum[slot];
                self.survivor(position, sum, bounds.lower[slot], probe, &mut open)?;
            }
            self.pump()?;
        }
        self.s.bounds = bounds;
        self.close(&mut open)?;
        self.pump()
    }

    /// A code that passed the scan: the tight bound decides whether its page becomes a candidate.
    fn survivor(
        &mut self,
        position: u64,
        prefix_sum: f32,
        scanned: f32,
        probe: u32,
        open: &mut Option<Open>,
    ) -> Result<(), SearchError> {
        let threshold = self.threshold();
        if scanned > threshold {
            return Ok(());
        }
        let factors: Factors = self.parts.codes.factors(position);
        let terms = &self.probes[probe as usize].terms;
        let table_error = self.scan.query.table_error();
        let lower = self.tight.lower(factors, prefix_sum, terms, table_error).max(scanned);
        if lower > threshold {
            return Ok(());
        }
        self.stats.survivors += 1;
        let unit = self.parts.records.geometry.unit(position);
        if open.is_some_and(|o| o.unit != unit || !self.plan.policy.coalesce) {
            self.close(open)?;
        }
        if open.is_none() {
            let candidate = self.s.candidates.open(unit, probe);
            *open = Some(Open { unit, candidate });
        }
        self.s.candidates.add(Member { position, lower, prefix_sum });
        Ok(())
    }

    /// The scan has left a page: its candidate waits to be read, or is read at once.
    fn close(&mut self, open: &mut Option<Open>) -> Result<(), SearchError> {
        let Some(Open { candidate, .. }) = open.take() else {
            return Ok(());
        };
        self.stats.page_candidates += 1;
        let lower = self.s.candidates.get(candidate).lower;
        self.s.pending.push(candidate, lower);
        if self.plan.policy.at_once {
            self.issue(f32::INFINITY, f32::INFINITY)?;
        }
        if self.plan.policy.blocking {
            self.issue(f32::INFINITY, self.threshold())?;
            while self.reads.in_flight() > 0 {
                self.harvest(true)?;
            }
        }
        Ok(())
    }

    /// Finishes the query: issues what beats the drain threshold and waits for the rest.
    pub(crate) fn drain(&mut self) -> Result<(), SearchError> {
        self.reads.trace().begin(Phase::Rank);
        loop {
            let guess =
                if self.reads.in_flight() == 0 { f32::INFINITY } else { self.s.seed.guess() };
            self.issue(guess, self.drain_threshold())?;
            if self.reads.in_flight() == 0 {
                break;
            }
            self.harvest(true)?;
        }
        if self.plan.deterministic {
            // Whether a record beyond the final seed was read depended on when the seed got there.
            let seed = self.s.seed.threshold();
            self.s.top.hits_mut().retain(|h| h.lower <= seed);
        }
        Ok(())
    }

    /// Harvests what came back and issues what may go out, without waiting for anything.
    fn pump(&mut self) -> Result<(), SearchError> {
        if self.reads.in_flight() > 0 {
            self.harvest(false)?;
        }
        if self.s.pending.is_empty() {
            Ok(())
        } else {
            self.issue(self.s.seed.guess(), self.threshold())
        }
    }

    /// Issues reads within `limit`, discarding what is beyond `threshold`.
    fn issue(&mut self, limit: f32, threshold: f32) -> Result<(), SearchError> {
        while self.reads.in_flight() < self.plan.policy.inflight {
            let Some(next) = self.s.pending.pop(limit, threshold, &mut self.stats.dropped) else {
                break;
            };
            let unit = self.s.candidates.get(next).unit;
            self.reads.submit(u64::from(next), unit, self.stats)?;
        }
        Ok(self.reads.flush()?)
    }

    fn harvest(&mut self, block: bool) -> Result<(), SearchError> {
        let mut done = std::mem::take(&mut self.s.done);
        let outcome = self.reads.harvest(block, &mut done, self.stats);
        let came = !done.is_empty();
        let mut first_error = outcome.err();
        for Completion { tag, slot, result } in done.drain(..) {
            if first_error.is_none() {
                let outcome = result.map_err(SearchError::from);
                first_error = outcome.and_then(|()| self.rank_page(tag as u32, slot)).err();
            }
            self.reads.release(slot);
        }
        self.s.done = done;
        if came {
            self.reads.trace().resume();
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Re-ranks the members of a page that still pass the threshold.
    fn rank_page(&mut self, candidate: u32, slot: Slot) -> Result<(), SearchError> {
        let c = self.s.candidates.get(candidate);
        let bytes = self.reads.bytes(slot);
        self.parts.records.check(c.unit, bytes)?;
        let terms = self.probes[c.probe as usize].terms;
        let geometry = self.parts.records.geometry;
        let mut reranked = 0;
        for member in self.s.candidates.members(candidate) {
            if member.lower > self.threshold() {
                continue;
            }
            let record = &bytes[geometry.range(member.position)];
            let (payload, id) = record.split_at(self.parts.shape.payload());
            let ranked = self.rerank.rank(payload, member.prefix_sum, &terms);
            let key = if self.plan.deterministic {
                ranked.distance.max(member.lower)
            } else {
                ranked.distance
            };
            let id = id.first_chunk().map_or(member.position, |b| u64::from_le_bytes(*b));
            self.s.top.push(Hit { key, score: ranked.score, lower: member.lower, id });
            reranked += 1;
        }
        self.stats.reranked += reranked;
        self.stats.wasted += u64::from(reranked == 0);
        Ok(())
    }

    /// What a lower bound must not exceed.
    fn threshold(&self) -> f32 {
        if self.plan.exhaustive {
            return f32::INFINITY;
        }
        self.s.top.threshold().min(self.s.seed.threshold())
    }

    /// What a lower bound must not exceed once the scan is over: the alpha-quantile of the results,
    /// or the threshold while there are too few.
    fn drain_threshold(&self) -> f32 {
        if self.plan.exhaustive {
            return f32::INFINITY;
        }
        self.s.top.rank(self.plan.policy.drain_rank).min(self.threshold())
    }
}

/// The slots of a batch that lie in a list.
fn lanes_within(batch: u64, list: &std::ops::Range<u64>) -> u32 {
    let first = batch * BATCH as u64;
    let below = list.start.saturating_sub(first).min(BATCH as u64) as u32;
    let upto = (list.end - first).min(BATCH as u64) as u32;
    let mask = |n: u32| if n >= 32 { u32::MAX } else { (1 << n) - 1 };
    mask(upto) & !mask(below)
}

/// The set bits of a mask, lowest first.
fn slots(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let slot = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        Some(slot)
    })
}

const _: () = assert!(BATCH == 32, "a batch is one 32-bit mask");
