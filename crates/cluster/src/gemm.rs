//! The only place that calls the matrix library.
//!
//! ```text
//!            dim                    dim                     nb
//!        ┌─────────┐            ┌─────────┐             ┌─────────┐
//!     na │    a    │   x     nb │    b    │ᵀ    =    na │   out   │
//!        └─────────┘            └─────────┘             └─────────┘
//! ```
//!
//! Rows are vectors on both sides, as they lie in memory everywhere else. One call runs on one
//! thread: callers cut their rows into tiles and run the tiles under a pool of their own, so that a
//! product never competes with the loop around it for threads.

/// Inner products of all rows of `a` with all rows of `b`: `out[i * nb + j] = <a_i, b_j>`, in f32.
///
/// `a` holds `na` rows of `dim` values, `b` holds `nb` rows, `out` holds `na * nb` values and is
/// overwritten. Sums are rounded in an order that depends on the shapes and the CPU; each is within
/// `dim · 2⁻²⁴ · |a_i| |b_j|` (first order) of the true product.
///
/// # Panics
/// When `dim` is 0 or a length is not as stated: both are mistakes of the caller.
#[allow(unsafe_code)]
pub fn dots(a: &[f32], b: &[f32], dim: usize, out: &mut [f32]) {
    assert!(dim > 0, "dots: dim is 0");
    let (na, nb) = (a.len() / dim, b.len() / dim);
    assert_eq!(a.len(), na * dim, "dots: a is not a whole number of rows");
    assert_eq!(b.len(), nb * dim, "dots: b is not a whole number of rows");
    assert_eq!(Some(out.len()), na.checked_mul(nb), "dots: out is not na x nb");
    if out.is_empty() {
        return;
    }
    let (row, out_row) = (dim as isize, nb as isize);
    // SAFETY: `out` holds na*nb values written at i*nb + j, `a` holds na*dim values read at
    // i*dim + c and `b` nb*dim values read at j*dim + c, for i < na, j < nb, c < dim: asserted
    // above. `out` is a unique borrow, so it overlaps neither input; it is only written.
    unsafe {
        gemm::gemm(
            na,
            nb,
            dim,
            out.as_mut_ptr(),
            1,
            out_row,
            false,
            a.as_ptr(),
            1,
            row,
            b.as_ptr(),
            row,
            1,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}
