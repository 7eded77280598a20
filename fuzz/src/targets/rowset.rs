//! Sets of rows as a checkpoint holds them, their checksum made right.

use rabitq_ssd::dataset::RowSet;

/// Reads the set and looks through it.
pub fn run(input: &[u8]) -> String {
    let bytes = [input, &crc32c::crc32c(input).to_le_bytes()].concat();
    match RowSet::from_bytes(&bytes) {
        Ok(set) => {
            assert_eq!(set.to_bytes(), bytes, "one set, one form");
            assert_eq!(set.iter().count() as u64, set.len());
            assert!(set.iter().is_sorted_by(|a, b| a < b));
            assert!(set.iter().all(|row| set.contains(row)));
            format!("a set {}", set.is_empty())
        }
        Err(error) => error.to_string(),
    }
}
