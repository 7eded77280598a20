//! External ids from a file: one u64 for each row of the base, in order.
//!
//! ```text
//! .u64bin   u32 count, u32 1, then count u64
//! .npy      one-dimensional (or n x 1) array of u64 or i64
//! ```
//! Everything is little endian. Unlike vectors, ids must keep all of their 64 bits.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use bytemuck::cast_slice_mut;

const NPY_MAGIC: &[u8] = b"\x93NUMPY";
/// Longest NumPy header accepted; one array of numbers needs 128 bytes.
const MAX_HEADER: usize = 65_535;

/// Read all ids.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<u64>> {
    read_first(path, None)
}

/// Read the ids of the first `rows` rows, or of all. In memory are the ids, and while they are
/// looked through for one that stands twice, a sorted copy.
pub(crate) fn read_first(path: &Path, rows: Option<usize>) -> anyhow::Result<Vec<u64>> {
    // Looking before opening: a pipe would wait for its writer.
    if fs_err::metadata(path).is_ok_and(|found| !found.is_file()) {
        bail!("{}: not a regular file; ids are read from .npy or .u64bin", path.display());
    }
    let file = fs_err::File::open(path)?;
    let bytes = file.metadata()?.len();
    let file = Ids { file, bytes, rows: rows.unwrap_or(usize::MAX) as u64 };
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let ids = match extension.to_ascii_lowercase().as_str() {
        "u64bin" => file.bin(),
        "npy" => file.npy(),
        _ => bail!("{}: unknown extension; ids are read from .npy or .u64bin", path.display()),
    };
    ids.and_then(distinct).with_context(|| format!("{}: no file of ids", path.display()))
}

/// The ids as they are, unless one stands at two rows: a search could not tell those apart.
fn distinct(ids: Vec<u64>) -> anyhow::Result<Vec<u64>> {
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    if let Some(&[id, _]) = sorted.array_windows().find(|[a, b]| a == b) {
        let mut rows = (0..).zip(&ids).filter(|&(_, &other)| other == id).map(|(row, _)| row);
        let (first, second): (u64, u64) =
            (rows.next().unwrap_or_default(), rows.next().unwrap_or_default());
        bail!("id {id} stands at rows {first} and {second}: every row needs its own");
    }
    Ok(ids)
}

/// A file of ids, from its start.
struct Ids<R> {
    file: R,
    /// Size of the file.
    bytes: u64,
    /// Ids wanted at most.
    rows: u64,
}

impl<R: Read> Ids<R> {
    fn bin(mut self) -> anyhow::Result<Vec<u64>> {
        let mut words = [0; 8];
        ensure!(self.bytes >= 8, "the header needs 8 bytes, the file holds {}", self.bytes);
        self.file.read_exact(&mut words)?;
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| words[at + byte]));
        ensure!(word(4) == 1, "header says {} ids a row, expected 1", word(4));
        self.words(8, u64::from(word(0)))
    }

    fn npy(mut self) -> anyhow::Result<Vec<u64>> {
        let (header, length) = self.npy_header().context("not a NumPy file")?;
        let header: String = header.chars().filter(|c| !c.is_whitespace()).collect();
        let signed = match field(&header, "'descr':'").and_then(|d| d.split('\'').next()) {
            Some("<u8") => false,
            Some("<i8") => true,
            found => {
                let found = found.unwrap_or("none");
                bail!("values of type {found:?}, expected little-endian u64 or i64 (<u8 or <i8)")
            }
        };
        let shape = field(&header, "'shape':(").and_then(|s| s.split(')').next());
        let shape = shape.unwrap_or_default();
        let mut sizes = shape.split(',').filter(|size| !size.is_empty());
        let count = sizes.next().and_then(|size| size.parse().ok());
        let (Some(count), None | Some("1"), None) = (count, sizes.next(), sizes.next()) else {
            bail!("shape ({shape}), expected one dimension");
        };
        let ids = self.words(length, count)?;
        if let Some(row) = ids.iter().position(|&id| signed && id > i64::MAX as u64) {
            bail!("row {row}: id {} is negative", ids[row] as i64);
        }
        Ok(ids)
    }

    /// The header's dict, of format version 1, 2 or 3, and the bytes up to the ids.
    fn npy_header(&mut self) -> Option<(String, u64)> {
        let mut start = [0; 10];
        self.file.read_exact(&mut start).ok()?;
        let version = start.strip_prefix(NPY_MAGIC)?.first()?;
        let (mut length, mut end) = (usize::from(u16::from_le_bytes([start[8], start[9]])), 10);
        if *version > 1 {
            let mut high = [0; 2];
            self.file.read_exact(&mut high).ok()?;
            length |= usize::from(u16::from_le_bytes(high)) << 16;
            end = 12;
        }
        if length > MAX_HEADER {
            return None;
        }
        let mut header = vec![0; length];
        self.file.read_exact(&mut header).ok()?;
        end += length as u64;
        Some((String::from_utf8(header).ok()?, end))
    }

    /// The first of `count` ids that fill the file after a header of `header` bytes.
    fn words(mut self, header: u64, count: u64) -> anyhow::Result<Vec<u64>> {
        let (expected, held) = (u128::from(count) * 8, self.bytes.saturating_sub(header));
        ensure!(
            u128::from(held) == expected,
            "{count} ids need {expected} bytes after the header, the file holds {held}"
        );
        let mut ids = vec![0u64; usize::try_from(count.min(self.rows))?];
        self.file.read_exact(cast_slice_mut(&mut ids))?;
        ids.iter_mut().for_each(|id| *id = u64::from_le(*id));
        Ok(ids)
    }
}

