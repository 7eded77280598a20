//! Synthetic data shaped like embeddings, of any size, from a seed.
//!
//! ```text
//! row i = encode( norm_i · unit( R ( c_j + t_j · Λ^½ z_i ) ) )
//!
//! j     cluster, drawn with density ∝ size rank^(-1/3): a few large, many small
//! c_j   centre ~ N(0, 0.35 Λ);  t_j  spread of the cluster, 0.7 to 1.3 of √0.65
//! Λ     variances (i+1)^-p of trace 1, p such that the leading half of the dims holds 90 %;
//!       of the residuals that k-means leaves it then holds 85 %, as in real sentence embeddings
//! z_i   standard normal, from a stream of random numbers numbered i
//! R     random rotation, so that no axis is special
//! ```
//! A flat spectrum has neither clusters nor Λ: every direction alike, the hardest data there is.
//! Every row depends on the seed, its number and the number of clusters alone, so threads and
//! batches do not matter, and data sets that agree in [`Spec::clusters`] begin alike. Queries
//! are rows of the same distribution under another family of streams.

mod mixture;
mod normal;
mod rotation;
mod spectrum;

use std::ops::ControlFlow;
use std::path::Path;

use rayon::ThreadPool;
use rayon::prelude::*;

use crate::{DatasetError, Dtype, VectorWriter};
use mixture::Mixture;

/// Bytes generated between two writes: enough to keep all threads busy.
const BATCH_BYTES: usize = 16 << 20;
/// Rows one task makes.
const TASK_ROWS: usize = 64;

/// Streams of base rows and of queries.
const BASE: u64 = 1;
const QUERIES: u64 = 2;

/// What to generate.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Number of base rows.
    pub n: u64,
    /// Values per row, 1 to [`MAX_DIM`](crate::MAX_DIM).
    pub dim: usize,
    /// Seed of everything.
    pub seed: u64,
    /// How the variance is spread over directions.
    pub spectrum: Spectrum,
    /// How the norms are spread over rows.
    pub norms: Norms,
    /// Type of the values in the file. f64 cannot be written.
    pub dtype: Dtype,
}

/// How the variance is spread over directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spectrum {
    /// Clustered, with a power law: like embeddings.
    Power,
    /// The same in all directions, without clusters.
    Flat,
}

/// How the norms are spread over rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Norms {
    /// All 1.
    Unit,
    /// Log-uniform over 0.1 to 10.
    Spread,
}

impl Spec {
    /// Number of clusters: about √n, rounded up to a power of two so that data sets of similar
    /// size agree, and bounded so that the centres stay below 64 MiB. A flat spectrum has one.
    pub fn clusters(&self) -> usize {
        let most = ((1usize << 24) / self.dim.max(1)).max(1);
        match self.spectrum {
            Spectrum::Flat => 1,
            // The root of a u64 and its next power of two fit usize on 64-bit machines.
            Spectrum::Power => (self.n.isqrt().next_power_of_two() as usize).min(most),
        }
    }
}

/// Write `spec.n` rows to `base_out`, and `queries` rows of the same distribution, none of them
/// in the base, to `queries_out` if it is given. Extensions must go with the type. Both files
/// appear only when complete. `progress` is told (rows done, rows in all) and says whether to go
/// on.
pub fn generate(
    spec: &Spec,
    queries: u64,
    base_out: &Path,
    queries_out: Option<&Path>,
    pool: &ThreadPool,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<(), DatasetError> {
    let mut base = VectorWriter::create(base_out, spec.dim, spec.dtype)?;
    let mut asked =
        queries_out.map(|path| VectorWriter::create(path, spec.dim, spec.dtype)).transpose()?;
    base.check_room(spec.n)?;
    asked.iter().try_for_each(|writer| writer.check_room(queries))?;
    let total = spec.n.saturating_add(if asked.is_some() { queries } else { 0 });
    let mixture = Mixture::new(spec);
    write_rows(&mixture, BASE, spec.n, &mut base, pool, &mut |done| progress(done, total))?;
    if let Some(writer) = &mut asked {
        let mut progress = |done| progress(spec.n + done, total);
        write_rows(&mixture, QUERIES, queries, writer, pool, &mut progress)?;
    }
    base.finish()?;
    asked.map(VectorWriter::finish).transpose()?;
    Ok(())
}

fn write_rows(
    mixture: &Mixture,
    domain: u64,
    rows: u64,
    writer: &mut VectorWriter,
    pool: &ThreadPool,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<(), DatasetError> {
    let row_bytes = mixture.row_bytes();
    let batch = (BATCH_BYTES / row_bytes).max(1) as u64;
    let mut bytes = Vec::new();
    let mut start = 0;
    while start < rows {
        let count = batch.min(rows - start);
        bytes.resize(count as usize * row_bytes, 0);
        pool.install(|| {
            bytes.par_chunks_mut(TASK_ROWS * row_bytes).enumerate().for_each(|(task, part)| {
                mixture.fill(domain, start + (task * TASK_ROWS) as u64, part);
            });
        });
        writer.write_raw(&bytes)?;
        start += count;
        if progress(start).is_break() {
            return Err(DatasetError::Interrupted);
        }
    }
    Ok(())
}
