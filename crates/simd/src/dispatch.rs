//! Which instruction set runs: detected once, lowered on request.
//!
//! ```text
//! available = [scalar] + [every other table whose features this CPU has], worst first
//! best      = RABITQ_SSD_ISA if it names an available one, else the last of available
//! ```
//!
//! A table other than the scalar one leaves this file only after its CPU features were found;
//! every call through its function pointers rests on that.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use crate::avx2::kernels as avx2;
#[cfg(target_arch = "x86_64")]
use crate::avx512::kernels as avx512;
use crate::bounds::Bounds;
use crate::distance::{Distance, RawDistance};
use crate::excode::{CodeScore, ExDot, SignDot};
use crate::fastscan::Scan;
use crate::fwht::Fwht;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use crate::neon::kernels as neon;
use crate::scalar;

/// Environment variable that names the instruction set to use instead of the best one.
pub const ISA_VARIABLE: &str = "RABITQ_SSD_ISA";

/// An instruction set, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// Portable Rust: the specification of every kernel.
    Scalar,
    /// AArch64 Advanced SIMD.
    Neon,
    /// x86-64 AVX2 with FMA and F16C (Haswell, Zen).
    Avx2,
    /// x86-64 AVX-512 F, BW, VL, DQ, VBMI and VNNI (Ice Lake, Zen 4).
    Avx512,
}

impl Isa {
    const ALL: [Isa; 4] = [Isa::Scalar, Isa::Neon, Isa::Avx2, Isa::Avx512];

    /// The name `RABITQ_SSD_ISA` understands.
    pub const fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Neon => "neon",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Isa {
    type Err = IsaError;

    fn from_str(name: &str) -> Result<Isa, IsaError> {
        let known = Isa::ALL.into_iter().find(|isa| isa.name() == name);
        known.ok_or_else(|| IsaError::Unknown { name: name.to_owned() })
    }
}

/// Why an instruction set asked for by name cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IsaError {
    /// No instruction set has this name.
    Unknown {
        /// The name as given.
        name: String,
    },
    /// The instruction set exists, but not on this CPU.
    Unavailable {
        /// What was asked for.
        isa: Isa,
    },
}

impl fmt::Display for IsaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IsaError::Unknown { name } => {
                write!(f, "instruction set {name:?} is not one of scalar, neon, avx2, avx512")?;
            }
            IsaError::Unavailable { isa } => {
                write!(f, "instruction set {isa} is not available on this CPU, which has")?;
                for (i, kernels) in Kernels::available().iter().enumerate() {
                    write!(f, "{} {}", if i == 0 { "" } else { "," }, kernels.isa())?;
                }
            }
        }
        write!(f, "; unset {ISA_VARIABLE} to use the best one")
    }
}

impl std::error::Error for IsaError {}

/// The kernels of one instruction set.
///
/// All methods are safe: they check the lengths their contract names (and panic when the caller
/// broke it), and a table is only handed out on a CPU that has its instructions.
pub struct Kernels {
    pub(crate) isa: Isa,
    pub(crate) fwht: Fwht,
    pub(crate) dot: Distance,
    pub(crate) l2: Distance,
    pub(crate) dot_raw: RawDistance,
    pub(crate) l2_raw: RawDistance,
    pub(crate) ex_dot: ExDot,
    pub(crate) sign_dot: SignDot,
    pub(crate) code_score: CodeScore,
    pub(crate) scan8: Scan,
    pub(crate) scan16: Scan,
    pub(crate) bounds: Bounds,
}

impl Kernels {
    /// The table to use: the best of this CPU, or the one `RABITQ_SSD_ISA` names.
    ///
    /// A name that is unknown or not available is ignored here; see [`Kernels::requested`].
    pub fn best() -> &'static Kernels {
        static BEST: OnceLock<&'static Kernels> = OnceLock::new();
        BEST.get_or_init(|| Kernels::requested().unwrap_or_else(|_| detected()))
    }

    /// The table `RABITQ_SSD_ISA` names, or the best one when it is not set.
    ///
    /// # Errors
    /// When the variable names no instruction set, or one this CPU lacks.
    pub fn requested() -> Result<&'static Kernels, IsaError> {
        let Some(name) = std::env::var_os(ISA_VARIABLE) else { return Ok(detected()) };
        let isa: Isa = name.to_string_lossy().parse()?;
        Kernels::for_isa(isa).ok_or(IsaError::Unavailable { isa })
    }

    /// Every table this CPU can run, scalar first and best last.
    pub fn available() -> Vec<&'static Kernels> {
        Isa::ALL.into_iter().filter_map(Kernels::for_isa).collect()
    }

    /// The table of one instruction set, if this CPU has it.
    pub fn for_isa(isa: Isa) -> Option<&'static Kernels> {
        match isa {
            Isa::Scalar => Some(&scalar::KERNELS),
            Isa::Neon => neon(),
            Isa::Avx2 => avx2(),
            Isa::Avx512 => avx512(),
        }
    }

    /// The instruction set of this table.
    pub fn isa(&self) -> Isa {
        self.isa
    }
}

impl fmt::Debug for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernels").field("isa", &self.isa).finish_non_exhaustive()
    }
}

fn detected() -> &'static Kernels {
    avx512().or_else(avx2).or_else(neon).unwrap_or(&scalar::KERNELS)
}

#[cfg(not(target_arch = "x86_64"))]
fn avx2() -> Option<&'static Kernels> {
    None
}

#[cfg(not(target_arch = "x86_64"))]
fn avx512() -> Option<&'static Kernels> {
    None
}

#[cfg(not(all(target_arch = "aarch64", target_endian = "little")))]
fn neon() -> Option<&'static Kernels> {
    None
}
