//! What the scenarios share: seeded data in temporary folders, indexes of them, brute force.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use rabitq_ssd::dataset::{Base, Dtype, VectorWriter};
use rabitq_ssd::{BuildOptions, Index, Metric, OpenOptions, SearchOptions, Silent};

/// A folder that disappears, with a base in it.
pub struct Fixture {
    pub dir: tempfile::TempDir,
    pub rows: Vec<Vec<f32>>,
}

impl Fixture {
    /// Writes `rows` as `base.fbin`, or as 8-bit values in `base.u8bin`.
    pub fn of(rows: Vec<Vec<f32>>, dtype: Dtype) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let name = if dtype == Dtype::U8 { "base.u8bin" } else { "base.fbin" };
        let mut out = VectorWriter::create(&dir.path().join(name), rows[0].len(), dtype).unwrap();
        rows.iter().for_each(|row| out.write_f32(row).unwrap());
        out.finish().unwrap();
        Self { dir, rows }
    }

    /// Clustered rows from a small generator of its own.
    pub fn clustered(n: usize, dim: usize, seed: u64) -> Self {
        Self::of(clustered(n, dim, seed), Dtype::F32)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn base(&self) -> Base {
        let float = self.path("base.fbin");
        Base::open(&[if float.exists() { float } else { self.path("base.u8bin") }]).unwrap()
    }

    /// Builds `index` with these options and opens it.
    pub fn index(&self, o: &BuildOptions) -> Index {
        let out = self.path("index");
        Index::build(&self.base(), &out, o, &Silent).unwrap();
        open(&out)
    }
}

pub fn open(dir: &Path) -> Index {
    Index::open(dir, &OpenOptions::default()).unwrap()
}

/// A generator small enough to read: splitmix64, and sums of four uniforms for a bell shape.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32
    }

    pub fn bell(&mut self) -> f32 {
        (0..4).map(|_| self.unit() - 0.5).sum::<f32>() * 1.7
    }

    pub fn row(&mut self, dim: usize) -> Vec<f32> {
        (0..dim).map(|_| self.bell()).collect()
    }
}

/// Rows around 20 centres.
pub fn clustered(n: usize, dim: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut rng = Rng(seed);
    let centres: Vec<Vec<f32>> = (0..20).map(|_| rng.row(dim)).collect();
    (0..n)
        .map(|i| {
            let centre = &centres[i % centres.len()];
            centre.iter().map(|c| c + 0.4 * rng.bell()).collect()
        })
        .collect()
}

/// Distance of the metric, smaller is nearer, in f64.
pub fn distance(metric: Metric, a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    match metric {
        Metric::L2 => a.iter().zip(b).map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2)).sum(),
        Metric::Ip => -dot(a, b),
        _ => {
            let norms = (dot(a, a) * dot(b, b)).sqrt();
            if norms == 0.0 { 0.0 } else { -dot(a, b) / norms }
        }
    }
}

/// Ids and distances of the k nearest, ties by id.
pub fn brute_force(metric: Metric, rows: &[Vec<f32>], q: &[f32], k: usize) -> Vec<(u64, f64)> {
    let mut all: Vec<(u64, f64)> =
        (0..).zip(rows).map(|(i, row)| (i, distance(metric, row, q))).collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    all.truncate(k);
    all
}

/// Share of the true neighbours found, ties allowed.
pub fn recall(
    metric: Metric,
    rows: &[Vec<f32>],
    queries: &[Vec<f32>],
    index: &Index,
    o: &SearchOptions,
) -> f64 {
    let mut hits = 0;
    let mut wanted = 0;
    for q in queries {
        let truth = brute_force(metric, rows, q, o.k);
        let worst = truth.last().unwrap().1;
        let found = index.search(q, o).unwrap();
        wanted += truth.len();
        hits += found
            .ids
            .iter()
            .filter(|id| distance(metric, &rows[**id as usize], q) <= worst + 1e-6 * worst.abs())
            .count();
    }
    hits as f64 / wanted as f64
}
