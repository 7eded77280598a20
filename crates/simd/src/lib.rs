//! Arithmetic on bytes and floats: the inner loops of `rabitq-ssd`, and nothing else.
//!
//! A *kernel* is one function with one contract, written once per instruction set. [`Kernels`] is
//! a table of them for one instruction set; [`Kernels::best`] is the table of this CPU, chosen
//! once. The scalar table is the specification, and the others return its very bits:
//!
//! * integer kernels (FastScan) return exact integers;
//! * float kernels add in one fixed order over 16 lanes with fused multiply-add, whatever the
//!   width of a register, so the same index and query give the same neighbours on every machine.
//!
//! Reading order: each contract file says what a kernel computes and shows the layout of its
//! operands; `scalar`, `avx2`, `avx512` and `neon` hold one file per contract.
//!
//! ```
//! let kernels = simd::Kernels::best();
//! let (a, b) = ([1.0f32, 2.0, 3.0], [4.0f32, 5.0, 6.0]);
//! assert_eq!(kernels.dot(&a, &b), 32.0);
//! ```

mod dispatch;
mod fwht;
mod distance;
mod excode;
mod fastscan;
mod bounds;
mod prefetch;

mod scalar;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;

pub use bounds::{BatchBounds, BatchFactors, BoundParams};
pub use dispatch::{ISA_VARIABLE, Isa, IsaError, Kernels};
pub use distance::RawType;
pub use excode::{ex_bytes, ex_pack, ex_unpack};
pub use fastscan::{BATCH, MAX_DIMS, get_code, pack_codes, pack_lut16, set_code};
pub use prefetch::prefetch;
