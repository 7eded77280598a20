//! Byte sizes as people write and read them.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

/// Longest names first, so that the end of `2GiB` is not taken for plain bytes.
const UNITS: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no size: write bytes, or a number with KiB MiB GiB TiB KB MB GB TB"
            )
        };
        let (number, unit) = UNITS
            .iter()
            .find_map(|&(name, unit)| Some((strip_ignoring_case(text, name)?, unit)))
            .unwrap_or((text, 1));
        let number = number.trim_end();
        let plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let number: f64 = number.parse().ok().filter(|_| plain).ok_or_else(wrong)?;
        let bytes = (number * unit as f64).round();
        // 2^63 is beyond any machine, and well inside what the cast keeps exact in meaning.
        if bytes < 9.3e18 { Ok(Self(bytes as u64)) } else { Err(wrong()) }
    }
}

fn strip_ignoring_case<'a>(text: &'a str, suffix: &str) -> Option<&'a str> {
    let (head, tail) = text.split_at_checked(text.len().checked_sub(suffix.len())?)?;
    tail.eq_ignore_ascii_case(suffix).then_some(head)
}

/// Three significant digits and a binary unit.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unit) = match self.0 {
            0..=1023 => return f.pad(&format!("{} B", self.0)),
            b if b < 1 << 20 => ("KiB", 1u64 << 10),
            b if b < 1 << 30 => ("MiB", 1 << 20),
            b if b < 1 << 40 => ("GiB", 1 << 30),
            _ => ("TiB", 1 << 40),
        };
        let value = self.0 as f64 / unit as f64;
        let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
        f.pad(&format!("{value:.digits$} {name}"))
    }
}

impl Size {
    /// To the byte, and readable: `1,342,177,280 bytes (1.25 GiB)`.
    pub(crate) fn exact(self) -> String {
        match self.0 {
            0..=1023 => format!("{} bytes", self.0),
            _ => format!("{} bytes ({self})", grouped(self.0)),
        }
    }
}

/// A whole number with a comma every three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_binary_and_decimal_units() {
        for (text, bytes) in [
            ("2GiB", 2 << 30),
            ("512MiB", 512 << 20),
            ("1.5GB", 1_500_000_000),
            ("1 KiB", 1024),
            ("10kb", 10_000),
            ("123456789", 123_456_789),
            ("7B", 7),
            ("0", 0),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in
            ["", "GiB", "-1", "-1GiB", "2G", "1e9", "inf", "NaN", "9999999999TiB", "1.2.3", "é"]
        {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_printed_with_three_digits_and_to_the_byte() {
        assert_eq!(Size(1023).to_string(), "1023 B");
        assert_eq!(Size(1536).to_string(), "1.50 KiB");
        assert_eq!(Size(99 << 20).to_string(), "99.0 MiB");
        assert_eq!(Size(768 << 30).to_string(), "768 GiB");
        assert_eq!(Size(1_342_177_280).exact(), "1,342,177,280 bytes (1.25 GiB)");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(999), "999");
    }
}
