//! Prefix codes keep what was set, lie aligned, and are their own file format.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod sample;

use codec::{BATCH, Factors, PrefixCodes};
use sample::Sampler;

fn filled(m: usize, n: u64) -> (PrefixCodes, Vec<(Vec<u8>, Factors)>) {
    let mut sampler = Sampler::new(n);
    let mut codes = PrefixCodes::new(m, n);
    let set: Vec<_> = (0..n)
        .map(|position| {
            let code: Vec<u8> = (0..m / 8).map(|_| sampler.below(256) as u8).collect();
            let add = position as f32;
            let factors = Factors { add, rescale: -add - 0.5, error: add * 2.0 };
            codes.set(position, &code, factors);
            (code, factors)
        })
        .collect();
    (codes, set)
}

#[test]
fn codes_and_factors_come_back_by_position() {
    for (m, n) in [(64, 1), (128, 32), (192, 33), (768, 100)] {
        let (codes, set) = filled(m, n);
        assert_eq!((codes.len(), codes.prefix_dims()), (n, m));
        for (position, (code, factors)) in set.iter().enumerate() {
            let mut found = vec![0; m / 8];
            codes.code(position as u64, &mut found);
            assert_eq!(&found, code);
            assert_eq!(codes.factors(position as u64), *factors);
        }
    }
}

#[test]
fn batches_are_aligned_and_unused_slots_zero() {
    let (codes, _) = filled(192, 33);
    assert_eq!(codes.batches(), 2);
    for batch in 0..2 {
        let (bytes, factors) = codes.batch(batch);
        assert_eq!(bytes.as_ptr() as usize % 64, 0);
        assert_eq!(bytes.len(), 4 * 192);
        assert_eq!(std::ptr::from_ref(factors) as usize % 64, 0);
    }
    let last = codes.batch(1).1;
    assert!(last.add[1..].iter().chain(&last.error[1..]).all(|&value| value == 0.0));
    assert_eq!(codes.as_bytes().len() as u64, PrefixCodes::bytes_for(192, 33));
    assert!(codes.resident_bytes() >= codes.as_bytes().len());
    assert_eq!(BATCH, 32);
}

#[test]
fn codes_survive_their_bytes_copied_or_read_in_place() {
    let (codes, _) = filled(128, 70);
    let copied = PrefixCodes::from_bytes(128, 70, codes.as_bytes()).unwrap();
    assert_eq!(copied.as_bytes(), codes.as_bytes());
    let mut read = PrefixCodes::new(128, 70);
    read.as_bytes_mut().copy_from_slice(codes.as_bytes());
    assert_eq!(read.factors(69), codes.factors(69));
}

#[test]
fn bytes_of_another_size_are_refused_with_both_sizes() {
    let error = PrefixCodes::from_bytes(64, 33, &[0; 100]).unwrap_err();
    let expected = 2 * (256 + 384);
    assert_eq!((error.expected, error.found), (expected, 100));
    assert!(error.to_string().contains("1280") && error.to_string().contains("100"));
}

#[test]
fn no_vectors_take_no_bytes_and_absurd_counts_do_not_wrap() {
    assert!(PrefixCodes::new(64, 0).is_empty());
    assert_eq!(PrefixCodes::bytes_for(64, 0), 0);
    assert_eq!(PrefixCodes::bytes_for(65536, u64::MAX), u64::MAX);
}
