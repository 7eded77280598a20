//! FastScan one code pair at a time: the 16 table entries of a group are looked up one by one.

use crate::fastscan::{BATCH, GROUP};

pub(super) fn scan8(codes: &[u8], lut: &[u8], sums: &mut [u32; BATCH]) {
    *sums = [0; BATCH];
    let (groups, _) = codes.as_chunks::<GROUP>();
    let (tables, _) = lut.as_chunks::<GROUP>();
    for (group, table) in groups.iter().zip(tables) {
        add_group(group, &table.map(u32::from), sums);
    }
}

pub(super) fn scan16(codes: &[u8], lut: &[u8], sums: &mut [u32; BATCH]) {
    *sums = [0; BATCH];
    let (quads, _) = codes.as_chunks::<{ 4 * GROUP }>();
    let (tables, _) = lut.as_chunks::<{ 8 * GROUP }>();
    for (quad, tables) in quads.iter().zip(tables) {
        for (g, group) in quad.as_chunks::<GROUP>().0.iter().enumerate() {
            let entry = |v| u16::from_le_bytes([tables[16 * g + v], tables[64 + 16 * g + v]]);
            add_group(group, &std::array::from_fn(|v| u32::from(entry(v))), sums);
        }
    }
}

fn add_group(group: &[u8; GROUP], table: &[u32; GROUP], sums: &mut [u32; BATCH]) {
    let (low, high) = sums.split_at_mut(GROUP);
    for ((low, high), pair) in low.iter_mut().zip(high).zip(group) {
        *low += table[usize::from(pair & 15)];
        *high += table[usize::from(pair >> 4)];
    }
}
