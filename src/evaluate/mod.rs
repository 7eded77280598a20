//! How good and how fast an index answers: recall against ground truth, throughput, latency, and
//! what each query cost.
//!
//! ```text
//! ground_truth ── exact.rs ─────┐
//! Truth ── recall.rs ───────────┤
//! Trial::measure ── run.rs ─────┼─ BenchRow: one setting, measured
//! Trial::operating_point ───────┘  (operating_point.rs: the least nprobe that reaches a recall)
//!
//! Tuning ── tuning.rs           the cheapest search for each recall, kept in the index
//! Trial::list_recall ── lists.rs   whether the coarse quantizer finds the nearest lists (§4.2)
//! Pair ── pairs.rs              what bounds make of a vector and a query (Appendix A.4, §4.4)
//! Agreement ── agreement.rs     whether runs found the same (Appendix B)
//! ```
//! What the numbers of a [`BenchRow`] mean, for every harness that reads them:
//! * recall@k is tie-aware: see [`Truth::recall`];
//! * QPS is queries divided by the wall time of the batch, the median over the rounds;
//! * latencies are per query, from query to result within the batch; percentiles are by nearest
//!   rank over all queries of all rounds;
//! * counters are means per query over all rounds.

mod exact;
mod recall;
mod run;
mod operating_point;
mod tuning;
mod lists;
mod pairs;
mod agreement;

pub use agreement::Agreement;
pub use exact::{Exact, ground_truth};
pub use operating_point::{OperatingPoint, RecallCurve};
pub use pairs::{BoundKind, Pair, neighbour_pairs, synthetic_pairs};
pub use recall::{Truth, TruthError};
pub use run::{BenchRow, Repeat, Setting, Trial};
pub use tuning::{TunedPoint, Tuning, with_self, without_self};
