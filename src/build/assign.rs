//! Every row to its nearest centroid, written down row by row.
//!
//! ```text
//! assignment.bin   | list u32 | squared distance f32 | for each row of the base, in its order;
//!                  list 2^32 - 1: the row is in no list
//! ```
//! The file is what encoding reads beside the base, so memory holds a few waves of rows whatever
//! their number.

use cluster::{AssignMethod, Assigner};
use dataset::Base;
use fs_err::File;
use fs_err::os::unix::fs::FileExt;
use rayon::prelude::*;
use std::path::Path;

use super::Watch;
use super::checkpoint::damaged;
use super::prepare::prepare;
use super::survey::Survey;
use super::waves::Waves;
use crate::config::Metric;
use crate::error::BuildError;
use crate::store::manifest::FileEntry;
use crate::store::writer::FileWriter;

/// Bytes of a row's entry.
pub(crate) const PLACE: usize = 8;
/// The list of a row that is in none.
pub(crate) const UNLISTED: u32 = u32::MAX;

/// Where a row goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) list: u32,
    /// Squared distance to the list's centroid.
    pub(crate) distance: f32,
}

impl Place {
    pub(crate) fn read(bytes: &[u8; PLACE]) -> Self {
        let [a, b, c, d, e, f, g, h] = *bytes;
        Self { list: u32::from_le_bytes([a, b, c, d]), distance: f32::from_le_bytes([e, f, g, h]) }
    }

    pub(crate) fn to_bytes(self) -> [u8; PLACE] {
        let [a, b, c, d] = self.list.to_le_bytes();
        let [e, f, g, h] = self.distance.to_le_bytes();
        [a, b, c, d, e, f, g, h]
    }

    pub(crate) fn is_listed(self) -> bool {
        self.list != UNLISTED
    }
}

/// The rows an assignment is of, and how they compare.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) base: &'a Base,
    pub(crate) survey: &'a Survey,
    pub(crate) metric: Metric,
    pub(crate) mean: &'a [f32],
    pub(crate) waves: Waves,
}

/// Assigns every listed row to the nearest of `centroids`; returns the file's entry.
pub(crate) fn assign(
    rows: Rows<'_>,
    centroids: &[f32],
    path: &Path,
    pool: &rayon::ThreadPool,
    watch: &Watch<'_>,
) -> Result<FileEntry, BuildError> {
    let (base, dim) = (rows.base, rows.base.dim());
    let mut file = FileWriter::create(path)?;
    if centroids.is_empty() {
        let none = Place { list: UNLISTED, distance: 0.0 }.to_bytes();
        (0..base.n()).try_for_each(|_| file.write(&none))?;
        return Ok(file.finish()?);
    }
    let assigner = Assigner::new(centroids, dim, AssignMethod::Auto, pool)?;
    let block = rows.waves.block_rows;
    let mut places = Vec::new();
    rows.waves.each(base, 0..base.n(), |start, values| {
        watch.update("assign", start, base.n())?;
        places.resize(values.len() / dim * PLACE, 0);
        pool.install(|| {
            values
                .par_chunks_mut(block * dim)
                .zip(places.par_chunks_mut(block * PLACE))
                .enumerate()
                .for_each(|(i, (values, places))| {
                    rows.assign_block(&assigner, start + (i * block) as u64, values, places);
                });
        });
        Ok(file.write(&places)?)
    })?;
    watch.update("assign", base.n(), base.n())?;
    Ok(file.finish()?)
}

impl Rows<'_> {
    fn assign_block(
        &self,
        assigner: &Assigner<'_>,
        start: u64,
        values: &mut [f32],
        places: &mut [u8],
    ) {
        let dim = self.base.dim();
        let all = self.survey.all_listed();
        let listed = |row: u64| all || self.survey.listed(row);
        for (row, values) in (start..).zip(values.chunks_exact_mut(dim)) {
            if listed(row) {
                prepare(values, self.metric, self.mean);
            } else {
                values.fill(0.0);
            }
        }
        let count = values.len() / dim;
        let (mut lists, mut distances) = (vec![0u32; count], vec![0f32; count]);
        assigner.assign(values, &mut lists, &mut distances);
        let found = lists.iter().zip(&distances);
        let outputs = places.chunks_exact_mut(PLACE);
        for ((row, (&list, &distance)), out) in (start..).zip(found).zip(outputs) {
            let list = if listed(row) { list } else { UNLISTED };
            out.copy_from_slice(&Place { list, distance }.to_bytes());
        }
    }
}

