//! Ground truth: one byte which format (rows and scores, or .ivecs), then the file.

use rabitq_ssd::dataset::GroundTruth;

use crate::scratch::with_file;

/// Reads the file and looks at its first and last query.
pub fn run(input: &[u8]) -> String {
    let Some((&which, bytes)) = input.split_first() else { return String::new() };
    let name = if which % 2 == 0 { "gt.bin" } else { "gt.ivecs" };
    with_file(name, bytes, |path| match GroundTruth::read(path) {
        Ok(truth) => {
            for query in [0, truth.queries.saturating_sub(1)] {
                if query < truth.queries {
                    assert_eq!(truth.ids_of(query).len(), truth.k);
                    assert!(truth.distances_of(query).is_none_or(|all| all.len() == truth.k));
                }
            }
            format!("read {}", truth.distances.is_some())
        }
        Err(error) => error.to_string(),
    })
}
