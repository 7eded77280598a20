//! The disk a build needs: asked for before the start, named when it runs out on the way.

use std::path::Path;

use dataset::Dtype;

use super::assign::PLACE;
use super::checkpoint::Checkpoint;
use super::memory::Memory;
use super::plan::BuildPlan;
use super::runs::Layout;
use crate::coarse::Centroids;
use crate::config::CentroidKind;
use crate::error::BuildError;

/// Bytes on disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// The index.
    pub(crate) index: u64,
    /// What the build needs besides and removes at its end.
    pub(crate) scratch: u64,
}

impl Room {
    pub(crate) fn total(self) -> u64 {
        self.index + self.scratch
    }
}

/// What a build will take.
pub(crate) fn needed(dtype: Dtype, plan: &BuildPlan, memory: &Memory) -> Room {
    let shape = plan.shape(&dtype.to_string(), plan.n, 0);
    let runs = if memory.holds(plan.n) { 0 } else { plan.n * Layout::of(&shape).bytes() as u64 };
    let places = plan.n * PLACE as u64;
    // The mean and the centroids, once trained and once balanced.
    let mut centroids = 2 * 4 * (plan.nlist as u64 + 1) * plan.dim as u64 + 8 * plan.nlist as u64;
    // The index holds floats instead where lists turn out tight.
    let floats = Centroids::bytes_for(CentroidKind::F32, plan.padded_dim, plan.nlist);
    centroids += floats.saturating_sub(shape.centroids_bytes());
    Room { index: plan.disk_bytes, scratch: runs + places + centroids }
}

/// An error when there is less. What a resumed build has on disk already counts as there.
pub(crate) fn check(dir: &Path, room: Room, checkpoint: &Checkpoint) -> Result<(), BuildError> {
    let Some(available) = available(dir) else { return Ok(()) };
    let available = available.saturating_add(checkpoint.bytes());
    if available < room.total() {
        return Err(no_space(dir, room, available));
    }
    Ok(())
}

/// Says of a full disk what would have been enough.
pub(crate) fn explain(error: BuildError, dir: &Path, room: Room) -> BuildError {
    match &error {
        BuildError::Write(cause)
            if matches!(
                cause.kind(),
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
            ) =>
        {
            no_space(dir, room, available(dir).unwrap_or(0))
        }
        _ => error,
    }
}

fn no_space(dir: &Path, room: Room, available: u64) -> BuildError {
    let dir = dir.parent().unwrap_or(dir).to_path_buf();
    BuildError::NoSpace { dir, index: room.index, scratch: room.scratch, available }
}

/// Free bytes where `dir` is, where the system tells.
pub(crate) fn available(dir: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}
