//! docs/reliability.md names tests; a document that names what is not there is worse than none.

#![allow(clippy::unwrap_used)]

#[test]
fn every_test_the_document_names_is_in_the_file_it_names() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = std::fs::read_to_string(root.join("docs/reliability.md")).unwrap();
    let mut named = 0;
    for row in document.lines().filter(|line| line.starts_with("| ")) {
        let quoted: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let pairs = quoted.windows(2).filter(|pair| pair[0].ends_with(".rs"));
        for pair in pairs {
            let source = std::fs::read_to_string(root.join(pair[0])).unwrap();
            assert!(source.contains(&format!("fn {}(", pair[1])), "{} has no {}", pair[0], pair[1]);
            named += 1;
        }
    }
    assert!(named >= 40, "{named}");
}
