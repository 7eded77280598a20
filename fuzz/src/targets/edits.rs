//! Edits to a good file, so that an input of a few bytes spoils a file of many.
//!
//! ```text
//! edit, 7 bytes   op | place u16 | value u32      place is a share of the file, in 65536ths
//! ```

/// `bytes` after the edits that `script` spells.
pub(super) fn edited(bytes: &[u8], script: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for &[op, p0, p1, v0, v1, v2, v3] in script.as_chunks::<7>().0 {
        let value = u32::from_le_bytes([v0, v1, v2, v3]);
        let place = usize::from(u16::from_le_bytes([p0, p1]));
        let at = (place * out.len()) >> 16;
        let aligned = |to: usize| at / to * to;
        match op % 8 {
            0 => overwrite(&mut out, at, &[v0]),
            1 => overwrite(&mut out, aligned(4), &value.to_le_bytes()),
            2 => overwrite(&mut out, aligned(8), &u64::from(value).to_le_bytes()),
            3 => overwrite(&mut out, aligned(8), &i64::from(value as i32).to_le_bytes()),
            4 => {
                let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -0.0, 1e-45];
                let float = special[value as usize % special.len()];
                overwrite(&mut out, aligned(4), &float.to_le_bytes());
            }
            5 => out.truncate(at),
            6 => out.extend(std::iter::repeat_n(v0, usize::from(v1))),
            _ => out[at..].iter_mut().for_each(|byte| *byte = v0),
        }
    }
    out
}

fn overwrite(out: &mut [u8], at: usize, bytes: &[u8]) {
    out[at..].iter_mut().zip(bytes).for_each(|(old, new)| *old = *new);
}
