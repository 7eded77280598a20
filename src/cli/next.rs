//! The next command to try, written so that it can be pasted into a shell.

use std::path::Path;

/// This program as the user started it: through cargo, or by its path.
pub(crate) fn program() -> String {
    if std::env::var_os("CARGO").is_some() {
        return "cargo run --release --".into();
    }
    std::env::args_os().next().map_or_else(|| "rabitq-ssd".into(), |name| quoted(Path::new(&name)))
}

/// A path as a shell reads it back.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:=@%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_spaces_and_quotes_survive_a_shell() {
        assert_eq!(quoted(Path::new("./a-b_1.fbin")), "./a-b_1.fbin");
        assert_eq!(quoted(Path::new("my index")), "'my index'");
        assert_eq!(quoted(Path::new("it's")), r"'it'\''s'");
        assert_eq!(quoted(Path::new("")), "''");
    }
}
