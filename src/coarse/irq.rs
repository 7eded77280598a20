//! `irq`: the centroids as an index of their own, in RAM (paper §4.2).
//!
//! ```text
//! groups of about 1000 centroids ─ the nearest groups ─ scan their sign codes (8-bit tables)
//!        lower and upper bounds of every centroid ─ threshold = nprobe-th smallest upper bound
//!        centroids whose lower bound is within it ─ exact distance ─ the nprobe nearest
//! ```
//! The paper ranks by 9-bit codes of the centroids. Here the centroids are in RAM anyway, since
//! list distances must be exact, so survivors are compared with them and the 1-bit codes do.
//!
//! ```text
//! coarse.bin   | group starts u32 × (groups + 1) | zeros to 64 bytes | group centroids f32 | codes |
//! ```

use codec::{
    BATCH, Estimator, ListTerms, PrefixCodes, Query, Scan, TableBits, Thresholds, prefix_factors,
    sign_code,
};
use simd::{BatchBounds, Kernels};

use super::{Centroids, CoarseScratch, Point};
use crate::config::CentroidKind;
use crate::store::shape::Shape;

/// Width of the bounds. Lists that are missed lie where the last ones asked for do, with hardly a
/// neighbour in them: at 4,688 lists 3 standard deviations find 0.001 more, and compare twice as
/// many centroids.
const EPSILON: f32 = 1.0;
/// Groups visited for each list wanted (gamma of the paper), and the share visited at least: with
/// gamma alone, small nprobe loses a quarter of the nearest lists at 100 000 centroids.
const GAMMA: f64 = 0.5;
const LEAST_SHARE: f64 = 0.1;
const LEAST_GROUPS: usize = 4;
const ALIGN: usize = 64;

/// Codes over the centroids, in groups.
pub(crate) struct Irq {
    starts: Vec<u32>,
    groups: Centroids,
    codes: PrefixCodes,
}

/// Bounds of every centroid scanned.
#[derive(Default)]
pub(crate) struct Bounds {
    lower: Vec<(f32, u32)>,
    upper: Vec<f32>,
    batch: BatchBounds,
}

impl Irq {
    /// Encodes the centroids, which lie ordered by group.
    pub(crate) fn build(c: &Centroids, starts: Vec<u32>, group_centroids: Vec<f32>) -> Self {
        let dim = c.dim();
        let mut codes = PrefixCodes::new(dim, c.len() as u64);
        let mut residual = vec![0f32; dim];
        let mut signs = vec![0u8; dim / 8];
        for (group, range) in starts.windows(2).enumerate() {
            let centre = &group_centroids[group * dim..(group + 1) * dim];
            for list in range[0]..range[1] {
                c.read(list, &mut residual);
                residual.iter_mut().zip(centre).for_each(|(r, m)| *r -= m);
                sign_code(&residual, &mut signs);
                let factors =
                    prefix_factors(&residual, centre, dim, c.metric(), Estimator::PerVector);
                codes.set(u64::from(list), &signs, factors);
            }
        }
        let groups = Centroids::from_f32(group_centroids, dim, c.metric());
        Self { starts, groups, codes }
    }

    fn groups(&self) -> usize {
        self.starts.len() - 1
    }

