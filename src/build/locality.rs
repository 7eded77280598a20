//! Near rows to near positions: records that a query wants together share pages.
//!
//! ```text
//! window   consecutive rows of one list, by distance to its centroid
//! halve    along the direction of the largest spread of their sign codes, at a page border
//!          ─▶ each half again, until it lies in one page
//! ```
//! Sign codes stand for the residuals: their spread lies along the residuals' own, and the merge has
//! them at hand. A window depends on the data alone, so the order does too.

use rayon::join;
use simd::Kernels;

use crate::store::shape::Shape;

/// Most rows of a window.
const MOST_ROWS: usize = 4096;
/// Most values of a window's codes.
const MOST_VALUES: usize = 2 << 20;
/// Steps towards the direction of the largest spread.
const STEPS: usize = 4;
/// Halves of fewer rows are not worth another thread.
const SPLIT_ROWS: usize = 256;

/// Rows of a window: 1 when no order of records saves a page.
pub(super) fn window_rows(shape: &Shape) -> usize {
    if shape.geometry().per_unit == 1 {
        return 1;
    }
    MOST_ROWS.min(MOST_VALUES / shape.prefix_dims).max(1)
}

/// Bytes that arranging takes, beside the entries of the window.
pub(super) fn bytes(shape: &Shape) -> u64 {
    let rows = window_rows(shape);
    // The codes as floats; order and projections, twice on the way down; a direction and a mean for
    // each half under way.
    let halves = 4 * (MOST_ROWS.ilog2() as usize + 1);
    ((rows * shape.prefix_dims + halves * 2 * shape.prefix_dims) * 4 + rows * 32) as u64
}

/// The order in which the rows of a window are written.
pub(super) struct Locality {
    kernels: &'static Kernels,
    dims: usize,
    /// Records of a page.
    per_page: usize,
    /// The codes of the window as -1 and 1.
    signs: Vec<f32>,
    order: Vec<u32>,
}

impl Locality {
    pub(super) fn new(shape: &Shape) -> Self {
        Self {
            kernels: Kernels::best(),
            dims: shape.prefix_dims,
            per_page: shape.geometry().per_unit,
            signs: Vec::new(),
            order: Vec::new(),
        }
    }

    /// The order of the rows with these sign codes, the first of which goes to position `first`.
    pub(super) fn arrange<'a>(
        &mut self,
        codes: impl Iterator<Item = &'a [u8]>,
        first: u64,
    ) -> &[u32] {
        self.signs.clear();
        for code in codes {
            let bits = code.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
            self.signs.extend(bits.map(|bit| f32::from(bit) * 2.0 - 1.0));
        }
        self.order.clear();
        self.order.extend(0..(self.signs.len() / self.dims) as u32);
        let halving = Halving {
            kernels: self.kernels,
            dims: self.dims,
            per_page: self.per_page,
            signs: &self.signs,
        };
        halving.halve(&mut self.order, (first % self.per_page as u64) as usize);
        &self.order
    }
}

/// A window being cut into pages.
#[derive(Clone, Copy)]
struct Halving<'a> {
    kernels: &'static Kernels,
    dims: usize,
    per_page: usize,
    signs: &'a [f32],
}

impl Halving<'_> {
    /// Orders `rows`, the first of which lies `at` records after some page border.
    fn halve(self, rows: &mut [u32], at: usize) {
        let at = at % self.per_page;
        if at + rows.len() <= self.per_page {
            // Within a page the first order is as good as any.
            rows.sort_unstable();
            return;
        }
        let middle = border_near_the_middle(at, rows.len(), self.per_page);
        self.sort_along_spread(rows);
        let many = rows.len() >= SPLIT_ROWS;
        let (left, right) = rows.split_at_mut(middle);
        if many {
            join(|| self.halve(left, at), || self.halve(right, 0));
        } else {
            self.halve(left, at);
            self.halve(right, 0);
        }
    }

    /// Sorts rows along the direction in which they differ most.
    fn sort_along_spread(self, rows: &mut [u32]) {
        let mut mean = vec![0f32; self.dims];
        rows.iter().for_each(|&row| add(&mut mean, 1.0, self.code(row)));
        mean.iter_mut().for_each(|sum| *sum /= rows.len() as f32);
        let Some((&first, &last)) = rows.first().zip(rows.last()) else { return };
        let mut direction = self.code(first).to_vec();
        add(&mut direction, -1.0, self.code(last));
        let mut next = vec![0f32; self.dims];
        for _ in 0..STEPS {
            // (X - mean)' (X - mean) direction, a power iteration.
            let offset = self.kernels.dot(&mean, &direction);
            next.fill(0.0);
            let mut total = 0.0;
            for &row in &*rows {
                let along = self.kernels.dot(self.code(row), &direction) - offset;
                add(&mut next, along, self.code(row));
                total += along;
            }
            add(&mut next, -total, &mean);
            let length = self.kernels.dot(&next, &next).sqrt();
            if length == 0.0 {
                break;
            }
            next.iter_mut().for_each(|value| *value /= length);
            std::mem::swap(&mut direction, &mut next);
        }
        let mut keyed: Vec<(f32, u32)> =
            rows.iter().map(|&row| (self.kernels.dot(self.code(row), &direction), row)).collect();
        keyed.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        rows.iter_mut().zip(keyed).for_each(|(row, (_, sorted))| *row = sorted);
    }

    fn code(&self, row: u32) -> &[f32] {
        let start = row as usize * self.dims;
        &self.signs[start..start + self.dims]
    }
}

