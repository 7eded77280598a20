//! The centroids as an open index holds them.
//!
//! ```text
//! f32    | P floats | for each list
//! i8     | P levels, i8 | for each list, then | step, |c|² | for each list       c_j = step · level_j
//! ```
//! A list's centroid *is* what is stored: residuals are taken from it, so rounding a centroid moves
//! it and makes no distance wrong. It lengthens residuals by its own size, which is why lists much
//! tighter than their centroid is long keep floats ([`Centroids::rounding`]).

use std::io;

use simd::{Kernels, RawType};

use crate::config::CentroidKind;

/// Floats turned to bytes at a time.
const CHUNK: usize = 1 << 14;
/// Largest level.
const TOP: f32 = 127.0;

/// Rotated, centred centroids, `dim` (padded) values each.
pub(crate) struct Centroids {
    dim: usize,
    metric: codec::Metric,
    rows: Rows,
}

enum Rows {
    F32(Vec<f32>),
    I8 { levels: Vec<u8>, scales: Vec<Scale> },
}

/// What the levels of a centroid stand for, and the centroid's squared norm.
#[derive(Clone, Copy)]
struct Scale {
    step: f32,
    norm: f32,
}

/// A rotated query and its squared norm.
#[derive(Clone, Copy)]
pub(crate) struct Point<'a> {
    pub(crate) values: &'a [f32],
    norm: f32,
}

impl<'a> Point<'a> {
    pub(crate) fn of(values: &'a [f32]) -> Self {
        Self { values, norm: Kernels::best().dot(values, values) }
    }
}

impl Centroids {
    pub(crate) fn from_f32(rows: Vec<f32>, dim: usize, metric: codec::Metric) -> Self {
        Self { dim, metric, rows: Rows::F32(rows) }
    }

    /// Each row of `dim` values in levels of a step of its own.
    pub(crate) fn rounded(rows: &[f32], dim: usize, metric: codec::Metric) -> Self {
        let mut levels = Vec::with_capacity(rows.len());
        let mut scales = Vec::with_capacity(rows.len() / dim.max(1));
        for row in rows.chunks_exact(dim) {
            let largest = row.iter().fold(0f32, |most, v| most.max(v.abs()));
            // Below, a level would be no normal float.
            let step = if largest < f32::MIN_POSITIVE * TOP { 0.0 } else { largest / TOP };
            let level = |v: f32| if step == 0.0 { 0 } else { (v / step).round() as i8 };
            let start = levels.len();
            levels.extend(row.iter().map(|&v| level(v) as u8));
            let values = levels[start..].iter().map(|&u| f64::from(step * f32::from(u as i8)));
            let norm = values.map(|v| v * v).sum::<f64>() as f32;
            scales.push(Scale { step, norm });
        }
        Self { dim, metric, rows: Rows::I8 { levels, scales } }
    }

    /// The squared distance of each row of `rows` from what is stored for it.
    pub(crate) fn rounding<'a>(&'a self, rows: &'a [f32]) -> impl Iterator<Item = f64> + 'a {
        let mut stored = vec![0f32; self.dim];
        (0..).zip(rows.chunks_exact(self.dim)).map(move |(list, row)| {
            self.read(list, &mut stored);
            row.iter().zip(&stored).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum()
        })
    }

    pub(crate) fn len(&self) -> usize {
        match &self.rows {
            Rows::F32(rows) => rows.len() / self.dim,
            Rows::I8 { scales, .. } => scales.len(),
        }
    }

    pub(crate) fn dim(&self) -> usize {
        self.dim
    }

    pub(crate) fn metric(&self) -> codec::Metric {
        self.metric
    }

    pub(crate) fn kind(&self) -> CentroidKind {
        match &self.rows {
            Rows::F32(_) => CentroidKind::F32,
            Rows::I8 { .. } => CentroidKind::I8,
        }
    }

    /// All rows, if they are floats.
    pub(crate) fn as_f32(&self) -> Option<&[f32]> {
        match &self.rows {
            Rows::F32(rows) => Some(rows),
            Rows::I8 { .. } => None,
        }
    }

    /// The centroid of a list.
    pub(crate) fn read(&self, list: u32, out: &mut [f32]) {
        match &self.rows {
            Rows::F32(rows) => out.copy_from_slice(self.row(rows, list)),
            Rows::I8 { levels, scales } => {
                let step = scales[list as usize].step;
                let levels = self.row(levels, list);
                out.iter_mut().zip(levels).for_each(|(v, &u)| *v = step * f32::from(u as i8));
            }
        }
    }

