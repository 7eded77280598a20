//! Readers of the command line that no library offers, compiled from their own source.

#![allow(dead_code)]

#[path = "../../../src/cli/failure.rs"]
mod failure;
#[path = "../../../src/cli/ids.rs"]
pub(crate) mod ids;
#[path = "../../../src/cli/options.rs"]
mod options;
#[path = "../../../src/cli/sweep.rs"]
pub(crate) mod sweep;
