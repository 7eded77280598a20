//! The parts of an index as they lie open: resident structures in RAM, paged files on SSD.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use codec::{PrefixCodes, Rotation, ScalarRanges};
use fs_err::File;
use pageio::PageFile;
use std::io::Read;

use super::geometry::Geometry;
use super::manifest::{FileEntry, Manifest};
use super::shape::Shape;
use super::units::Units;
use super::{CENTROIDS, CHECKS, COARSE, CODES, IDS, LISTS, RECORDS, ROTATION, SCALES, ZEROS};
use crate::coarse::{Centroids, Coarse};
use crate::config::OpenOptions;
use crate::error::OpenError;

/// Reads a thread can have in flight unless a search asks for more. Their buffers are pinned where
/// the kernel allows, so a search thread takes 64 pages.
pub(crate) const READ_SLOTS: u32 = 64;

/// What is known of an index before its resident files are read.
pub(crate) struct Outline {
    pub(crate) manifest: Manifest,
    pub(crate) shape: Shape,
    pub(crate) offsets: Vec<u64>,
    pub(crate) records: Arc<PageFile>,
}

impl Outline {
    pub(crate) fn open(dir: &Path, o: &OpenOptions) -> Result<Self, OpenError> {
        let (manifest, shape) = read_shape(dir)?;
        let offsets = read_offsets(dir, &manifest, &shape)?;
        let records = open_paged(dir, &manifest, &shape, RECORDS, shape.geometry(), o)?;
        Ok(Self { manifest, shape, offsets, records })
    }

    /// Resident bytes by part, as an open index counts them.
    pub(crate) fn resident(&self) -> Vec<(&'static str, u64)> {
        let (m, shape) = (&self.manifest, &self.shape);
        let rotation = Rotation::new(m.dim, m.seed).resident_bytes();
        let coarse = crate::coarse::resident_bytes(
            m.coarse,
            m.coarse_lists,
            m.nlist,
            shape.padded_dim,
            m.seed,
        );
        vec![
            ("codes", shape.codes_bytes()),
            ("centroids", shape.centroids_bytes()),
            ("lists", shape.lists_bytes()),
            ("rotation", (m.dim * 4 + rotation) as u64),
            ("coarse", coarse),
            ("scales", shape.scales_bytes()),
            ("checks", shape.checks_bytes()),
        ]
    }
}

/// Everything an open index holds.
pub(crate) struct Parts {
    pub(crate) dir: PathBuf,
    pub(crate) manifest: Manifest,
    pub(crate) shape: Shape,
    /// The mean of the rows, subtracted before the rotation.
    pub(crate) mean: Vec<f32>,
    pub(crate) rotation: Rotation,
    /// Where each list starts; one more entry for the end.
    pub(crate) offsets: Vec<u64>,
    pub(crate) centroids: Centroids,
    pub(crate) coarse: Coarse,
    pub(crate) codes: PrefixCodes,
    /// Ranges of scalar records; none for other records.
    pub(crate) scales: Option<ScalarRanges>,
    pub(crate) records: Units,
    /// Ids by position, when records do not hold them.
    pub(crate) ids: Option<Units>,
    /// Ids of zero rows.
    pub(crate) zeros: Option<Units>,
}

