//! A paged file as search and verify see it: units with their checksums.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pageio::{PageFile, ReadError};

use super::geometry::{Geometry, unit_check};
use crate::error::SearchError;

/// An open paged file.
#[derive(Clone)]
pub(crate) struct Units {
    pub(crate) file: Arc<PageFile>,
    pub(crate) geometry: Geometry,
    path: PathBuf,
    tag: u32,
    /// Checksums that had no room in their units.
    checks: Vec<u32>,
}

impl Units {
    pub(crate) fn new(
        file: Arc<PageFile>,
        path: &Path,
        geometry: Geometry,
        tag: u32,
        checks: Vec<u32>,
    ) -> Self {
        Self { file, geometry, path: path.into(), tag, checks }
    }

    /// The first page of a unit.
    pub(crate) fn page(&self, unit: u64) -> u64 {
        unit * self.geometry.unit_pages as u64
    }

    /// Whether the bytes of a unit match its checksum.
    pub(crate) fn intact(&self, unit: u64, bytes: &[u8]) -> bool {
        if self.geometry.check_in_unit {
            bytes.split_last_chunk::<4>().is_some_and(|(body, check)| {
                unit_check(self.tag, unit, body) == u32::from_le_bytes(*check)
            })
        } else {
            self.checks.get(unit as usize) == Some(&unit_check(self.tag, unit, bytes))
        }
    }

    /// An error unless the bytes of a unit match its checksum.
    pub(crate) fn check(&self, unit: u64, bytes: &[u8]) -> Result<(), SearchError> {
        if self.intact(unit, bytes) {
            Ok(())
        } else {
            Err(SearchError::Corrupt { file: self.path.clone(), page: self.page(unit) })
        }
    }

    /// Reads one unit, blocking; the caller checks it.
    pub(crate) fn read(&self, unit: u64, out: &mut [u8]) -> Result<(), ReadError> {
        self.file.read_pages(self.page(unit), out)
    }

    /// Bytes of the side table in RAM.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.checks.len() as u64 * 4
    }
}
