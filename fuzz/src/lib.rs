//! Every reader of foreign bytes, ready to be given any: what the fuzzers and the replay share.
//!
//! ```text
//! corpus/TARGET/* ──▶ targets::TARGET::run(bytes) ──▶ an outcome in words, or a panic
//!        ▲                       │
//!        └── mutate (stable) ────┘   keeps inputs whose outcome is new
//!            cargo fuzz (nightly)    keeps inputs whose coverage is new
//! ```
//! The rule for all of them: bytes are taken or refused in words, without a panic, without a wait,
//! and in memory that the size of the file explains ([`alloc::LIMIT`]).

pub mod alloc;
mod cli;
pub mod corpus;
pub mod entry;
pub mod mutate;
mod scratch;
pub mod targets;

#[cfg(fuzzing)]
pub use libfuzzer_sys;

/// A reader under test.
pub struct Target {
    /// Its name on the command line and of its folder in `corpus`.
    pub name: &'static str,
    /// Reads the input; says what came of it.
    pub run: fn(&[u8]) -> String,
}

/// All targets.
pub const TARGETS: [Target; 11] = [
    Target { name: "manifest", run: targets::manifest::run },
    Target { name: "resident", run: targets::resident::run },
    Target { name: "pages", run: targets::pages::run },
    Target { name: "npy", run: targets::npy::run },
    Target { name: "vectors", run: targets::vectors::run },
    Target { name: "truth", run: targets::truth::run },
    Target { name: "ids", run: targets::ids::run },
    Target { name: "sweep", run: targets::sweep::run },
    Target { name: "tuning", run: targets::tuning::run },
    Target { name: "rowset", run: targets::rowset::run },
    Target { name: "checkpoint", run: targets::checkpoint::run },
];
