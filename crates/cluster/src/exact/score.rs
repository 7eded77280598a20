//! Exact scores in f64, and how they relate to the closeness that products give.
//!
//! ```text
//!          cost (less is better)    closeness of a row at that cost
//! l2       |q - x|²                 (|q - o|² - cost) / 2
//! ip       -<q, x>                  -cost - <q, o>
//! cosine   -<q, x> / |q||x|         -cost - <q/|q|, o>
//! ```
//!
//! The last terms are constants of the query, kept in f64.

use super::Metric;
use crate::screen::{self, UNIT, norm2, sum_of};

/// Queries as the products see them, next to their original values.
pub(super) struct PreparedQueries<'a> {
    values: &'a [f32],
    dim: usize,
    metric: Metric,
    /// |q| of the original values.
    norms: Vec<f64>,
    /// l2: q - o; ip: q; cosine: q/|q|. Empty until the origin is known.
    moved: Vec<f32>,
    /// Norms of `moved`.
    moved_norms: Vec<f64>,
    /// The constant of each query.
    constants: Vec<f64>,
}

impl<'a> PreparedQueries<'a> {
    pub(super) fn new(values: &'a [f32], dim: usize, metric: Metric) -> Self {
        let norms = values.chunks_exact(dim).map(|q| norm2(q).sqrt()).collect();
        let (moved, moved_norms, constants) = (Vec::new(), Vec::new(), Vec::new());
        Self { values, dim, metric, norms, moved, moved_norms, constants }
    }

    /// Moves the queries to `origin`, once.
    pub(super) fn move_to(&mut self, origin: &[f32]) {
        if !self.constants.is_empty() {
            return;
        }
        let mut out = vec![0f32; self.dim];
        for (query, norm) in self.values.chunks_exact(self.dim).zip(&self.norms) {
            let inverse = if *norm > 0.0 { 1.0 / norm } else { 0.0 };
            let constant = match self.metric {
                Metric::L2 => {
                    screen::shift(query, origin, &mut out);
                    squared_distance(query, origin)
                }
                Metric::Ip => {
                    out.copy_from_slice(query);
                    product(query, origin)
                }
                Metric::Cosine => {
                    for (o, q) in out.iter_mut().zip(query) {
                        *o = (f64::from(*q) * inverse) as f32;
                    }
                    product(query, origin) * inverse
                }
            };
            self.constants.push(constant);
            self.moved_norms.push(norm2(&out).sqrt());
            self.moved.extend_from_slice(&out);
        }
    }

    pub(super) fn dim(&self) -> usize {
        self.dim
    }

    /// True when all values of a query are zero.
    pub(super) fn is_zero(&self, query: usize) -> bool {
        self.norms[query] == 0.0
    }

    /// `count` moved queries from `first` on.
    pub(super) fn moved(&self, first: usize, count: usize) -> &[f32] {
        &self.moved[first * self.dim..(first + count) * self.dim]
    }

    /// Cost of a row of norm `row_norm`, in f64 from the original values.
    pub(super) fn cost(&self, query: usize, row: &[f32], row_norm: f64) -> f64 {
        let q = &self.values[query * self.dim..(query + 1) * self.dim];
        match self.metric {
            Metric::L2 => squared_distance(q, row),
            Metric::Ip => -product(q, row),
            Metric::Cosine if self.norms[query] == 0.0 => 0.0,
            Metric::Cosine => -product(q, row) / (self.norms[query] * row_norm),
        }
    }

    /// The score to report for a cost.
    pub(super) fn score_of(&self, cost: f64) -> f64 {
        match self.metric {
            Metric::L2 => cost,
            Metric::Ip | Metric::Cosine => 0.0 - cost,
        }
    }

    /// The closeness of a row at that cost.
    pub(super) fn closeness_of(&self, query: usize, cost: f64) -> f64 {
        let constant = self.constants[query];
        match self.metric {
            Metric::L2 => (constant - cost) / 2.0,
            Metric::Ip | Metric::Cosine => -cost - constant,
        }
    }

    /// How far the closeness of a product may be from that of a cost, for moved rows of norm up to
    /// `row_norm`: the bound of the product, the rounding of normalised rows (cosine), and the
    /// rounding of the f64 sums on both sides.
    pub(super) fn slack(&self, query: usize, row_norm: f64, origin_norm: f64) -> f64 {
        let norm = self.moved_norms[query];
        let (scaling, reach) = match self.metric {
            Metric::L2 => (0.0, norm + row_norm),
            Metric::Ip => (0.0, norm + row_norm + origin_norm),
            Metric::Cosine => (4.0 * UNIT * norm, norm + row_norm + origin_norm),
        };
        let f64_sums = self.dim as f64 * 8.0 * f64::EPSILON * reach * reach;
        screen::slack(self.dim, norm, row_norm) + scaling + f64_sums
    }
}

fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
    sum_of(a, b, |x, y| {
        let d = f64::from(x) - f64::from(y);
        d * d
    })
}

fn product(a: &[f32], b: &[f32]) -> f64 {
    sum_of(a, b, |x, y| f64::from(x) * f64::from(y))
}
