//! Extra code and sign code, block by block.

use super::distance::add_lanes;
use crate::distance::LANES;
use crate::excode::{BLOCK, ex_bytes, unpack_block};

pub(super) fn ex_dot(width: u32, q: &[f32], code: &[u8]) -> f32 {
    let mut lanes = [0.0; LANES];
    let mut levels = [0; BLOCK];
    let (blocks, _) = q.as_chunks::<BLOCK>();
    for (q, code) in blocks.iter().zip(code.chunks_exact(ex_bytes(width, BLOCK))) {
        unpack_block(width, code, &mut levels);
        for (j, (&q, &level)) in q.iter().zip(&levels).enumerate() {
            lanes[j % LANES] = f32::from(level).mul_add(q, lanes[j % LANES]);
        }
    }
    add_lanes(lanes)
}

pub(super) fn sign_dot(q: &[f32], bits: &[u8]) -> f32 {
    let mut lanes = [0.0; LANES];
    for (j, &q) in q.iter().enumerate() {
        let positive = bits[j / 8] >> (j % 8) & 1 == 1;
        lanes[j % LANES] += if positive { q } else { -q };
    }
    add_lanes(lanes)
}

pub(super) fn code_score(a: &[f32], t: f32, half: f32) -> (f32, f32) {
    let (mut product, mut square) = ([0.0; LANES], [0.0; LANES]);
    for (j, &a) in a.iter().enumerate() {
        let level = (t * a).floor();
        let v = if level < half - 1.0 { level } else { half - 1.0 } + 0.5;
        product[j % LANES] = v.mul_add(a, product[j % LANES]);
        square[j % LANES] = v.mul_add(v, square[j % LANES]);
    }
    (add_lanes(product), add_lanes(square))
}
