//! Changes to an input that readers tend to stumble over.

/// splitmix64.
pub struct Rng(pub u64);

/// Counts and sizes at the borders of what types hold.
const BORDERS: [u64; 14] = [
    0,
    1,
    2,
    255,
    4095,
    4096,
    65_536,
    (1 << 31) - 1,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX,
];

/// No input grows beyond this.
const LONGEST: usize = 1 << 16;

impl Rng {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.number() % end as u64) as usize }
    }

    fn border(&mut self) -> u64 {
        BORDERS[self.below(BORDERS.len())].wrapping_add(self.number() % 3).wrapping_sub(1)
    }
}

/// Changes `input` in 1 to 4 places; `other` is another input to take a piece from.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    for _ in 0..1 + rng.below(4) {
        let at = rng.below(input.len());
        match rng.below(10) {
            0 | 1 if !input.is_empty() => input[at] ^= 1 << rng.below(8),
            2 if !input.is_empty() => input[at] = rng.number() as u8,
            3 => overwrite(input, at, &(rng.border() as u32).to_le_bytes()),
            4 => overwrite(input, at, &rng.border().to_le_bytes()),
            5 => replace_number(input, at, rng.border()),
            6 => input.truncate(at),
            7 => {
                let end = (at + rng.below(16)).min(input.len());
                input.drain(at..end);
            }
            8 => {
                let from = rng.below(other.len());
                let piece = &other[from..(from + rng.below(64)).min(other.len())];
                input.splice(at..at, piece.iter().copied());
            }
            _ => {
                let end = (at + rng.below(32)).min(input.len());
                let piece = input[at..end].to_vec();
                input.splice(at..at, piece);
            }
        }
    }
    input.truncate(LONGEST);
}

fn overwrite(input: &mut [u8], at: usize, bytes: &[u8]) {
    input[at..].iter_mut().zip(bytes).for_each(|(old, new)| *old = *new);
}

/// Replaces the first decimal number from `at` on, as texts have them.
fn replace_number(input: &mut Vec<u8>, at: usize, number: u64) {
    if let Some(start) = input[at..].iter().position(u8::is_ascii_digit) {
        let start = at + start;
        let digits = input[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        input.splice(start..start + digits, number.to_string().into_bytes());
    }
}
