//! Every input of the corpus runs clean: what once broke a reader never does so again.

use rabitq_ssd_fuzz::alloc::{Counting, LIMIT, peak_of};
use rabitq_ssd_fuzz::{TARGETS, corpus};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn every_input_of_the_corpus_is_read_or_refused_in_words() {
    for target in &TARGETS {
        let inputs = corpus::read(target.name).unwrap();
        assert!(!inputs.is_empty(), "{} has no inputs", target.name);
        // What the target prepares once is not the input's.
        (target.run)(&inputs[0].1);
        for (name, input) in inputs {
            let (outcome, peak) = peak_of(|| (target.run)(&input));
            assert!(peak <= LIMIT, "{}/{name}: {peak} bytes held", target.name);
            // Good inputs are named so, and must not be mistaken for bad ones.
            let bad = ["panic", "expected", "damaged", "not ", "no "];
            if name.starts_with("good") {
                assert!(!bad.iter().any(|word| outcome.contains(word)), "{name}: {outcome}");
            }
        }
    }
}
