//! Portable Rust: what every other table must return, bit for bit. Clear before fast.

mod fwht;
mod distance;
mod excode;
mod fastscan;
mod bounds;

use crate::dispatch::{Isa, Kernels};

pub(crate) use fwht::fwht;

pub(crate) static KERNELS: Kernels = Kernels {
    isa: Isa::Scalar,
    fwht: fwht::fwht,
    dot: distance::dot,
    l2: distance::l2,
    dot_raw: distance::dot_raw,
    l2_raw: distance::l2_raw,
    ex_dot: excode::ex_dot,
    sign_dot: excode::sign_dot,
    code_score: excode::code_score,
    scan8: fastscan::scan8,
    scan16: fastscan::scan16,
    bounds: bounds::bounds,
};
