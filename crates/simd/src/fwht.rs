//! Contract: the Walsh-Hadamard transform, the fast part of the random rotation.
//!
//! ```text
//! for h in 1, 2, 4, ... n/2          y_i = sum over j of (-1)^popcount(i & j) x_j
//!     for every pair (i, i + h) of a block of 2h
//!         x[i], x[i+h] = x[i] + x[i+h], x[i] - x[i+h]
//! ```
//!
//! Natural order, in place, not normalised: applied twice it multiplies by `n`. Stages run from
//! `h = 1` upwards on every instruction set. A stage only adds and subtracts pairs, so keeping
//! several stages in registers changes no bit of the result.

use crate::dispatch::Kernels;

pub(crate) type Fwht = unsafe fn(&mut [f32]);

impl Kernels {
    /// Transforms `x` in place, unnormalised. From 256 floats on, a start on a multiple of 64 bytes
    /// saves about a fifth of the time.
    ///
    /// # Panics
    /// Unless `x.len()` is a power of two.
    pub fn fwht(&self, x: &mut [f32]) {
        assert!(x.len().is_power_of_two(), "fwht: length {} is not a power of two", x.len());
        // SAFETY: `dispatch` hands out a table only on a CPU that has its instructions.
        unsafe { (self.fwht)(x) }
    }
}
