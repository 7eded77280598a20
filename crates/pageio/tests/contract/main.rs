//! One suite for every backend that works on this machine, direct and buffered.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fixture;
mod reads;
mod slots;
mod lifetimes;
mod failures;
mod faults;
mod watchdog;
mod opening;
