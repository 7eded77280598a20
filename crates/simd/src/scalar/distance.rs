//! Distances over 16 explicit lanes.

use crate::distance::{LANES, RawType};

pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    sum(a, b.iter().copied(), dot_step)
}

pub(super) fn l2(a: &[f32], b: &[f32]) -> f32 {
    sum(a, b.iter().copied(), l2_step)
}

pub(super) fn dot_raw(ty: RawType, q: &[f32], x: &[u8]) -> f32 {
    sum_raw(ty, q, x, dot_step)
}

pub(super) fn l2_raw(ty: RawType, q: &[f32], x: &[u8]) -> f32 {
    sum_raw(ty, q, x, l2_step)
}

fn dot_step(lane: f32, a: f32, b: f32) -> f32 {
    a.mul_add(b, lane)
}

fn l2_step(lane: f32, a: f32, b: f32) -> f32 {
    (a - b).mul_add(a - b, lane)
}

fn sum_raw(ty: RawType, q: &[f32], x: &[u8], step: impl Fn(f32, f32, f32) -> f32) -> f32 {
    match ty {
        RawType::F32 => sum(q, x.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)), step),
        RawType::F16 => {
            sum(q, x.as_chunks().0.iter().map(|&b| half_to_f32(u16::from_le_bytes(b))), step)
        }
        RawType::U8 => sum(q, x.iter().map(|&b| f32::from(b)), step),
        RawType::I8 => sum(q, x.iter().map(|&b| f32::from(b.cast_signed())), step),
    }
}

fn sum(a: &[f32], b: impl Iterator<Item = f32>, step: impl Fn(f32, f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    for (j, (&a, b)) in a.iter().zip(b).enumerate() {
        lanes[j % LANES] = step(lanes[j % LANES], a, b);
    }
    add_lanes(lanes)
}

/// Adds the lanes in the fixed tree: 8 apart, then 4, 2, 1.
pub(super) fn add_lanes(mut lanes: [f32; LANES]) -> f32 {
    for apart in [8, 4, 2, 1] {
        for l in 0..apart {
            lanes[l] += lanes[l + apart];
        }
    }
    lanes[0]
}

/// Widens a half-precision number, which is exact: move exponent and fraction to their places and
/// scale by the difference of the biases, which also normalises subnormals.
pub(crate) fn half_to_f32(half: u16) -> f32 {
    let bits = u32::from(half);
    let magnitude = (bits & 0x7fff) << 13;
    let scaled = if bits & 0x7c00 == 0x7c00 {
        f32::from_bits(magnitude | 0x7f80_0000)
    } else {
        f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23)
    };
    f32::from_bits(scaled.to_bits() | (bits & 0x8000) << 16)
}