impl Parts {
    /// Opens the index at `dir`: every resident file whole and against its checksum, every paged
    /// file against its size (its pages are checked when they are read).
    pub(crate) fn open(dir: &Path, o: &OpenOptions) -> Result<Self, OpenError> {
        let (manifest, shape) = read_shape(dir)?;
        let damaged =
            |name: &str, problem: String| OpenError::Damaged { path: dir.join(name), problem };

        let (mean, rotation) = read_rotation(dir, &manifest)?;
        let offsets = read_offsets(dir, &manifest, &shape)?;
        shape.expect(dir, &manifest, CENTROIDS)?;
        let bytes = load_all(dir, CENTROIDS, manifest.file(dir, CENTROIDS)?)?;
        let (kind, metric) = (manifest.centroids, shape.code_metric());
        let centroids = Centroids::from_bytes(kind, bytes, shape.padded_dim, shape.nlist, metric)
            .map_err(|problem| damaged(CENTROIDS, problem))?;
        shape.expect(dir, &manifest, CODES)?;
        let mut codes = PrefixCodes::new(shape.prefix_dims, shape.stored);
        load(dir, CODES, manifest.file(dir, CODES)?, codes.as_bytes_mut())?;

        let coarse_bytes = match manifest.files.get(COARSE) {
            Some(entry) => Some(load_all(dir, COARSE, *entry)?),
            None => None,
        };
        let coarse =
            Coarse::from_bytes(manifest.coarse, coarse_bytes.as_deref(), &manifest, &shape)
                .map_err(|problem| damaged(COARSE, problem))?;

        let scales = read_scales(dir, &manifest, &shape)?;
        let mut checks = Vec::new();
        if shape.checks_bytes() > 0 {
            checks = vec![0u32; shape.expect(dir, &manifest, CHECKS)? as usize / 4];
            load(dir, CHECKS, manifest.file(dir, CHECKS)?, bytemuck::cast_slice_mut(&mut checks))?;
            checks.iter_mut().for_each(|c| *c = u32::from_le(*c));
        }
        let open = |name: &str, geometry: Geometry, checks: Vec<u32>| -> Result<Units, OpenError> {
            let file = open_paged(dir, &manifest, &shape, name, geometry, o)?;
            Ok(Units::new(file, &dir.join(name), geometry, manifest.tag, checks))
        };
        let records = open(RECORDS, shape.geometry(), checks)?;
        let ids = (shape.ids_bytes() > 0).then(|| open(IDS, Geometry::ids(), Vec::new()));
        let zeros = (shape.zeros_bytes() > 0).then(|| open(ZEROS, Geometry::ids(), Vec::new()));
        Ok(Self {
            dir: dir.into(),
            mean,
            rotation,
            offsets,
            centroids,
            coarse,
            codes,
            scales,
            records,
            ids: ids.transpose()?,
            zeros: zeros.transpose()?,
            shape,
            manifest,
        })
    }

    /// The positions of a list.
    pub(crate) fn list(&self, list: u32) -> std::ops::Range<u64> {
        self.offsets[list as usize]..self.offsets[list as usize + 1]
    }

    /// Resident bytes by part, as the plan computes them.
    pub(crate) fn resident(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("codes", self.codes.as_bytes().len() as u64),
            ("centroids", self.shape.centroids_bytes()),
            ("lists", self.shape.lists_bytes()),
            ("rotation", (self.mean.len() * 4 + self.rotation.resident_bytes()) as u64),
            ("coarse", self.coarse.resident_bytes()),
            ("scales", self.shape.scales_bytes()),
            ("checks", self.records.resident_bytes()),
        ]
    }
}

impl Shape {
    /// The size a file must have by the parameters; an error unless manifest and file agree.
    fn expect(&self, dir: &Path, manifest: &Manifest, name: &str) -> Result<u64, OpenError> {
        let expected = match name {
            LISTS => Some(self.lists_bytes()),
            CENTROIDS => Some(self.centroids_bytes()),
            CODES => Some(self.codes_bytes()),
            SCALES => Some(self.scales_bytes()),
            CHECKS => Some(self.checks_bytes()),
            RECORDS => self.records_bytes(),
            IDS => Some(self.ids_bytes()),
            ZEROS => Some(self.zeros_bytes()),
            _ => None,
        };
        let entry = manifest.file(dir, name)?;
        if Some(entry.bytes) != expected {
            return Err(OpenError::Damaged {
                path: dir.join(super::manifest::MANIFEST),
                problem: format!(
                    "it gives {name} {} bytes, its parameters give {}",
                    entry.bytes,
                    expected.map_or("more than a file can have".into(), |e| e.to_string())
                ),
            });
        }
        check_size(dir, name, entry)?;
        Ok(entry.bytes)
    }
}

/// An error unless it is a file, and measures what the manifest says.
pub(crate) fn check_size(dir: &Path, name: &str, entry: FileEntry) -> Result<(), OpenError> {
    let path = dir.join(name);
    let found = fs_err::metadata(&path)
        .map_err(|e| OpenError::Unreadable { path: path.clone(), problem: e.to_string() })?;
    // Looking before opening: a pipe would wait for its writer.
    if !found.is_file() {
        return Err(OpenError::Unreadable { path, problem: "not a regular file".into() });
    }
    let found = found.len();
    if found != entry.bytes {
        return Err(OpenError::Mismatch {
            path,
            what: "size in bytes",
            expected: entry.bytes.to_string(),
            found: found.to_string(),
        });
    }
    Ok(())
}

