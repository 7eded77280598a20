//! The rotated query and its lookup table: `S_m(Rq)` of any code from one sum of table entries.
//!
//! The table has 16 entries for every group of four dims, one per combination of signs. Entries
//! are rounded to 8 or 16 bits with one step `delta` for all groups, so that the scan adds
//! integers only:
//!
//! ```text
//! exact  x[i]  = sum over t of (bit t of i ? +q_t : -q_t) + |q_0| + |q_1| + |q_2| + |q_3|   >= 0
//! stored u[i]  = round(x[i] / delta),     delta = max x / (255 or 65535)
//! S_m          = delta * sum of u + offset,   offset = - sum of |q_j| over the prefix
//! ```
//!
//! What rounding can move `S_m` is known once the table is made: the sum over groups of the worst
//! entry, [`Query::table_error`]. It grows with `|q|`, not with the distance to the centroid, so
//! every bound must be widened by it.

use crate::sums::sum_each;
use simd::{BATCH, Kernels, pack_lut16};

/// Entries of the table of four dims.
const ENTRIES: usize = 16;

/// f32 arithmetic on the way from `q` to `S_m` (entries, step, offset, the products of the bound,
/// and the rotation itself) errs by less than this times the sum of `|q_j|`.
const FLOAT_ERROR: f64 = 1.0 / (1 << 19) as f64;

/// Width of a table entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableBits {
    /// Half the scan's work; for records that reuse nothing of the scan's sum.
    Eight,
    /// Exact enough for a record to build on the scan's sum.
    Sixteen,
}

/// A rotated query ready to scan. Reusable: [`Query::prepare`] allocates only when it grows.
#[derive(Clone, Debug)]
pub struct Query {
    rotated: Vec<f32>,
    prefix_dims: usize,
    bits: TableBits,
    entries: Vec<u16>,
    table: Vec<u8>,
    delta: f32,
    offset: f32,
    table_error: f32,
    sum: f32,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            rotated: Vec::new(),
            prefix_dims: 0,
            bits: TableBits::Sixteen,
            entries: Vec::new(),
            table: Vec::new(),
            delta: 0.0,
            offset: 0.0,
            table_error: 0.0,
            sum: 0.0,
        }
    }
}

impl Query {
    /// Takes the rotated query (padded dim values) and makes the table of its first `m` dims.
    ///
    /// # Panics
    /// If `m` is not a multiple of 64 within the length of `rotated`.
    pub fn prepare(&mut self, rotated: &[f32], m: usize, bits: TableBits) {
        assert_eq!(m % 64, 0, "prefix dims are a multiple of 64");
        self.rotated.clear();
        self.rotated.extend_from_slice(rotated);
        self.prefix_dims = m;
        self.bits = bits;
        self.sum = sum_each(rotated, |q| q) as f32;
        self.tabulate();
    }

    fn tabulate(&mut self) {
        let (groups, _) = self.rotated[..self.prefix_dims].as_chunks::<4>();
        let most = match self.bits {
            TableBits::Eight => 255.0,
            TableBits::Sixteen => 65535.0,
        };
        let widest = groups.iter().map(|q| 2.0 * abs_sum(q)).fold(0.0, larger);
        self.delta = widest / most;
        // A step too small to divide by would give infinity; then every entry is stored as zero.
        let inverse = if self.delta >= f32::MIN_POSITIVE { 1.0 / self.delta } else { 0.0 };

        self.entries.resize(groups.len() * ENTRIES, 0);
        let (entries, _) = self.entries.as_chunks_mut::<ENTRIES>();
        let mut rounding = 0.0;
        for (group, entries) in groups.iter().zip(entries) {
            rounding += f64::from(quantize(&exact_entries(group), self.delta, inverse, entries));
        }
        let magnitude = sum_each(&self.rotated[..self.prefix_dims], f64::abs);
        self.offset = -magnitude as f32;
        self.table_error = (rounding + FLOAT_ERROR * magnitude) as f32;
        self.store();
    }

    /// Lays the entries out as the scan kernel of their width reads them.
    fn store(&mut self) {
        self.table.clear();
        match self.bits {
            TableBits::Eight => self.table.extend(self.entries.iter().map(|&entry| entry as u8)),
            TableBits::Sixteen => {
                self.table.resize(2 * self.entries.len(), 0);
                pack_lut16(&self.entries, &mut self.table);
            }
        }
    }

    /// The rotated query, one value per padded dim.
    pub fn rotated(&self) -> &[f32] {
        &self.rotated
    }

    /// Dims the table covers.
    pub fn prefix_dims(&self) -> usize {
        self.prefix_dims
    }

    /// Width of the table's entries.
    pub fn bits(&self) -> TableBits {
        self.bits
    }

    /// Sum of all values of the rotated query.
    pub fn sum(&self) -> f32 {
        self.sum
    }

    /// Step of the table: `S_m = delta * sum + offset`.
    pub fn delta(&self) -> f32 {
        self.delta
    }

    /// Offset of the table.
    pub fn offset(&self) -> f32 {
        self.offset
    }

    /// Most by which `delta * sum + offset` can differ from `S_m`, float arithmetic included.
    pub fn table_error(&self) -> f32 {
        self.table_error
    }

    /// Table sums of a batch of 32 prefix codes (`4 m` bytes as `simd` lays them out).
    pub fn sums(&self, kernels: &Kernels, codes: &[u8], sums: &mut [u32; BATCH]) {
        match self.bits {
            TableBits::Eight => kernels.scan8(codes, &self.table, sums),
            TableBits::Sixteen => kernels.scan16(codes, &self.table, sums),
        }
    }

    /// `S_m(Rq)` of one code of `m / 8` bytes, without the table's rounding.
    pub fn prefix_sum(&self, kernels: &Kernels, code: &[u8]) -> f32 {
        kernels.sign_dot(&self.rotated[..self.prefix_dims], code)
    }
}

fn abs_sum(q: &[f32; 4]) -> f32 {
    (q[0].abs() + q[1].abs()) + (q[2].abs() + q[3].abs())
}

/// The entries of a group, raised so that the least is zero up to rounding.
fn exact_entries(q: &[f32; 4]) -> [f32; ENTRIES] {
    let least = abs_sum(q) - ((q[0] + q[1]) + (q[2] + q[3]));
    let [a, b, c, d] = q.map(|q| 2.0 * q);
    let low = [0.0, a, b, a + b];
    let high = [least, least + c, least + d, least + (c + d)];
    let mut entries = [0.0; ENTRIES];
    for (quad, high) in entries.as_chunks_mut::<4>().0.iter_mut().zip(high) {
        for (entry, low) in quad.iter_mut().zip(low) {
            *entry = high + low;
        }
    }
    entries
}

/// Rounds the entries of a group to multiples of `delta`; returns the largest error this makes.
fn quantize(exact: &[f32; ENTRIES], delta: f32, inverse: f32, entries: &mut [u16; ENTRIES]) -> f32 {
    /// Adding it leaves the integer nearest to a small float in the low bits of the sum.
    const ROUND: f32 = 8_388_608.0;
    let mut errors = [0.0; ENTRIES];
    for i in 0..ENTRIES {
        let shifted = larger(exact[i], 0.0) * inverse + ROUND;
        entries[i] = shifted.to_bits() as u16;
        errors[i] = (exact[i] - (shifted - ROUND) * delta).abs();
    }
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            errors[i] = larger(errors[i], errors[i + half]);
        }
    }
    errors[0]
}

/// One instruction, unlike `f32::max`, which has NaN to heed.
fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}