/// An assignment on disk.
pub(crate) struct Assignment {
    file: File,
    rows: u64,
}

/// Entries read at a time when all of them are.
const READ_ROWS: u64 = 1 << 16;

impl Assignment {
    pub(crate) fn open(path: &Path, rows: u64) -> Result<Self, BuildError> {
        let file = fs_err::OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Self { file, rows })
    }

    /// The entries of rows from `start` on, into the whole of `places`.
    pub(crate) fn read(&self, start: u64, places: &mut [u8]) -> Result<(), BuildError> {
        Ok(self.file.read_exact_at(places, start * PLACE as u64)?)
    }

    /// The entry of one row.
    pub(crate) fn place(&self, row: u64) -> Result<Place, BuildError> {
        let mut bytes = [0; PLACE];
        self.read(row, &mut bytes)?;
        Ok(Place::read(&bytes))
    }

    /// Writes entries of rows from `start` on.
    pub(crate) fn write(&self, start: u64, places: &[u8]) -> Result<(), BuildError> {
        Ok(self.file.write_all_at(places, start * PLACE as u64)?)
    }

    /// Calls `visit(first row, entries)` for all entries, in order.
    pub(crate) fn each(
        &self,
        mut visit: impl FnMut(u64, &mut [u8]) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let mut places = Vec::new();
        for start in (0..self.rows).step_by(READ_ROWS as usize) {
            places.resize(READ_ROWS.min(self.rows - start) as usize * PLACE, 0);
            self.read(start, &mut places)?;
            visit(start, &mut places)?;
        }
        Ok(())
    }

    /// The mean squared distance from its centroid of the rows of each list, 0 of an empty one; the
    /// rows of each list are given.
    pub(crate) fn spread(&self, counts: &[u64]) -> Result<Vec<f64>, BuildError> {
        let mut sums = vec![0f64; counts.len()];
        self.each(|_, places| {
            for place in entries(places).filter(|place| place.is_listed()) {
                sums[place.list as usize] += f64::from(place.distance);
            }
            Ok(())
        })?;
        sums.iter_mut().zip(counts).for_each(|(sum, &count)| *sum /= count.max(1) as f64);
        Ok(sums)
    }

    /// Rows of each of `nlist` lists; an error when the file names others.
    pub(crate) fn counts(&self, nlist: usize) -> Result<Vec<u64>, BuildError> {
        let mut counts = vec![0u64; nlist];
        self.each(|_, places| {
            for place in entries(places).filter(|place| place.is_listed()) {
                let count = counts.get_mut(place.list as usize);
                *count.ok_or_else(|| damaged(self.file.path()))? += 1;
            }
            Ok(())
        })?;
        Ok(counts)
    }

    /// Makes changes durable, and says what the file is now.
    pub(crate) fn seal(&self) -> Result<FileEntry, BuildError> {
        let mut crc = 0;
        self.each(|_, places| {
            crc = crc32c::crc32c_append(crc, places);
            Ok(())
        })?;
        self.file.sync_all()?;
        Ok(FileEntry { bytes: self.rows * PLACE as u64, crc32c: crc })
    }
}

/// The entries in bytes.
pub(crate) fn entries(places: &[u8]) -> impl Iterator<Item = Place> + '_ {
    places.as_chunks::<PLACE>().0.iter().map(Place::read)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Rows that 32 bits cannot number.
    const ROWS: u64 = (1 << 32) + 5;

    #[test]
    fn rows_beyond_32_bits_have_places_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("assignment.bin");
        // Sparse: 32 GiB that take a few pages.
        File::create(&path).unwrap().set_len(ROWS * PLACE as u64).unwrap();
        let assignment = Assignment::open(&path, ROWS).unwrap();
        let placed = |list: u32| Place { list, distance: list as f32 };
        let bytes: Vec<u8> = (1..=5).flat_map(|list| placed(list).to_bytes()).collect();
        assignment.write(1 << 32, &bytes).unwrap();
        assignment.write(3, &placed(9).to_bytes()).unwrap();
        assert_eq!(assignment.place((1 << 32) + 3).unwrap(), placed(4));
        assert_eq!(assignment.place(ROWS - 1).unwrap(), placed(5));
        assert_eq!(assignment.place(3).unwrap(), placed(9));
        assert_eq!(assignment.place(2).unwrap(), placed(0));
        assert!(assignment.place(ROWS).is_err(), "the file ends there");
    }
}
