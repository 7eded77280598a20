//! External ids from a file: one u64 for each row of the base, in order.
//!
//! ```text
//! .u64bin   u32 count, u32 1, then count u64
//! .npy      one-dimensional (or n x 1) array of u64 or i64
//! ```
//! Everything is little endian. Unlike vectors, ids must keep all of their 64 bits.

use std::path::Path;

use anyhow::{Context, bail, ensure};

const NPY_MAGIC: &[u8] = b"\x93NUMPY";

/// Read all ids.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<u64>> {
    // Looking before opening: a pipe would wait for its writer.
    if fs_err::metadata(path).is_ok_and(|found| !found.is_file()) {
        bail!("{}: not a regular file; ids are read from .npy or .u64bin", path.display());
    }
    let bytes = fs_err::read(path)?;
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let ids = match extension.to_ascii_lowercase().as_str() {
        "u64bin" => from_bin(&bytes),
        "npy" => from_npy(&bytes),
        _ => bail!("{}: unknown extension; ids are read from .npy or .u64bin", path.display()),
    };
    ids.and_then(distinct).with_context(|| format!("{}: no file of ids", path.display()))
}

/// The ids as they are, unless one stands at two rows: a search could not tell those apart.
fn distinct(ids: Vec<u64>) -> anyhow::Result<Vec<u64>> {
    let mut sorted: Vec<(u64, usize)> = ids.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    let twice = sorted.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    if let Some(pair) = twice.min_by_key(|pair| pair[1].1) {
        bail!(
            "id {} stands at rows {} and {}: every row needs its own",
            pair[0].0,
            pair[0].1,
            pair[1].1
        );
    }
    Ok(ids)
}

fn from_bin(bytes: &[u8]) -> anyhow::Result<Vec<u64>> {
    let Some((header, body)) = bytes.split_at_checked(8) else {
        bail!("the header needs 8 bytes, the file holds {}", bytes.len());
    };
    let (words, _) = header.as_chunks::<4>();
    let [count, columns] =
        [0, 1].map(|i: usize| words.get(i).map_or(0, |&w| u32::from_le_bytes(w)));
    ensure!(columns == 1, "header says {columns} ids a row, expected 1");
    words_of(body, u64::from(count))
}

fn from_npy(bytes: &[u8]) -> anyhow::Result<Vec<u64>> {
    let (header, body) = npy_parts(bytes).context("not a NumPy file")?;
    let header: String = header.chars().filter(|c| !c.is_whitespace()).collect();
    let signed = match field(&header, "'descr':'").and_then(|d| d.split('\'').next()) {
        Some("<u8") => false,
        Some("<i8") => true,
        found => {
            let found = found.unwrap_or("none");
            bail!("values of type {found:?}, expected little-endian u64 or i64 (<u8 or <i8)")
        }
    };
    let shape = field(&header, "'shape':(").and_then(|s| s.split(')').next()).unwrap_or_default();
    let mut sizes = shape.split(',').filter(|size| !size.is_empty());
    let count = sizes.next().and_then(|size| size.parse().ok());
    let (Some(count), None | Some("1"), None) = (count, sizes.next(), sizes.next()) else {
        bail!("shape ({shape}), expected one dimension");
    };
    let ids = words_of(body, count)?;
    if let Some(row) = ids.iter().position(|&id| signed && id > i64::MAX as u64) {
        bail!("row {row}: id {} is negative", ids[row] as i64);
    }
    Ok(ids)
}

/// The header's dict and the values after it, of format version 1, 2 or 3.
fn npy_parts(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let rest = bytes.strip_prefix(NPY_MAGIC)?;
    let (version, rest) = rest.split_first_chunk::<2>()?;
    let (length, rest) = if version[0] == 1 {
        let (length, rest) = rest.split_first_chunk::<2>()?;
        (usize::from(u16::from_le_bytes(*length)), rest)
    } else {
        let (length, rest) = rest.split_first_chunk::<4>()?;
        (usize::try_from(u32::from_le_bytes(*length)).ok()?, rest)
    };
    let (header, body) = rest.split_at_checked(length)?;
    Some((std::str::from_utf8(header).ok()?, body))
}

fn field<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    header.split_once(name).map(|(_, value)| value)
}

fn words_of(body: &[u8], count: u64) -> anyhow::Result<Vec<u64>> {
    let expected = u128::from(count) * 8;
    ensure!(
        body.len() as u128 == expected,
        "{count} ids need {expected} bytes after the header, the file holds {}",
        body.len()
    );
    Ok(body.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word)).collect())
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

    #[test]
    fn ids_keep_64_bits_in_both_formats() {
        let ids = [7, u64::MAX, 1 << 40];
        assert_eq!(from_npy(&npy("<u8", "(3,)", &ids)).unwrap(), ids);
        assert_eq!(from_npy(&npy("<u8", "(3, 1)", &ids)).unwrap(), ids);
        let mut bin = [3u32.to_le_bytes(), 1u32.to_le_bytes()].concat();
        ids.iter().for_each(|id| bin.extend(id.to_le_bytes()));
        assert_eq!(from_bin(&bin).unwrap(), ids);
    }

    #[test]
    fn an_id_of_two_rows_is_refused_with_both() {
        assert_eq!(distinct(vec![5, 0, 7]).unwrap(), [5, 0, 7]);
        let twice = distinct(vec![5, 9, 7, 9, 5]).unwrap_err().to_string();
        assert_eq!(twice, "id 9 stands at rows 1 and 3: every row needs its own");
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
