//! The last files: what an open index holds in RAM besides its codes, and the manifest.

use std::path::Path;

use dataset::Base;

use super::lists::Lists;
use super::plan::BuildPlan;
use super::survey::Survey;
use super::train::Trained;
use crate::coarse::Coarse;
use crate::config::BuildOptions;
use crate::error::BuildError;
use crate::store::manifest::{FORMAT, FileEntry, Manifest};
use crate::store::writer::{FileWriter, write_file};
use crate::store::{CENTROIDS, COARSE, LISTS, ROTATION};

/// Writes what an open index holds in RAM besides its codes.
pub(super) fn write_resident(
    dir: &Path,
    trained: &Trained,
    lists: Lists,
    plan: &BuildPlan,
    o: &BuildOptions,
    pool: &rayon::ThreadPool,
) -> Result<Vec<(&'static str, FileEntry)>, BuildError> {
    let offsets: Vec<u8> = lists.offsets.iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut rotation: Vec<u8> = trained.mean.iter().flat_map(|v| v.to_le_bytes()).collect();
    rotation.extend(trained.rotation.to_bytes());
    let mut centroids = FileWriter::create(&dir.join(CENTROIDS))?;
    lists.centroids.each_piece(|bytes| centroids.write(bytes))?;
    let mut files = vec![
        (LISTS, write_file(&dir.join(LISTS), &offsets)?),
        (CENTROIDS, centroids.finish()?),
        (ROTATION, write_file(&dir.join(ROTATION), &rotation)?),
    ];
    if plan.nlist > 0 {
        let coarse = Coarse::build(
            plan.coarse,
            &lists.centroids,
            lists.groups,
            lists.group_centroids,
            o.seed,
            pool,
        )?;
        if let Some(bytes) = coarse.to_bytes() {
            files.push((COARSE, write_file(&dir.join(COARSE), &bytes)?));
        }
    }
    Ok(files)
}

/// The manifest, with the identity that follows from everything in it.
pub(super) fn manifest(
    plan: &BuildPlan,
    base: &Base,
    o: &BuildOptions,
    survey: &Survey,
    tag: u32,
    files: Vec<(&'static str, FileEntry)>,
) -> Manifest {
    let mut manifest = Manifest {
        format: FORMAT,
        uuid: String::new(),
        n: survey.stored() + survey.zeros().len(),
        dim: plan.dim,
        metric: plan.metric,
        dtype: base.dtype().to_string(),
        record: plan.record,
        bits: plan.bits,
        prefix_dims: plan.prefix_dims,
        bound: plan.bound,
        list_order: plan.list_order,
        nlist: plan.nlist,
        centroids: plan.centroids,
        coarse: plan.coarse,
        coarse_lists: plan.coarse_lists,
        seed: plan.seed,
        tag,
        zero_rows: survey.zeros().len(),
        skipped_rows: survey.skipped(),
        external_ids: o.ids.is_some(),
        files: files.into_iter().map(|(name, entry)| (name.to_string(), entry)).collect(),
    };
    manifest.uuid = manifest.identity();
    manifest
}

/// A number that pages of this build carry in their checksums: it depends on the centroids, and so
/// on the data, the parameters and the seed.
pub(super) fn tag(lists: &Lists, o: &BuildOptions) -> Result<u32, BuildError> {
    let mut crc = 0;
    lists.centroids.each_piece(|bytes| {
        crc = crc32c::crc32c_append(crc, bytes);
        Ok(())
    })?;
    let options = format!(
        "{:?} {} {:?} {:?} {:?} {}",
        o.record, o.bits, o.metric, o.bound, o.list_order, o.seed
    );
    Ok(crc32c::crc32c_append(crc, options.as_bytes()))
}
