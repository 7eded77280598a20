//! `cargo +nightly fuzz run manifest`; without cargo-fuzz, a run over the files named.

#![cfg_attr(fuzzing, no_main)]

rabitq_ssd_fuzz::entry!(manifest);