fn field<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    header.split_once(name).map(|(_, value)| value)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn npy(descr: &str, shape: &str, words: &[u64]) -> Vec<u8> {
        let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut bytes = NPY_MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend((dict.len() as u16).to_le_bytes());
        bytes.extend(dict.as_bytes());
        words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes
    }

    fn ids(file: &[u8], rows: u64) -> Ids<&[u8]> {
        Ids { file, bytes: file.len() as u64, rows }
    }

    fn from_npy(file: &[u8]) -> anyhow::Result<Vec<u64>> {
        ids(file, u64::MAX).npy()
    }

    fn from_bin(file: &[u8]) -> anyhow::Result<Vec<u64>> {
        ids(file, u64::MAX).bin()
    }

    #[test]
    fn ids_keep_64_bits_in_both_formats() {
        let ids = [7, u64::MAX, 1 << 40];
        assert_eq!(from_npy(&npy("<u8", "(3,)", &ids)).unwrap(), ids);
        assert_eq!(from_npy(&npy("<u8", "(3, 1)", &ids)).unwrap(), ids);
        let mut bin = [3u32.to_le_bytes(), 1u32.to_le_bytes()].concat();
        ids.iter().for_each(|id| bin.extend(id.to_le_bytes()));
        assert_eq!(from_bin(&bin).unwrap(), ids);
        assert_eq!(self::ids(&bin, 2).bin().unwrap(), ids[..2]);
        assert!(self::ids(&npy("<u8", "(3,)", &ids), 0).npy().unwrap().is_empty());
    }

    #[test]
    fn headers_of_version_2_are_read_and_absurd_lengths_refused() {
        let mut bytes = npy("<u8", "(1,)", &[9]);
        bytes[6] = 2;
        bytes.splice(10..10, [0, 0]);
        assert_eq!(from_npy(&bytes).unwrap(), [9]);
        bytes[11] = 255;
        assert!(from_npy(&bytes).is_err());
    }

    #[test]
    fn an_id_of_two_rows_is_refused_with_both() {
        assert_eq!(distinct(vec![5, 0, 7]).unwrap(), [5, 0, 7]);
        let twice = distinct(vec![5, 9, 7, 9, 5]).unwrap_err().to_string();
        assert_eq!(twice, "id 5 stands at rows 0 and 4: every row needs its own");
    }

    #[test]
    fn negative_ids_other_types_and_wrong_sizes_are_refused() {
        let negative = from_npy(&npy("<i8", "(2,)", &[1, u64::MAX])).unwrap_err().to_string();
        assert_eq!(negative, "row 1: id -1 is negative");
        assert!(from_npy(&npy("<f8", "(1,)", &[1])).is_err());
        assert!(from_npy(&npy("<u8", "(2, 2)", &[1, 2, 3, 4])).is_err());
        assert!(from_npy(&npy("<u8", "(9,)", &[1])).is_err());
        assert!(from_npy(b"\x93NUMPY\x01\x00\xff\xff{}").is_err());
        assert!(from_bin(&[1, 0, 0, 0]).is_err());
        assert!(from_bin(&[9, 0, 0, 0, 1, 0, 0, 0]).is_err());
    }
}
