//! The extra code: `B` bits a dimension, sign included, at the scale that fits the vector best.
//!
//! A code of `B` bits decodes to `v_j = ±(level_j + 1/2)` with levels below `half = 2^(B-1)`. For
//! a scale `t`, `level_j = min(floor(t |r_j|), half - 1)`, and the estimate `(N² / <r, v>) <v, y>`
//! is the better the larger `cos(r, v)`. The best `t` depends on the vector: larger scales round
//! finer but clip more of the large coordinates.
//!
//! ```text
//! coarse: geometric grid of t from "nothing is clipped" to "clipped at 1.2 root mean squares"
//! fine:   even grid over the neighbourhood of the best
//! ```
//!
//! Each point costs one pass over the magnitudes. The objective is a smooth curve under a jagged
//! one of a few per cent, because every `t` rounds another way; the fine grid has as many points
//! as it takes to meet nearly the best of the jags, which is more for more bits.

use crate::metric::Metric;
use crate::sums::{sum_each, sum_pairs};
use simd::Kernels;

/// The smallest scale tried, relative to the one at which the largest magnitude is not clipped.
const LEAST: f32 = 0.9;
/// The largest scale tried clips at this many root mean squares.
const CLIP: f32 = 1.2;

/// How densely a scale is searched.
#[derive(Clone, Copy)]
struct Grid {
    /// Points of the coarse grid.
    coarse: u32,
    /// Points of the fine grid.
    fine: u32,
    /// The fine grid goes from `best / reach` to `best * reach`.
    reach: f32,
    /// Points between the neighbours of its best point.
    polish: u32,
}

/// The grids for 2 to 9 bits.
const GRIDS: [Grid; 8] = [
    Grid { coarse: 16, fine: 16, reach: 1.15, polish: 0 },
    Grid { coarse: 16, fine: 16, reach: 1.15, polish: 0 },
    Grid { coarse: 16, fine: 20, reach: 1.15, polish: 0 },
    Grid { coarse: 16, fine: 20, reach: 1.15, polish: 0 },
    Grid { coarse: 16, fine: 24, reach: 1.15, polish: 8 },
    Grid { coarse: 16, fine: 28, reach: 1.15, polish: 8 },
    Grid { coarse: 16, fine: 40, reach: 1.15, polish: 12 },
    Grid { coarse: 16, fine: 60, reach: 1.13, polish: 16 },
];

/// Adding it leaves the integer nearest to a small float, also one just below zero, in the low
/// bits of the sum.
const ROUND: f32 = 12_582_912.0;

/// The two factors of a record: `estimate = add + rescale <v, Rq> + (Y² or -<q, c>)`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExtraFactors {
    /// The part of the estimate that no query changes.
    pub add: f32,
    /// Multiplies `<v, Rq>`; never positive.
    pub rescale: f32,
}

/// The code of one vector, and the buffers to compute the next.
#[derive(Clone, Debug)]
pub struct ExtraCode {
    bits: u32,
    magnitudes: Vec<f32>,
    levels: Vec<u8>,
    decoded: Vec<f32>,
}

impl ExtraCode {
    /// An encoder of `bits` in `2..=9` bits a dimension, the sign included.
    ///
    /// # Panics
    /// If `bits` is out of range.
    pub fn new(bits: u32) -> Self {
        assert!((2..=9).contains(&bits), "codes have 2 to 9 bits a dimension, not {bits}");
        Self { bits, magnitudes: Vec::new(), levels: Vec::new(), decoded: Vec::new() }
    }

    /// Bits a dimension, the sign included.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The `B - 1` low bits of the unsigned code of each dimension, from the last [`Self::encode`]:
    /// the level where the sign is positive, `half - 1 - level` where it is negative.
    pub fn levels(&self) -> &[u8] {
        &self.levels
    }

