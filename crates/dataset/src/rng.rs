//! Random numbers that stay the same: one generator, fixed ways to draw from it.
//!
//! The crates that provide generators may change how they turn bits into ranges or normals;
//! files and samples made from a seed must not change with them. So only raw 64-bit output is
//! taken from xoshiro256++, and everything else is done here.

use rand::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// Stream `number` of the family `domain` under a seed. Streams are unrelated to each other
    /// however close their numbers are: the three words go through a 64-bit finaliser one after
    /// the other.
    pub(crate) fn stream(seed: u64, domain: u64, number: u64) -> Self {
        let mut state = scramble(seed ^ scramble(domain));
        state = scramble(state ^ scramble(number.wrapping_add(0x9e37_79b9_7f4a_7c15)));
        Self(Xoshiro256PlusPlus::seed_from_u64(state))
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), a multiple of 2⁻⁵³.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in 0 .. bound without bias; `bound` must not be 0. (Lemire, "Fast random integer
    /// generation in an interval", 2019.)
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        let mut product = u128::from(self.bits()) * u128::from(bound);
        if (product as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u64) < threshold {
                product = u128::from(self.bits()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }
}

/// The finaliser of SplitMix64: a bijection in which every input bit reaches every output bit.
fn scramble(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
