//! Patterns among vector files: `part*.fbin` for all parts of a base, in the order people count.
//!
//! ```text
//! *   any characters, or none       ?   one character        in the file name, not in folders
//! ```
//! Shells expand patterns too, but in the order of characters, where part10 comes before part2. A
//! file that is really called so wins over the pattern, and names that begin with a dot are only
//! matched by patterns that do.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use anyhow::bail;

/// Replaces every pattern by the files it matches; other paths stay as they are.
pub(crate) fn expand(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        match pattern_of(path) {
            Some(pattern) if !path.exists() => files.extend(matching(path, &pattern)?),
            _ => files.push(path.clone()),
        }
    }
    Ok(files)
}

/// The file name of a path, if it has the characters of a pattern.
fn pattern_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy();
    name.contains(['*', '?']).then(|| name.into_owned())
}

fn matching(path: &Path, pattern: &str) -> anyhow::Result<Vec<PathBuf>> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut names = Vec::new();
    for entry in fs_err::read_dir(listed)? {
        let name = entry?.file_name();
        let text = name.to_string_lossy();
        let hidden = text.starts_with('.') && !pattern.starts_with('.');
        if !hidden && matches(pattern, &text) && !folder.join(&name).is_dir() {
            names.push((text.into_owned(), folder.join(&name)));
        }
    }
    if names.is_empty() {
        bail!("{}: no file matches this pattern", path.display());
    }
    names.sort_by(|(a, _), (b, _)| natural(a, b));
    Ok(names.into_iter().map(|(_, path)| path).collect())
}

/// Whether a name fits a pattern. After a mismatch only the last `*` can still take more.
fn matches(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    let mut star = None;
    loop {
        let before = name.clone();
        match (pattern.next(), name.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                star = Some((pattern.clone(), before.clone()));
                name = before;
            }
            (Some('?'), Some(_)) => {}
            (Some(wanted), Some(found)) if wanted == found => {}
            _ => {
                let Some((after, taken)) = &mut star else { return false };
                if taken.next().is_none() {
                    return false;
                }
                (pattern, name) = (after.clone(), taken.clone());
            }
        }
    }
}

/// Runs of digits compare as numbers, everything else by character: part2 before part10.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    while let (Some(x), Some(y)) = (left.chars().next(), right.chars().next()) {
        let order = if x.is_ascii_digit() && y.is_ascii_digit() {
            let (one, other);
            (one, left) = number(left);
            (other, right) = number(right);
            one.len().cmp(&other.len()).then_with(|| one.cmp(other))
        } else {
            (left, right) = (&left[x.len_utf8()..], &right[y.len_utf8()..]);
            x.cmp(&y)
        };
        if order.is_ne() {
            return order;
        }
    }
    // Names that differ only in leading zeros still need an order.
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

/// The number a text begins with, without leading zeros, and the rest of the text.
fn number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (text[..end].trim_start_matches('0'), &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_take_any_characters_and_question_marks_one() {
        for (pattern, name) in [
            ("part*.fbin", "part.fbin"),
            ("part*.fbin", "part10.fbin"),
            ("*.fbin", "a.fbin.fbin"),
            ("p?rt*", "pärt"),
            ("*a*b*", "xxaxxabxx"),
            ("**", ""),
            ("a*ab", "aaab"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("part*.fbin", "part1.fbin.bak"),
            ("?", ""),
            ("?", "ab"),
            ("*a", "ab"),
            ("a*b*c", "acb"),
            ("", "a"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_is_decided_at_once() {
        assert!(!matches(&"*a".repeat(30), &"a".repeat(29)));
        assert!(!matches(&format!("{}c", "*ab".repeat(500)), &"ab".repeat(20_000)));
    }

    #[test]
    fn numbers_in_names_are_compared_as_numbers() {
        let ordered = [
            "part",
            "part.fbin",
            "part1",
            "part02",
            "part2",
            "part2b",
            "part10",
            "part10a9",
            "part10a10",
            "part99999999999999999999998",
            "part99999999999999999999999",
            "q0",
        ];
        for (i, a) in ordered.iter().enumerate() {
            for (j, b) in ordered.iter().enumerate() {
                assert_eq!(natural(a, b), i.cmp(&j), "{a} {b}");
            }
        }
    }
}
