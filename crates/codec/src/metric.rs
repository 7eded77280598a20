//! What a code can be asked: which distance, and which of the two estimators of it.

/// The distance a code estimates. Cosine is [`Metric::L2`] on unit vectors, made by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Squared Euclidean distance.
    L2,
    /// Minus the inner product.
    Ip,
}

/// How `<r, y>` is estimated from the prefix of a sign code, and how wide its bound is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Estimator {
    /// `(N² / A_m) S_m(y)` with the standard deviation of each vector: `epsilon` counts the same
    /// for every prefix length and every vector.
    PerVector,
    /// The paper's: `(N² / A)(P / m) S_m(y)` (Eq. 2) with the half-width `epsilon N Y / sqrt(m)`
    /// (Theorem 3.1), the same for all vectors of a norm.
    Paper,
}