    /// Codes the rotated residual `r` of the list of the rotated centroid `c`.
    ///
    /// # Panics
    /// If `r` and `c` differ in length.
    pub fn encode(
        &mut self,
        kernels: &Kernels,
        r: &[f32],
        c: &[f32],
        metric: Metric,
    ) -> ExtraFactors {
        self.magnitudes.clear();
        self.magnitudes.extend(r.iter().map(|value| value.abs()));
        let scale = best_scale(kernels, self.bits, &self.magnitudes);
        let top = ((1_u32 << (self.bits - 1)) - 1) as u8;
        self.levels.resize(r.len(), 0);
        self.decoded.resize(r.len(), 0.0);
        let coded = self.levels.iter_mut().zip(&mut self.decoded);
        for ((&r, &a), (low, v)) in r.iter().zip(&self.magnitudes).zip(coded) {
            // Nearest to x - 1/2 is the floor of x, up to a coin toss where x is whole.
            let shifted = smaller(a * scale, f32::from(top) + 0.5) - 0.5 + ROUND;
            let level = shifted.to_bits() as u8;
            // The code counts down from the top where the sign is negative; top is all ones.
            *low = if r >= 0.0 { level } else { level ^ top };
            *v = (shifted - ROUND + 0.5).copysign(if r >= 0.0 { 1.0 } else { -1.0 });
        }
        extra_factors(r, c, &self.decoded, metric)
    }
}

/// The two factors of the residual `r` whose code decodes to `v`.
pub(crate) fn extra_factors(r: &[f32], c: &[f32], v: &[f32], metric: Metric) -> ExtraFactors {
    let norm2 = sum_each(r, |r| r * r);
    if norm2 == 0.0 {
        return ExtraFactors::default();
    }
    let g = norm2 / sum_pairs(r, v, |r, v| r * v);
    let centre = g * sum_pairs(v, c, |v, c| v * c);
    let (add, rescale) = match metric {
        Metric::L2 => (norm2 + 2.0 * centre, -2.0 * g),
        Metric::Ip => (centre - sum_pairs(c, r, |c, r| c * r), -g),
    };
    ExtraFactors { add: add as f32, rescale: rescale as f32 }
}

/// The scale `t` that brings the code of the magnitudes `a` closest to their direction.
fn best_scale(kernels: &Kernels, bits: u32, a: &[f32]) -> f32 {
    let half = (1 << (bits - 1)) as f32;
    let max = largest(a);
    let unclipped = half / max;
    if !unclipped.is_finite() {
        return 0.0;
    }
    let root_mean_square = (kernels.dot(a, a) / a.len() as f32).sqrt();
    let mut best = Best { kernels, a, half, scale: unclipped, score: 0.0 };
    let Grid { coarse, fine, reach, polish } = GRIDS[bits as usize - 2];
    let (low, high) = (LEAST * unclipped, (half / (CLIP * root_mean_square)).max(1.3 * unclipped));
    let step = (high / low).powf(1.0 / coarse as f32);
    let mut t = low;
    for _ in 0..=coarse {
        best.consider(t);
        t *= step;
    }
    let (low, high) = (best.scale / reach, best.scale * reach);
    let step = (high - low) / fine as f32;
    for point in 0..=fine {
        best.consider(low + step * point as f32);
    }
    let (low, step) = (best.scale - step, 2.0 * step / (polish + 1) as f32);
    for point in 1..=polish {
        best.consider(low + step * point as f32);
    }
    best.scale
}

/// One instruction, unlike `f32::min`, which has NaN to heed.
fn smaller(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// Largest of non-negative values, over lanes that do not wait for each other.
fn largest(a: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    let (chunks, rest) = a.as_chunks::<16>();
    let lanes = chunks.iter().fold([0.0; 16], |mut lanes, chunk| {
        for (lane, &a) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, a);
        }
        lanes
    });
    lanes.iter().chain(rest).fold(0.0, |max, &a| larger(max, a))
}

/// The best scale met so far.
struct Best<'a> {
    kernels: &'a Kernels,
    a: &'a [f32],
    half: f32,
    scale: f32,
    /// `cos²` up to the norm of `a`.
    score: f32,
}

impl Best<'_> {
    fn consider(&mut self, scale: f32) {
        let (product, norm2) = self.kernels.code_score(self.a, scale, self.half);
        let score = product * product / norm2;
        if score > self.score {
            (self.scale, self.score) = (scale, score);
        }
    }
}
