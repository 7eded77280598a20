//! A set of row numbers that stays small for any pattern.
//!
//! ```text
//! row >> 16 → block:  up to 4096 rows   sorted u16        2 bytes a row
//!                     more              bitmap of 65536   8 KiB
//! ```
//! So at most one bit per row of the base, and a few bytes for a few rows.

use std::collections::BTreeMap;

const BLOCK_BITS: u32 = 16;
const SPARSE_MOST: usize = 4096;
const WORDS: usize = (1 << BLOCK_BITS) / 64;

/// Distinct row numbers, iterated in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowSet {
    blocks: BTreeMap<u64, Block>,
    len: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Block {
    Sparse(Vec<u16>),
    Dense(Box<[u64; WORDS]>),
}

impl RowSet {
    /// Add a row; says whether it is new.
    pub fn insert(&mut self, row: u64) -> bool {
        let block = self.blocks.entry(row >> BLOCK_BITS).or_insert(Block::Sparse(Vec::new()));
        let new = block.insert(row as u16);
        self.len += u64::from(new);
        new
    }

    /// Whether the row is in the set.
    pub fn contains(&self, row: u64) -> bool {
        self.blocks.get(&(row >> BLOCK_BITS)).is_some_and(|block| block.contains(row as u16))
    }

    /// Number of rows.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The rows, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.blocks.iter().flat_map(|(&high, block)| {
            block.iter().map(move |low| high << BLOCK_BITS | u64::from(low))
        })
    }
}

impl Extend<u64> for RowSet {
    fn extend<I: IntoIterator<Item = u64>>(&mut self, rows: I) {
        for row in rows {
            self.insert(row);
        }
    }
}

impl Block {
    fn insert(&mut self, low: u16) -> bool {
        match self {
            Self::Sparse(rows) => {
                let Err(place) = rows.binary_search(&low) else { return false };
                rows.insert(place, low);
                if rows.len() > SPARSE_MOST {
                    let mut words = Box::new([0; WORDS]);
                    rows.iter().for_each(|&low| set(&mut words, low));
                    *self = Self::Dense(words);
                }
                true
            }
            Self::Dense(words) => {
                let new = !is_set(words, low);
                set(words, low);
                new
            }
        }
    }

    fn contains(&self, low: u16) -> bool {
        match self {
            Self::Sparse(rows) => rows.binary_search(&low).is_ok(),
            Self::Dense(words) => is_set(words, low),
        }
    }

    fn iter(&self) -> Box<dyn Iterator<Item = u16> + '_> {
        match self {
            Self::Sparse(rows) => Box::new(rows.iter().copied()),
            Self::Dense(words) => Box::new((0..=u16::MAX).filter(|&low| is_set(words, low))),
        }
    }
}

fn set(words: &mut [u64; WORDS], low: u16) {
    words[usize::from(low / 64)] |= 1 << (low % 64);
}

fn is_set(words: &[u64; WORDS], low: u16) -> bool {
    words[usize::from(low / 64)] >> (low % 64) & 1 == 1
}
