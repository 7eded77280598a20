//! Where a record lies in its file: fixed-size records in 4 KiB pages, none across a border.
//!
//! ```text
//! record ≤ 4096 bytes             unit = 1 page, `per_unit` records
//!   | record | record | … | record | zeros | crc32c |
//! record > 4096 bytes             unit = several pages, 1 record
//!   | record ················ | zeros | crc32c |
//! ```
//! A *unit* is what one read fetches. Its checksum takes its last four bytes when the records leave
//! them free, else it stands in a side table. An id joins the record when that costs no room.

use pageio::PAGE;

const CHECK: usize = 4;
const ID: usize = 8;

/// The layout of one paged file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Bytes of one record, its id included when it has one.
    pub(crate) record_bytes: usize,
    /// Records in a unit.
    pub(crate) per_unit: usize,
    /// Pages in a unit.
    pub(crate) unit_pages: usize,
    /// Whether the last 8 bytes of a record are its id.
    pub(crate) id_in_record: bool,
    /// Whether the last 4 bytes of a unit are its checksum.
    pub(crate) check_in_unit: bool,
}

impl Geometry {
    /// The layout for records of `payload` bytes that want an id beside them.
    pub(crate) fn with_id(payload: usize) -> Self {
        let (pages, per) = shape(payload);
        let id_in_record = shape(payload + ID) == (pages, per);
        Self::of(payload + if id_in_record { ID } else { 0 }, id_in_record)
    }

    /// The layout of a file of u64 ids, 511 a page.
    pub(crate) fn ids() -> Self {
        let mut ids = Self::of(ID, false);
        ids.per_unit = (PAGE - CHECK) / ID;
        ids.check_in_unit = true;
        ids
    }

    fn of(record_bytes: usize, id_in_record: bool) -> Self {
        let (unit_pages, per_unit) = shape(record_bytes);
        let check_in_unit = per_unit * record_bytes + CHECK <= unit_pages * PAGE;
        Self { record_bytes, per_unit, unit_pages, id_in_record, check_in_unit }
    }

    /// Bytes of a unit.
    pub(crate) fn unit_bytes(&self) -> usize {
        self.unit_pages * PAGE
    }

    /// Units that `records` records take.
    pub(crate) fn units(&self, records: u64) -> u64 {
        records.div_ceil(self.per_unit as u64)
    }

    /// Bytes of the file that holds `records` records; `None` beyond u64.
    pub(crate) fn file_bytes(&self, records: u64) -> Option<u64> {
        self.units(records).checked_mul(self.unit_bytes() as u64)
    }

    /// Bytes of the side table of checksums, 0 when they stand in the units.
    pub(crate) fn check_table_bytes(&self, records: u64) -> u64 {
        if self.check_in_unit { 0 } else { self.units(records) * CHECK as u64 }
    }

    /// The unit of record `position`.
    pub(crate) fn unit(&self, position: u64) -> u64 {
        position / self.per_unit as u64
    }

    /// The bytes of record `position` within its unit.
    pub(crate) fn range(&self, position: u64) -> std::ops::Range<usize> {
        let slot = (position % self.per_unit as u64) as usize;
        slot * self.record_bytes..(slot + 1) * self.record_bytes
    }
}

/// Pages of a unit and records in it, for records of `bytes` bytes.
fn shape(bytes: usize) -> (usize, usize) {
    if bytes > PAGE { (bytes.div_ceil(PAGE), 1) } else { (1, PAGE / bytes.max(1)) }
}

/// The checksum of a unit: over the build's tag, the unit's number and its bytes, so that a page of
/// another build or of another place never passes.
pub(crate) fn unit_check(tag: u32, unit: u64, bytes: &[u8]) -> u32 {
    let mut head = [0u8; 12];
    head[..4].copy_from_slice(&tag.to_le_bytes());
    head[4..].copy_from_slice(&unit.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&head), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_joins_the_record_only_when_it_costs_no_record() {
        // B = 9 split at 384 dims: 392 bytes, 10 a page with or without 8 more.
        let split = Geometry::with_id(392);
        assert_eq!((split.record_bytes, split.per_unit, split.id_in_record), (400, 10, true));
        assert!(split.check_in_unit);
        // u8 at 1024 dims fits a page exactly: neither id nor checksum has room.
        let raw = Geometry::with_id(1024);
        assert_eq!((raw.record_bytes, raw.per_unit, raw.id_in_record), (1024, 4, false));
        assert!(!raw.check_in_unit);
        assert_eq!(raw.check_table_bytes(9), 12);
    }

    #[test]
    fn records_larger_than_a_page_take_whole_pages() {
        let big = Geometry::with_id(1536 * 4);
        assert_eq!((big.unit_pages, big.per_unit, big.id_in_record), (2, 1, true));
        assert_eq!(big.file_bytes(3), Some(3 * 8192));
        let exact = Geometry::with_id(8192);
        assert_eq!((exact.unit_pages, exact.id_in_record, exact.check_in_unit), (2, false, false));
    }

    #[test]
    fn offsets_beyond_four_gib_rows_do_not_wrap() {
        let raw = Geometry::with_id(392);
        let position = (1u64 << 32) + 5;
        assert_eq!(raw.unit(position), position / 10);
        assert_eq!(raw.range(position).start, ((position % 10) * 400) as usize);
        assert_eq!(raw.file_bytes(u64::MAX), None);
    }

    #[test]
    fn a_check_depends_on_tag_and_place() {
        let bytes = [7u8; 64];
        assert_ne!(unit_check(1, 0, &bytes), unit_check(2, 0, &bytes));
        assert_ne!(unit_check(1, 0, &bytes), unit_check(1, 1, &bytes));
    }
}
