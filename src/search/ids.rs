//! Ids that are not at hand: those of the winners when records have no room for them, and those of
//! rows outside the lists.

use std::collections::BTreeMap;

use pageio::Completion;

use super::reads::Reads;
use super::stats::SearchStats;
use super::stop::Stop;
use super::topk::Hit;
use crate::error::SearchError;
use crate::store::parts::READ_SLOTS;
use crate::store::units::Units;

/// Replaces the positions in `hits` by ids, reading each page of ids.bin once.
pub(super) fn read_ids(
    reads: &mut Reads,
    units: &Units,
    hits: &mut [Hit],
    stats: &mut SearchStats,
) -> Result<(), SearchError> {
    let mut wanted: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (i, hit) in hits.iter().enumerate() {
        wanted.entry(units.geometry.unit(hit.id)).or_default().push(i);
    }
    let mut done: Vec<Completion> = Vec::new();
    let mut next = wanted.keys().copied();
    let mut left = wanted.len();
    while left > 0 {
        while reads.in_flight() < READ_SLOTS as usize {
            let Some(unit) = next.next() else { break };
            reads.submit(unit, unit, stats)?;
        }
        reads.flush()?;
        reads.harvest(true, &mut done, stats)?;
        let mut outcome = Ok(());
        for Completion { tag, slot, result } in done.drain(..) {
            if outcome.is_ok() {
                outcome = result.map_err(SearchError::from).and_then(|()| {
                    let wanted = wanted.get(&tag).map_or(&[][..], Vec::as_slice);
                    take_ids(reads.bytes(slot), units, tag, wanted, hits)
                });
            }
            reads.release(slot);
            left -= 1;
        }
        outcome?;
    }
    Ok(())
}

/// Names the hits whose ids stand in one unit.
fn take_ids(
    bytes: &[u8],
    units: &Units,
    unit: u64,
    wanted: &[usize],
    hits: &mut [Hit],
) -> Result<(), SearchError> {
    units.check(unit, bytes)?;
    wanted.iter().for_each(|&i| hits[i].id = id_at(bytes, units, hits[i].id, 0));
    Ok(())
}

/// The id of a position in the bytes of its unit, `before` bytes into its record.
fn id_at(bytes: &[u8], units: &Units, position: u64, before: usize) -> u64 {
    let record = &bytes[units.geometry.range(position)];
    record[before..].first_chunk().map_or(position, |b| u64::from_le_bytes(*b))
}

/// The first `count` ids of an id file.
pub(super) fn first_ids(
    units: &Units,
    len: u64,
    count: usize,
    stop: Stop<'_>,
    stats: &mut SearchStats,
) -> Result<Vec<u64>, SearchError> {
    all_ids(units, len.min(count as u64), 0, stop, stats)
}

/// The ids of the first `len` positions, `before` bytes into their records.
pub(super) fn all_ids(
    units: &Units,
    len: u64,
    before: usize,
    stop: Stop<'_>,
    stats: &mut SearchStats,
) -> Result<Vec<u64>, SearchError> {
    let before = if units.geometry.id_in_record { before } else { 0 };
    let mut bytes = vec![0u8; units.geometry.unit_bytes()];
    let mut ids = Vec::new();
    for unit in 0..if len == 0 { 0 } else { units.geometry.unit(len - 1) + 1 } {
        stop.check()?;
        units.read(unit, &mut bytes)?;
        stats.issued += 1;
        stats.pages += units.geometry.unit_pages as u64;
        stats.bytes += bytes.len() as u64;
        units.check(unit, &bytes)?;
        let per = units.geometry.per_unit as u64;
        ids.extend(
            (unit * per..((unit + 1) * per).min(len)).map(|p| id_at(&bytes, units, p, before)),
        );
    }
    Ok(ids)
}
