//! `cargo +nightly fuzz run --features libfuzzer sweep`

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rabitq_ssd_fuzz::targets::sweep::run(input));
