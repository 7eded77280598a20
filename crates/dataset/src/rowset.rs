//! A set of row numbers that stays small for any pattern.
//!
//! ```text
//! row >> 16 → block:  up to 4096 rows   sorted u16        2 bytes a row
//!                     more              bitmap of 65536   8 KiB
//! ```
//! So at most one bit per row of the base, and a few bytes for a few rows: half of 100 million
//! rows take 12.5 MB.
//!
//! As bytes, for a file that outlives the process (little endian):
//! ```text
//! u64 blocks
//! per block, ascending    u64 row >> 16 | u32 rows | u16 · rows, or 8 KiB of bits above 4096
//! u32 crc32c of all before
//! ```

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

/// Bytes that are no [`RowSet`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("damaged set of rows: {problem}")]
pub struct RowSetDamage {
    problem: &'static str,
}

/// Rows that share all but their low 16 bits; which of the two kinds follows from their number.
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

    /// Bytes the set takes in memory; what the allocator and the nodes of the tree add is estimated.
    pub fn bytes(&self) -> u64 {
        // Nodes of a tree that grew in ascending order are half full.
        const ENTRY: usize = 2 * (size_of::<u64>() + size_of::<Block>());
        let blocks = self.blocks.values().map(|block| match block {
            Block::Sparse(rows) => rows.capacity() * size_of::<u16>(),
            Block::Dense(words) => size_of_val(&**words),
        });
        blocks.map(|bytes| (bytes + ENTRY) as u64).sum()
    }

    /// Most [`bytes`](Self::bytes) a set of rows below `n` can take.
    pub fn most_bytes(n: u64) -> u64 {
        const DENSE: u64 =
            (1 << BLOCK_BITS) / 8 + 2 * (size_of::<u64>() + size_of::<Block>()) as u64;
        n.div_ceil(1 << BLOCK_BITS).saturating_mul(DENSE)
    }

    /// The set as bytes, for [`from_bytes`](Self::from_bytes). Equal sets give equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = (self.blocks.len() as u64).to_le_bytes().to_vec();
        for (high, block) in &self.blocks {
            bytes.extend(high.to_le_bytes());
            bytes.extend(block.len().to_le_bytes());
            match block {
                Block::Sparse(rows) => bytes.extend(rows.iter().flat_map(|low| low.to_le_bytes())),
                Block::Dense(words) => bytes.extend(words.iter().flat_map(|w| w.to_le_bytes())),
            }
        }
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// The set [`to_bytes`](Self::to_bytes) was called on.
    ///
    /// # Errors
    /// When the bytes are cut, damaged, or not such a set.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RowSetDamage> {
        let (content, checksum) = bytes.split_last_chunk().ok_or(CUT)?;
        if crc32c::crc32c(content) != u32::from_le_bytes(*checksum) {
            return Err(RowSetDamage { problem: "its bytes do not match their checksum" });
        }
        let mut rest = content;
        let count = u64::from_le_bytes(*take(&mut rest)?);
        let mut set = Self::default();
        for _ in 0..count {
            let high = u64::from_le_bytes(*take(&mut rest)?);
            let after_last = set.blocks.last_key_value().is_none_or(|(&last, _)| last < high);
            if !after_last || high > u64::MAX >> BLOCK_BITS {
                return Err(RowSetDamage { problem: "its blocks are not in order" });
            }
            let block = Block::take(&mut rest)?;
            set.len += u64::from(block.len());
            set.blocks.insert(high, block);
        }
        if rest.is_empty() { Ok(set) } else { Err(RowSetDamage { problem: "bytes are left over" }) }
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

    /// 1 to 65536.
    fn len(&self) -> u32 {
        match self {
            Self::Sparse(rows) => rows.len() as u32,
            Self::Dense(words) => words.iter().map(|word| word.count_ones()).sum(),
        }
    }

    fn iter(&self) -> Box<dyn Iterator<Item = u16> + '_> {
        match self {
            Self::Sparse(rows) => Box::new(rows.iter().copied()),
            Self::Dense(words) => Box::new((0..=u16::MAX).filter(|&low| is_set(words, low))),
        }
    }

    /// Read a block from the front of `bytes`; only what [`RowSet::to_bytes`] writes is accepted.
    fn take(bytes: &mut &[u8]) -> Result<Self, RowSetDamage> {
        let len = u32::from_le_bytes(*take(bytes)?) as usize;
        let block = if len <= SPARSE_MOST {
            let (lows, _) = bytes.split_off(..len * 2).ok_or(CUT)?.as_chunks();
            Self::Sparse(lows.iter().map(|&low| u16::from_le_bytes(low)).collect())
        } else {
            let (stored, _) = bytes.split_off(..WORDS * 8).ok_or(CUT)?.as_chunks();
            let mut words = Box::new([0; WORDS]);
            words.iter_mut().zip(stored).for_each(|(word, &w)| *word = u64::from_le_bytes(w));
            Self::Dense(words)
        };
        let ascending = match &block {
            Self::Sparse(rows) => len > 0 && rows.is_sorted_by(|a, b| a < b),
            Self::Dense(_) => block.len() as usize == len,
        };
        if ascending {
            Ok(block)
        } else {
            Err(RowSetDamage { problem: "a block's rows are wrong" })
        }
    }
}

const CUT: RowSetDamage = RowSetDamage { problem: "it ends too early" };

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Result<&'a [u8; N], RowSetDamage> {
    bytes.split_off(..N).and_then(|head| head.first_chunk()).ok_or(CUT)
}

fn set(words: &mut [u64; WORDS], low: u16) {
    words[usize::from(low / 64)] |= 1 << (low % 64);
}

fn is_set(words: &[u64; WORDS], low: u16) -> bool {
    words[usize::from(low / 64)] >> (low % 64) & 1 == 1
}
