//! Walsh-Hadamard transform, one stage after the other.

pub(crate) fn fwht(x: &mut [f32]) {
    let mut h = 1;
    while h < x.len() {
        for block in x.chunks_exact_mut(2 * h) {
            let (low, high) = block.split_at_mut(h);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        h *= 2;
    }
}
