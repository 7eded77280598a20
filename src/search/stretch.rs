//! Inner products rank the same whatever the length of the query; the error of their estimates
//! does not.
//!
//! `<q, x> = <q, c> + <r, q>`, and codes estimate `<r, y>` of `y = s q - c` with an error in
//! proportion to `|y|`: relative to the products, to `|q - c/s|`. That is least where `c/s` is the
//! projection of `c` on `q`, for `s = |c|² / <q, c>`, and never above `|q|` there; without the
//! stretch a short query among long rows has an error as large as the rows. One table serves all
//! lists, so one `s` does: that of the list nearest to the query, where most results are.

use simd::Kernels;

use crate::coarse::{Point, Probe};
use crate::store::parts::Parts;

/// Beyond this a stretch gains nothing and float range is lost.
const MOST: f32 = 1024.0;

/// Multiplies the rotated query by the stretch for the first probe's list, and recomputes what the
/// probes contribute. Returns the stretch.
pub(super) fn stretch(parts: &Parts, rotated: &mut [f32], probes: &mut [Probe]) -> f32 {
    let kernels = Kernels::best();
    let Some(first) = probes.first() else {
        return 1.0;
    };
    let (point, centroids) = (Point::of(rotated), &parts.centroids);
    let product = centroids.product(kernels, point, first.list);
    let scale = factor(kernels.dot(rotated, rotated), centroids.norm(first.list), product);
    rotated.iter_mut().for_each(|v| *v *= scale);
    let point = Point::of(rotated);
    for probe in probes {
        probe.terms.term *= scale;
        probe.terms.y = centroids.distance(kernels, point, probe.list).sqrt();
    }
    scale
}

/// The stretch from `|q|²`, `|c|²` and `<q, c>`; a power of two, so that scaling rounds nothing.
fn factor(qq: f32, cc: f32, qc: f32) -> f32 {
    let lengths = (f64::from(cc) / f64::from(qq)).sqrt();
    if !lengths.is_finite() || lengths == 0.0 {
        return 1.0;
    }
    // A centroid that points away from the query has no projection: then the longest stretch.
    let best = if qc > 0.0 { f64::from(cc) / f64::from(qc) } else { f64::INFINITY };
    let most = lengths * f64::from(MOST);
    let bounded = best.clamp(1e-30, most.min(1e30)).log2().round() as i32;
    2f32.powi(bounded.clamp(-60, 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_centroid_along_the_query_is_met_in_length() {
        assert_eq!(factor(1.0, 64.0, 8.0), 8.0);
        assert_eq!(factor(64.0, 1.0, 8.0), 0.125);
        assert_eq!(factor(1.0, 1.0, 1.0), 1.0);
    }

    #[test]
    fn degenerate_lengths_leave_the_query_alone() {
        for (qq, cc, qc) in [(0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 0.0)] {
            assert_eq!(factor(qq, cc, qc), 1.0);
        }
    }

    #[test]
    fn a_centroid_that_points_away_stretches_within_reason() {
        let s = factor(1.0, 1.0, -0.5);
        assert!((MOST..=2.0 * MOST).contains(&s));
    }
}
