//! Whether a coarse quantizer finds the lists it should: those nearest to the query (§4.2).

use super::Trial;
use crate::search::lists_to_visit;
use crate::store::parts::Parts;
use crate::{Metric, SearchError};

/// Two lists this close, relative to each other, are equally near.
const TOLERANCE: f64 = 1e-6;

impl Trial<'_> {
    /// Share of the `nprobe` nearest lists of every query that the index's coarse quantizer finds.
    ///
    /// # Errors
    /// When a query cannot be searched for.
    pub fn list_recall(&self, nprobe: usize) -> Result<f64, SearchError> {
        let parts = self.index().parts();
        let nprobe = nprobe.clamp(1, self.nlist().max(1));
        let (mut found, mut wanted) = (0, 0);
        for query in self.queries().chunks_exact(parts.shape.dim) {
            let (rotated, lists) = lists_to_visit(parts, query, nprobe)?;
            let distances: Vec<f64> =
                (0..parts.shape.nlist).map(|list| distance(parts, &rotated, list as u32)).collect();
            let mut ascending = distances.clone();
            ascending.sort_unstable_by(f64::total_cmp);
            let Some(&last) = ascending.get(nprobe - 1) else { continue };
            let enough = last + TOLERANCE * last.abs();
            found += lists.iter().filter(|&&list| distances[list as usize] <= enough).count();
            wanted += nprobe;
        }
        Ok(found as f64 / wanted.max(1) as f64)
    }
}

/// What lists are ranked by, smaller is nearer, from its definition.
fn distance(parts: &Parts, rotated: &[f32], list: u32) -> f64 {
    let mut centroid = vec![0f32; rotated.len()];
    parts.centroids.read(list, &mut centroid);
    let pairs = rotated.iter().zip(&centroid);
    let pairs = pairs.map(|(&q, &c)| (f64::from(q), f64::from(c)));
    match parts.shape.metric {
        Metric::Ip => -pairs.map(|(q, c)| q * c).sum::<f64>(),
        Metric::L2 | Metric::Cosine => pairs.map(|(q, c)| (q - c).powi(2)).sum(),
    }
}
