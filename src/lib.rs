//! rabitq-ssd
pub mod config;
pub mod error;
pub mod progress;
