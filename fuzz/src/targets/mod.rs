//! One reader each.

mod edits;
mod seal;

pub mod checkpoint;
pub mod ids;
pub mod manifest;
pub mod npy;
pub mod pages;
pub mod resident;
pub mod rowset;
pub mod sweep;
pub mod truth;
pub mod tuning;
pub mod vectors;
