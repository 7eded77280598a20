//! How to tell later that a base is still the one it was, without reading all of it.
//!
//! ```text
//! file   length, modification time, and a crc32c over up to 64 blocks of 4 KiB:
//!        |▮····▮····▮····▮ ... ▮|     the first and the last included, evenly spaced
//! ```
//! 256 KiB a file, whatever its size. The blocks find another file of the same length; a change
//! between them shows in the time, unless somebody set that back. Paths are only for messages:
//! files may move.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::DatasetError;
use crate::file::read_exactly;

const BLOCK_BYTES: u64 = 4096;
const MOST_BLOCKS: u64 = 64;

/// What [`Base::fingerprint`](crate::Base::fingerprint) saw of a base; serialise it to compare
/// with a later one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    pub(crate) rows: u64,
    pub(crate) dim: usize,
    pub(crate) dtype: String,
    pub(crate) files: Vec<FilePrint>,
}

/// One file of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FilePrint {
    /// Absolute.
    path: String,
    bytes: u64,
    modified: Time,
    /// Over the blocks.
    crc32c: u32,
}

/// A moment, from the start of 1970 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Time {
    seconds: i64,
    nanos: i64,
}

impl Fingerprint {
    /// How the base seen `now` differs from this one, a sentence for each difference that names the
    /// file; nothing when it is the same base. Files are compared in their order; that one lies
    /// elsewhere is no difference.
    pub fn changes(&self, now: &Self) -> Vec<String> {
        if self.files.len() != now.files.len() {
            return vec![format!(
                "the base had {} files, has {}: {}",
                self.files.len(),
                now.files.len(),
                now.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>().join(", ")
            )];
        }
        let pairs = self.files.iter().zip(&now.files);
        let mut changes: Vec<String> = pairs.filter_map(|(was, is)| was.change(is)).collect();
        let shape =
            |base: &Self| format!("{} rows x {} {}", grouped(base.rows), base.dim, base.dtype);
        let (was, is) = (shape(self), shape(now));
        // A changed file explains another number of rows; the same files leave the way they are read.
        if changes.is_empty() && was != is {
            changes.push(format!("the base was {was}, is {is}"));
        }
        changes
    }
}

impl FilePrint {
    /// Look at an open file.
    pub(crate) fn of(path: &Path, file: &fs_err::File) -> Result<Self, DatasetError> {
        let metadata = file.metadata()?;
        let bytes = metadata.len();
        let mut crc32c = 0;
        let mut block = Vec::new();
        for (offset, len) in blocks(bytes) {
            block.resize(len, 0);
            read_exactly(file, path, offset, &mut block)?;
            crc32c = crc32c::crc32c_append(crc32c, &block);
        }
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let modified = Time { seconds: metadata.mtime(), nanos: metadata.mtime_nsec() };
        Ok(Self { path: absolute.to_string_lossy().into_owned(), bytes, modified, crc32c })
    }

    fn change(&self, now: &Self) -> Option<String> {
        let change = if self.bytes != now.bytes {
            format!("was {} bytes, is {}", grouped(self.bytes), grouped(now.bytes))
        } else if self.crc32c != now.crc32c {
            format!("content differs (modified at {}, before at {})", now.modified, self.modified)
        } else if self.modified != now.modified {
            format!("changed since (modified at {}, before at {})", now.modified, self.modified)
        } else {
            return None;
        };
        let moved =
            if self.path == now.path { String::new() } else { format!(" (was {})", self.path) };
        Some(format!("{}{moved}: {change}", now.path))
    }
}

/// Offset and length of the blocks to look at in a file of `bytes`.
fn blocks(bytes: u64) -> impl Iterator<Item = (u64, usize)> {
    let count = bytes.div_ceil(BLOCK_BYTES).min(MOST_BLOCKS);
    let len = bytes.min(BLOCK_BYTES);
    let (last, gaps) = (bytes - len, count.saturating_sub(1).max(1));
    // The quotient is at most `last`.
    let offset = move |i: u64| (u128::from(last) * u128::from(i) / u128::from(gaps)) as u64;
    (0..count).map(move |i| (offset(i), len as usize))
}

/// `2026-11-30 18:05:09.25 UTC`, with as many digits of the second as are not zero.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second) = (self.seconds.div_euclid(86_400), self.seconds.rem_euclid(86_400));
        let (year, month, day) = date(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")?;
        if self.nanos != 0 {
            write!(f, ".{}", format!("{:09}", self.nanos).trim_end_matches('0'))?;
        }
        f.write_str(" UTC")
    }
}

/// Year, month and day of a day counted from the start of 1970. Years are taken to begin in March,
/// so that the leap day is their last: month lengths then repeat with a period of 153 days in 5
/// months.
fn date(days: i64) -> (i64, i64, i64) {
    let day = days + 719_468; // from 1 March of year 0
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

/// A comma every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let parts: Vec<&str> = (0..digits.len().div_ceil(3))
        .rev()
        .map(|part| {
            let end = digits.len() - 3 * part;
            &digits[end.saturating_sub(3)..end]
        })
        .collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_small_files_whole_and_both_ends_of_large_ones() {
        assert_eq!(blocks(0).count(), 0);
        assert!(blocks(9).eq([(0, 9)]));
        assert!(blocks(8192).eq([(0, 4096), (4096, 4096)]));
        assert!(blocks(5000).eq([(0, 4096), (904, 4096)]));
        for bytes in [64 * 4096, 64 * 4096 + 1, 1 << 50, u64::MAX] {
            let found: Vec<_> = blocks(bytes).collect();
            assert_eq!((found.len(), found[0].0), (64, 0));
            assert_eq!(found[63].0 + 4096, bytes);
            assert!(found.is_sorted_by(|a, b| a.0 < b.0));
        }
    }

    #[test]
    fn times_are_written_as_dates() {
        let text = |seconds, nanos| Time { seconds, nanos }.to_string();
        assert_eq!(text(0, 0), "1970-01-01 00:00:00 UTC");
        assert_eq!(text(951_782_400, 0), "2000-02-29 00:00:00 UTC");
        assert_eq!(text(1_709_251_199, 250_000_000), "2024-02-29 23:59:59.25 UTC");
        assert_eq!(text(4_107_542_400, 1), "2100-03-01 00:00:00.000000001 UTC");
        assert_eq!(text(-1, 0), "1969-12-31 23:59:59 UTC");
    }

    #[test]
    fn numbers_are_grouped_by_three() {
        let numbers = [0, 999, 1000, 460_800_008].map(grouped);
        assert_eq!(numbers, ["0", "999", "1,000", "460,800,008"]);
    }
}