    /// Leaves the `wanted` nearest lists it found in `s.nearest`, by exact distance.
    pub(super) fn select(
        &self,
        centroids: &Centroids,
        query: Point<'_>,
        wanted: usize,
        s: &mut CoarseScratch,
    ) {
        let kernels = Kernels::best();
        s.query.prepare(query.values, centroids.dim(), TableBits::Eight);
        super::flat(&self.groups, query, self.visited(wanted), s);
        s.bounds.lower.clear();
        s.bounds.upper.clear();
        for i in 0..s.nearest.len() {
            let (term, group) = s.nearest[i];
            let y = self.groups.length(kernels, query, group, term);
            self.bound_group(kernels, group, &ListTerms { term, y }, &s.query, &mut s.bounds);
        }
        let mut threshold = f32::INFINITY;
        if wanted < s.bounds.upper.len() {
            let (_, kth, _) = s.bounds.upper.select_nth_unstable_by(wanted - 1, f32::total_cmp);
            threshold = *kth;
        }
        s.nearest.clear();
        for &(lower, list) in &s.bounds.lower {
            if lower <= threshold {
                s.nearest.push((centroids.term(kernels, query, list), list));
            }
        }
        let order = |a: &(f32, u32), b: &(f32, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        if wanted > 0 && wanted < s.nearest.len() {
            s.nearest.select_nth_unstable_by(wanted - 1, order);
            s.nearest.truncate(wanted);
        }
        s.nearest.sort_unstable_by(order);
    }

    /// Groups visited for so many lists.
    fn visited(&self, wanted: usize) -> usize {
        ((wanted as f64 * GAMMA).ceil() as usize)
            .max((self.groups() as f64 * LEAST_SHARE).ceil() as usize)
            .max(LEAST_GROUPS)
            .min(self.groups())
    }

    fn bound_group(
        &self,
        kernels: &Kernels,
        group: u32,
        terms: &ListTerms,
        query: &Query,
        out: &mut Bounds,
    ) {
        let scan = Scan { kernels, query, codes: &self.codes, epsilon: EPSILON };
        let (start, end) = (self.starts[group as usize], self.starts[group as usize + 1]);
        let all = Thresholds { prune: f32::INFINITY, seed: f32::INFINITY };
        for batch in start / BATCH as u32..end.div_ceil(BATCH as u32) {
            scan.batch(u64::from(batch), u32::MAX, terms, all, &mut out.batch);
            let first = batch * BATCH as u32;
            for list in start.max(first)..end.min(first + BATCH as u32) {
                let slot = (list - first) as usize;
                out.lower.push((out.batch.lower[slot], list));
                out.upper.push(out.batch.upper[slot]);
            }
        }
    }

    /// Bytes of the structure, in RAM as in its file but for the padding of the group starts.
    pub(crate) fn bytes_for(groups: usize, nlist: usize, dim: usize) -> u64 {
        (groups as u64 + 1) * 4
            + Centroids::bytes_for(CentroidKind::F32, dim, groups)
            + PrefixCodes::bytes_for(dim, nlist as u64)
    }

    pub(crate) fn resident_bytes(&self) -> u64 {
        Self::bytes_for(self.groups(), self.codes.len() as usize, self.groups.dim())
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.starts.iter().for_each(|s| out.extend_from_slice(&s.to_le_bytes()));
        out.resize(out.len().next_multiple_of(ALIGN), 0);
        let groups = self.groups.as_f32().unwrap_or_default();
        groups.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes()));
        out.extend_from_slice(self.codes.as_bytes());
        out
    }

    pub(crate) fn from_bytes(bytes: &[u8], groups: usize, shape: &Shape) -> Result<Self, String> {
        let (dim, nlist) = (shape.padded_dim, shape.nlist);
        if groups == 0 || groups > nlist {
            return Err(format!("{groups} groups for {nlist} lists"));
        }
        let heads = ((groups + 1) * 4).next_multiple_of(ALIGN);
        let expected = heads as u64
            + groups as u64 * dim as u64 * 4
            + PrefixCodes::bytes_for(dim, nlist as u64);
        if bytes.len() as u64 != expected {
            return Err(format!("{} bytes, {groups} groups take {expected}", bytes.len()));
        }
        let (heads, rest) = bytes.split_at(heads);
        let (centroids, codes) = rest.split_at(groups * dim * 4);
        let starts: Vec<u32> =
            heads.as_chunks::<4>().0[..=groups].iter().map(|b| u32::from_le_bytes(*b)).collect();
        let ascending = starts.windows(2).all(|w| w[0] <= w[1]);
        if !ascending || starts.first() != Some(&0) || starts.last() != Some(&(nlist as u32)) {
            return Err(format!("its groups do not divide {nlist} lists"));
        }
        let (kind, metric) = (CentroidKind::F32, shape.code_metric());
        let groups = Centroids::from_bytes(kind, centroids.to_vec(), dim, groups, metric)?;
        let codes = PrefixCodes::from_bytes(dim, nlist as u64, codes).map_err(|e| e.to_string())?;
        Ok(Self { starts, groups, codes })
    }
}
