//! One reader each.

mod edits;
mod seal;

pub mod ids;
pub mod manifest;
pub mod npy;
pub mod pages;
pub mod resident;
pub mod sweep;
pub mod truth;
pub mod vectors;
