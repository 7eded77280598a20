//! `cargo +nightly fuzz run npy`; without cargo-fuzz, a run over the files named.

#![cfg_attr(fuzzing, no_main)]

rabitq_ssd_fuzz::entry!(npy);