/// Reads a whole file into `out`, whose length was checked against the manifest, and compares its
/// checksum.
fn load(dir: &Path, name: &str, entry: FileEntry, out: &mut [u8]) -> Result<(), OpenError> {
    let path = dir.join(name);
    File::open(&path)
        .and_then(|mut f| f.read_exact(out))
        .map_err(|e| OpenError::Unreadable { path: path.clone(), problem: e.to_string() })?;
    let found = crc32c::crc32c(out);
    if found != entry.crc32c {
        return Err(OpenError::Mismatch {
            path,
            what: "crc32c",
            expected: format!("{:08x}", entry.crc32c),
            found: format!("{found:08x}"),
        });
    }
    Ok(())
}

/// Reads a file of a size that only its own content explains.
fn load_all(dir: &Path, name: &str, entry: FileEntry) -> Result<Vec<u8>, OpenError> {
    check_size(dir, name, entry)?;
    let mut bytes = vec![0u8; entry.bytes as usize];
    load(dir, name, entry, &mut bytes)?;
    Ok(bytes)
}

fn read_shape(dir: &Path) -> Result<(Manifest, Shape), OpenError> {
    let manifest = Manifest::read(dir)?;
    let shape = Shape::of(&manifest).ok_or_else(|| OpenError::Damaged {
        path: dir.join(super::manifest::MANIFEST),
        problem: format!("dtype {:?} is unknown", manifest.dtype),
    })?;
    Ok((manifest, shape))
}

fn open_paged(
    dir: &Path,
    manifest: &Manifest,
    shape: &Shape,
    name: &str,
    geometry: Geometry,
    o: &OpenOptions,
) -> Result<Arc<PageFile>, OpenError> {
    shape.expect(dir, manifest, name)?;
    let options = pageio::OpenOptions {
        backend: o.backend,
        direct: o.direct,
        slots: READ_SLOTS,
        max_pages_per_read: geometry.unit_pages as u32,
        timeout: o.io_timeout,
    };
    Ok(Arc::new(PageFile::open(&dir.join(name), &options)?))
}

fn read_rotation(dir: &Path, manifest: &Manifest) -> Result<(Vec<f32>, Rotation), OpenError> {
    let bytes = load_all(dir, ROTATION, manifest.file(dir, ROTATION)?)?;
    let damaged = |problem: String| OpenError::Damaged { path: dir.join(ROTATION), problem };
    let (mean, rest) = bytes
        .split_at_checked(manifest.dim * 4)
        .ok_or_else(|| damaged(format!("{} bytes are too few", bytes.len())))?;
    let mean = mean.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    let rotation = Rotation::from_bytes(rest).map_err(|e| damaged(e.to_string()))?;
    if rotation.dim() != manifest.dim {
        return Err(damaged(format!("it rotates {} dims of {}", rotation.dim(), manifest.dim)));
    }
    Ok((mean, rotation))
}

fn read_offsets(dir: &Path, manifest: &Manifest, shape: &Shape) -> Result<Vec<u64>, OpenError> {
    let mut offsets = vec![0u64; shape.expect(dir, manifest, LISTS)? as usize / 8];
    load(dir, LISTS, manifest.file(dir, LISTS)?, bytemuck::cast_slice_mut(&mut offsets))?;
    offsets.iter_mut().for_each(|o| *o = u64::from_le(*o));
    let ascending = offsets.windows(2).all(|w| w[0] <= w[1]);
    if !ascending || offsets.first() != Some(&0) || offsets.last() != Some(&shape.stored) {
        return Err(OpenError::Damaged {
            path: dir.join(LISTS),
            problem: format!("its offsets do not divide {} rows into lists", shape.stored),
        });
    }
    Ok(offsets)
}

fn read_scales(
    dir: &Path,
    manifest: &Manifest,
    shape: &Shape,
) -> Result<Option<ScalarRanges>, OpenError> {
    if shape.scales_bytes() == 0 {
        return Ok(None);
    }
    shape.expect(dir, manifest, SCALES)?;
    let bytes = load_all(dir, SCALES, manifest.file(dir, SCALES)?)?;
    ScalarRanges::from_bytes(shape.padded_dim, &bytes)
        .map(Some)
        .map_err(|e| OpenError::Damaged { path: dir.join(SCALES), problem: e.to_string() })
}
