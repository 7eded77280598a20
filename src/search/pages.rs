//! Page candidates: the survivors of one page, and the set in which pages wait to be read.
//!
//! ```text
//! survivors ──coalesce──▶ candidate {unit, lower = min of members, members} ──▶ pending ──▶ read
//! ```
//! In the paper's order the pending set is a heap by lower bound (§4.3); first in, first out is
//! the ablation. Members lie in one arena, so a query allocates nothing once it is warm.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// A vector that survived the scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// Its position in the lists.
    pub(crate) position: u64,
    /// Its lower bound.
    pub(crate) lower: f32,
    /// The prefix sum S_m the scan computed, reused by the re-rank of `split` records.
    pub(crate) prefix_sum: f32,
}

/// The survivors of one list that share a unit of the record file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// The unit to read.
    pub(crate) unit: u64,
    /// The smallest lower bound of its members.
    pub(crate) lower: f32,
    /// Which of the query's probes it belongs to.
    pub(crate) probe: u32,
    first: u32,
    count: u32,
}

/// Every candidate and member of one query.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    all: Vec<Candidate>,
    members: Vec<Member>,
}

impl Candidates {
    pub(crate) fn clear(&mut self) {
        self.all.clear();
        self.members.clear();
    }

    /// Starts a candidate; members are added to the last one started.
    pub(crate) fn open(&mut self, unit: u64, probe: u32) -> u32 {
        let first = self.members.len() as u32;
        self.all.push(Candidate { unit, lower: f32::INFINITY, probe, first, count: 0 });
        (self.all.len() - 1) as u32
    }

    /// Adds a member to the candidate started last.
    pub(crate) fn add(&mut self, member: Member) {
        if let Some(last) = self.all.last_mut() {
            last.lower = last.lower.min(member.lower);
            last.count += 1;
            self.members.push(member);
        }
    }

    pub(crate) fn get(&self, candidate: u32) -> Candidate {
        self.all[candidate as usize]
    }

    pub(crate) fn members(&self, candidate: u32) -> &[Member] {
        let c = self.get(candidate);
        &self.members[c.first as usize..(c.first + c.count) as usize]
    }
}

/// In which order pending pages are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Order {
    /// Smallest lower bound first.
    #[default]
    Bound,
    /// First in, first out.
    Arrival,
}

/// A heap entry: smallest bound first, ties in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Waiting {
    lower: f32,
    candidate: u32,
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        other.lower.total_cmp(&self.lower).then(other.candidate.cmp(&self.candidate))
    }
}

/// The candidates that wait to be read.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    order: Order,
    heap: BinaryHeap<Waiting>,
    queue: VecDeque<Waiting>,
}

impl Pending {
    pub(crate) fn reset(&mut self, order: Order) {
        self.order = order;
        self.heap.clear();
        self.queue.clear();
    }

    pub(crate) fn push(&mut self, candidate: u32, lower: f32) {
        match self.order {
            Order::Bound => self.heap.push(Waiting { lower, candidate }),
            Order::Arrival => self.queue.push_back(Waiting { lower, candidate }),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty() && self.queue.is_empty()
    }

    /// Takes the next candidate whose bound is within `limit`. Candidates beyond `threshold` are
    /// discarded and added to `dropped`; those between the two keep waiting. In bound order the
    /// first failure fails all.
    pub(crate) fn pop(&mut self, limit: f32, threshold: f32, dropped: &mut u64) -> Option<u32> {
        match self.order {
            Order::Bound => {
                let next = *self.heap.peek()?;
                if next.lower > threshold {
                    *dropped += self.heap.len() as u64;
                    self.heap.clear();
                    return None;
                }
                if next.lower > limit {
                    return None;
                }
                self.heap.pop().map(|next| next.candidate)
            }
            Order::Arrival => {
                while let Some(next) = self.queue.pop_front() {
                    if next.lower <= threshold {
                        return Some(next.candidate);
                    }
                    *dropped += 1;
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(order: Order, bounds: &[f32]) -> Pending {
        let mut p = Pending::default();
        p.reset(order);
        bounds.iter().enumerate().for_each(|(i, &b)| p.push(i as u32, b));
        p
    }

    #[test]
    fn bound_order_reads_the_smallest_first_and_drops_the_rest_at_once() {
        let mut p = pending(Order::Bound, &[5.0, 1.0, 9.0, 3.0]);
        let mut dropped = 0;
        assert_eq!(p.pop(4.0, 4.0, &mut dropped), Some(1));
        assert_eq!(p.pop(4.0, 4.0, &mut dropped), Some(3));
        assert_eq!(p.pop(4.0, 4.0, &mut dropped), None);
        assert_eq!(dropped, 2);
    }

    #[test]
    fn candidates_between_limit_and_threshold_keep_waiting() {
        let mut p = pending(Order::Bound, &[5.0, 1.0, 3.0]);
        let mut dropped = 0;
        assert_eq!(p.pop(2.0, 4.0, &mut dropped), Some(1));
        assert_eq!((p.pop(2.0, 4.0, &mut dropped), dropped), (None, 0));
        assert_eq!(p.pop(4.0, 4.0, &mut dropped), Some(2));
    }

    #[test]
    fn arrival_order_skips_only_what_fails() {
        let mut p = pending(Order::Arrival, &[5.0, 1.0, 9.0, 3.0]);
        let mut dropped = 0;
        assert_eq!(p.pop(4.0, 4.0, &mut dropped), Some(1));
        assert_eq!(p.pop(4.0, 4.0, &mut dropped), Some(3));
        assert_eq!((p.pop(4.0, 4.0, &mut dropped), dropped), (None, 2));
    }

    #[test]
    fn a_candidate_has_its_own_members_and_their_smallest_bound() {
        let mut c = Candidates::default();
        let a = c.open(7, 0);
        c.add(Member { position: 70, lower: 2.0, prefix_sum: 0.0 });
        c.add(Member { position: 71, lower: 1.0, prefix_sum: 0.0 });
        let b = c.open(8, 1);
        c.add(Member { position: 80, lower: 4.0, prefix_sum: 0.0 });
        assert_eq!((c.get(a).lower, c.members(a).len()), (1.0, 2));
        assert_eq!((c.get(b).unit, c.members(b)[0].position), (8, 80));
    }
}