/// Adds `factor` times `values`.
fn add(sum: &mut [f32], factor: f32, values: &[f32]) {
    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value);
}

/// How many of `len` records, the first of which lies `at` after a page border, come before the
/// border nearest to their middle. They do not fit in one page, so there is one.
fn border_near_the_middle(at: usize, len: usize, per_page: usize) -> usize {
    let middle = (at + len / 2 + per_page / 2) / per_page;
    let last = (at + len - 1) / per_page;
    middle.clamp(1, last) * per_page - at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes of 64 dims: `clusters` random ones, each with a few bits changed.
    fn codes(clusters: usize, of_each: usize) -> Vec<[u8; 8]> {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 29) ^ (state << 31)
        };
        let centres: Vec<u64> = (0..clusters).map(|_| random()).collect();
        (0..clusters * of_each)
            .map(|i| (centres[i % clusters] ^ (1 << (random() % 64))).to_le_bytes())
            .collect()
    }

    fn arranged(codes: &[[u8; 8]], per_page: usize, first: u64) -> Vec<u32> {
        let mut locality = Locality {
            kernels: Kernels::best(),
            dims: 64,
            per_page,
            signs: Vec::new(),
            order: Vec::new(),
        };
        locality.arrange(codes.iter().map(|code| &code[..]), first).to_vec()
    }

    #[test]
    fn every_row_has_one_place_and_rows_of_a_page_keep_their_order() {
        for (n, per_page, first) in [(0, 4, 0), (1, 4, 3), (5, 4, 2), (97, 10, 7), (600, 9, 100)] {
            let order = arranged(&codes(n.max(1), 1)[..n], per_page, first);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..n as u32).collect::<Vec<_>>());
            let page = |at: usize| (first as usize + at) / per_page;
            for at in 1..n {
                assert!(page(at) != page(at - 1) || order[at] > order[at - 1], "{n} rows, {at}");
            }
        }
    }

    #[test]
    fn rows_that_are_near_share_pages() {
        let (clusters, per_page) = (16, 8);
        let codes = codes(clusters, per_page);
        let order = arranged(&codes, per_page, 0);
        let mut together = 0;
        for page in order.chunks(per_page) {
            let cluster = |row: &u32| *row as usize % clusters;
            let pairs = page.iter().flat_map(|a| page.iter().map(move |b| (a, b)));
            together += pairs.filter(|(a, b)| a < b && cluster(a) == cluster(b)).count();
        }
        let pairs = clusters * per_page * (per_page - 1) / 2;
        // By chance it would be a twentieth.
        assert!(together * 2 > pairs, "{together} of {pairs} pairs of a cluster share a page");
    }

    #[test]
    fn equal_rows_stay_in_order() {
        assert_eq!(arranged(&[[5; 8]; 50], 8, 3), (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn the_border_is_one_and_near_the_middle() {
        for per_page in 2..12 {
            for at in 0..per_page {
                for len in per_page - at + 1..100 {
                    let left = border_near_the_middle(at, len, per_page);
                    assert!(left > 0 && left < len, "{at} {len} {per_page}");
                    assert_eq!((at + left) % per_page, 0);
                    assert!(left.abs_diff(len / 2) <= per_page, "{at} {len} {per_page}: {left}");
                }
            }
        }
    }
}