    fn row<'a, T>(&self, rows: &'a [T], list: u32) -> &'a [T] {
        &rows[list as usize * self.dim..(list as usize + 1) * self.dim]
    }

    /// `<q, c>`.
    pub(crate) fn product(&self, kernels: &Kernels, query: Point<'_>, list: u32) -> f32 {
        match &self.rows {
            Rows::F32(rows) => kernels.dot(query.values, self.row(rows, list)),
            Rows::I8 { levels, scales } => {
                let levels = self.row(levels, list);
                scales[list as usize].step * kernels.dot_raw(RawType::I8, query.values, levels)
            }
        }
    }

    /// `|q - c|²`.
    pub(crate) fn distance(&self, kernels: &Kernels, query: Point<'_>, list: u32) -> f32 {
        match &self.rows {
            Rows::F32(rows) => kernels.l2(query.values, self.row(rows, list)),
            Rows::I8 { .. } => self.distance_from(query, list, self.product(kernels, query, list)),
        }
    }

    /// The same where `<q, c>` is known, of rounded centroids.
    fn distance_from(&self, query: Point<'_>, list: u32, product: f32) -> f32 {
        (query.norm - 2.0 * product + self.norm(list)).max(0.0)
    }

    /// `|c|²`.
    pub(crate) fn norm(&self, list: u32) -> f32 {
        match &self.rows {
            Rows::F32(rows) => {
                let row = self.row(rows, list);
                Kernels::best().dot(row, row)
            }
            Rows::I8 { scales, .. } => scales[list as usize].norm,
        }
    }

    /// What lists are ranked by, smaller is nearer: `|q - c|²`, or `-<q, c>`.
    pub(crate) fn term(&self, kernels: &Kernels, query: Point<'_>, list: u32) -> f32 {
        match self.metric {
            codec::Metric::L2 => self.distance(kernels, query, list),
            codec::Metric::Ip => -self.product(kernels, query, list),
        }
    }

    /// `|q - c|` of a list whose term is known.
    pub(crate) fn length(&self, kernels: &Kernels, query: Point<'_>, list: u32, term: f32) -> f32 {
        let squared = match (self.metric, &self.rows) {
            (codec::Metric::L2, _) => term.max(0.0),
            (codec::Metric::Ip, Rows::F32(_)) => self.distance(kernels, query, list),
            (codec::Metric::Ip, Rows::I8 { .. }) => self.distance_from(query, list, -term),
        };
        squared.sqrt()
    }

    /// Bytes in a file, and in RAM.
    pub(crate) fn bytes_for(kind: CentroidKind, dim: usize, nlist: usize) -> u64 {
        let row = match kind {
            CentroidKind::F32 => 4 * dim,
            CentroidKind::Auto | CentroidKind::I8 => dim + size_of::<Scale>(),
        };
        nlist as u64 * row as u64
    }

    /// The file's content, piece by piece.
    pub(crate) fn each_piece(
        &self,
        mut visit: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        match &self.rows {
            Rows::F32(rows) => rows.chunks(CHUNK).try_for_each(|part| {
                visit(&part.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())
            }),
            Rows::I8 { levels, scales } => {
                visit(levels)?;
                scales.chunks(CHUNK).try_for_each(|part| {
                    let values = part.iter().flat_map(|s| [s.step, s.norm]);
                    visit(&values.flat_map(f32::to_le_bytes).collect::<Vec<u8>>())
                })
            }
        }
    }

    /// Reads what [`Centroids::each_piece`] gave, of the length [`Centroids::bytes_for`] says.
    pub(crate) fn from_bytes(
        kind: CentroidKind,
        mut bytes: Vec<u8>,
        dim: usize,
        nlist: usize,
        metric: codec::Metric,
    ) -> Result<Self, String> {
        let floats = |bytes: &[u8]| -> Vec<f32> {
            bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect()
        };
        if bytes.len() as u64 != Self::bytes_for(kind, dim, nlist) {
            return Err(format!("{} bytes for {nlist} centroids of {dim} values", bytes.len()));
        }
        let rows = match kind {
            CentroidKind::F32 => Rows::F32(floats(&bytes)),
            CentroidKind::Auto | CentroidKind::I8 => {
                let scales = floats(&bytes.split_off(nlist * dim));
                bytes.shrink_to_fit();
                let scales = scales.as_chunks().0.iter();
                let scales: Vec<Scale> = scales.map(|&[step, norm]| Scale { step, norm }).collect();
                if let Some(at) = scales.iter().position(|s| !(s.step >= 0.0 && s.norm >= 0.0)) {
                    return Err(format!("centroid {at} has a negative scale, or none"));
                }
                Rows::I8 { levels: bytes, scales }
            }
        };
        Ok(Self { dim, metric, rows })
    }
}
