//! tuning.json, the operating points beside an index.

use rabitq_ssd::SearchOptions;
use rabitq_ssd::evaluate::Tuning;

use crate::scratch::{with_file, with_index};

/// The index the points of the corpus are of.
const UUID: &str = "u";
/// Points searched with at most.
const POINTS: usize = 4;

/// Reads the points, searches with them, and stores them again.
pub fn run(input: &[u8]) -> String {
    with_file("tuning.json", input, |path| {
        let dir = path.parent().unwrap_or(path);
        let tuning = match Tuning::read(dir, UUID) {
            Ok(tuning) => tuning,
            Err(error) => return error.to_string(),
        };
        let mut outcome = format!("{:?}", tuning.point(10, 0.9).is_some());
        for point in tuning.points().iter().take(POINTS) {
            let mut o = SearchOptions { k: 3, ..SearchOptions::default() };
            point.apply(&mut o);
            outcome += &with_index(0, |index| {
                let index = index.open().expect("an index");
                let found = index.search(&vec![1.0; index.dim()], &o);
                found.map_or_else(|error| error.to_string(), |found| format!("{}", found.ids.len()))
            });
        }
        tuning.write(dir).expect("a temporary file");
        assert_eq!(
            Tuning::read(dir, UUID).expect("the points").points().len(),
            tuning.points().len()
        );
        outcome
    })
}
