//! Ground truth files: the true neighbours of each query, best first.
//!
//! ```text
//! u32 queries, u32 k
//! queries·k u32 row numbers
//! queries·k f32 scores       squared L2 ascending, or the score itself descending;
//!                            absent in some files: told by the size
//! ```
//! `.ivecs` files (per query: i32 k, k i32 row numbers) are read as well.

use std::io::Write;
use std::path::Path;

use crate::DatasetError;
use crate::atomic::AtomicFile;
use crate::file::{open_regular, read_exactly, whole_rows};

const HEADER: u64 = 8;

/// Neighbours of a set of queries.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroundTruth {
    /// Number of queries.
    pub queries: usize,
    /// Neighbours of each query.
    pub k: usize,
    /// Row numbers in the base, `k` for each query, best first.
    pub ids: Vec<u64>,
    /// The score of each neighbour, in the same order; `None` where the file has none.
    pub distances: Option<Vec<f32>>,
}

impl GroundTruth {
    /// Read a file; `.ivecs` by its extension, anything else in the layout above.
    pub fn read(path: &Path) -> Result<Self, DatasetError> {
        let (file, len) = open_regular(path)?;
        if len == 0 {
            return Err(DatasetError::Empty { path: path.to_path_buf() });
        }
        let read = |offset: u64, bytes: u64| {
            let mut words = vec![0u8; bytes as usize];
            read_exactly(&file, path, offset, &mut words).map(|()| words)
        };
        if is_ivecs(path) {
            return from_ivecs(path, &read(0, len)?);
        }
        if len < HEADER {
            return Err(DatasetError::ShortHeader {
                path: path.to_path_buf(),
                expected: HEADER,
                actual: len,
                looks_like: None,
            });
        }
        let mut header = [0; HEADER as usize];
        read_exactly(&file, path, 0, &mut header)?;
        let [q0, q1, q2, q3, k0, k1, k2, k3] = header;
        let queries = u32::from_le_bytes([q0, q1, q2, q3]);
        let k = u32::from_le_bytes([k0, k1, k2, k3]);
        let with_scores = sections(path, queries, k, len)?;
        let section = 4 * u64::from(queries) * u64::from(k);
        let ids = words(&read(HEADER, section)?, |b| u64::from(u32::from_le_bytes(b)));
        let distances = match with_scores {
            true => Some(words(&read(HEADER + section, section)?, f32::from_le_bytes)),
            false => None,
        };
        Ok(Self { queries: queries as usize, k: k as usize, ids, distances })
    }

    /// Write a file: complete, or not at all.
    pub fn write(&self, path: &Path) -> Result<(), DatasetError> {
        self.check_writable(path)?;
        let mut file = AtomicFile::create(path)?;
        let mut header = [0; HEADER as usize];
        header[..4].copy_from_slice(&(self.queries as u32).to_le_bytes());
        header[4..].copy_from_slice(&(self.k as u32).to_le_bytes());
        file.write_all(&header)?;
        for &id in &self.ids {
            file.write_all(&(id as u32).to_le_bytes())?;
        }
        for score in self.distances.iter().flatten() {
            file.write_all(&score.to_le_bytes())?;
        }
        file.publish(&header)
    }

    /// The neighbours of one query, best first.
    ///
    /// # Panics
    /// If there is no such query.
    pub fn ids_of(&self, query: usize) -> &[u64] {
        &self.ids[query * self.k..(query + 1) * self.k]
    }

    /// The scores of one query's neighbours.
    ///
    /// # Panics
    /// If there is no such query.
    pub fn distances_of(&self, query: usize) -> Option<&[f32]> {
        self.distances.as_ref().map(|all| &all[query * self.k..(query + 1) * self.k])
    }

    /// Everything that could fail later is checked before the file is begun.
    fn check_writable(&self, path: &Path) -> Result<(), DatasetError> {
        if is_ivecs(path) {
            return Err(DatasetError::TruthExtension { path: path.to_path_buf() });
        }
        let (queries, k) = (self.queries, self.k);
        let scores = self.distances.as_ref().map(Vec::len);
        let expected = queries.checked_mul(k);
        if expected != Some(self.ids.len())
            || scores.is_some_and(|scores| scores != self.ids.len())
            || u32::try_from(queries.max(k)).is_err()
        {
            let (path, ids) = (path.to_path_buf(), self.ids.len());
            return Err(DatasetError::TruthShape { path, queries, k, ids, scores });
        }
        match self.ids.iter().position(|&id| u32::try_from(id).is_err()) {
            Some(at) => Err(DatasetError::TruthId {
                path: path.to_path_buf(),
                query: at / k,
                rank: at % k,
                id: i128::from(self.ids[at]),
            }),
            None => Ok(()),
        }
    }
}

/// Whether scores follow the row numbers, from the size of the file.
fn sections(path: &Path, queries: u32, k: u32, actual: u64) -> Result<bool, DatasetError> {
    let words = u64::from(queries) * u64::from(k);
    let bytes = |sections: u128| u128::from(HEADER) + 4 * sections * u128::from(words);
    let (ids_only, with_scores) = (bytes(1), bytes(2));
    if words > 0 && u128::from(actual) == with_scores {
        Ok(true)
    } else if u128::from(actual) == ids_only {
        Ok(false)
    } else {
        let path = path.to_path_buf();
        Err(DatasetError::TruthSize { path, queries, k, ids_only, with_scores, actual })
    }
}

fn from_ivecs(path: &Path, bytes: &[u8]) -> Result<GroundTruth, DatasetError> {
    let values = words(bytes, i32::from_le_bytes);
    let first = values.first().copied().unwrap_or(0);
    let k = usize::try_from(first).unwrap_or(0);
    if k == 0 {
        let (path, dim) = (path.to_path_buf(), i128::from(first));
        return Err(DatasetError::DimOutOfRange { path, dim, looks_like: None });
    }
    let row_bytes = 4 * (k as u64 + 1);
    if !(bytes.len() as u64).is_multiple_of(row_bytes) {
        return Err(DatasetError::PartialRow {
            path: path.to_path_buf(),
            dim: k as u64,
            row_bytes,
            actual: bytes.len() as u64,
            looks_like: None,
        });
    }
    let queries = whole_rows(values.len(), k + 1);
    let mut ids = Vec::with_capacity(queries * k);
    for (query, row) in values.chunks_exact(k + 1).enumerate() {
        if row[0] != first {
            let (path, row, found) = (path.to_path_buf(), query as u64, values[query * (k + 1)]);
            return Err(DatasetError::RowDim { path, row, expected: k, found });
        }
        for (rank, &id) in row[1..].iter().enumerate() {
            ids.push(u64::try_from(id).map_err(|_| DatasetError::TruthId {
                path: path.to_path_buf(),
                query,
                rank,
                id: i128::from(id),
            })?);
        }
    }
    Ok(GroundTruth { queries, k, ids, distances: None })
}

fn words<T>(bytes: &[u8], convert: impl Fn([u8; 4]) -> T) -> Vec<T> {
    bytes.as_chunks::<4>().0.iter().map(|&word| convert(word)).collect()
}

fn is_ivecs(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ivecs"))
}
