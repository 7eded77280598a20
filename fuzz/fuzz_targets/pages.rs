//! `cargo +nightly fuzz run --features libfuzzer pages`

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rabitq_ssd_fuzz::targets::pages::run(input));
