//! What a query cost: the counters of the paper's Table 1, and where the time went.

use std::ops::AddAssign;

use serde::Serialize;

/// Counters of one query, or their sums over several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SearchStats {
    /// Lists visited.
    pub lists_probed: u64,
    /// Prefix codes scanned.
    pub codes_scanned: u64,
    /// Codes whose lower bound was within the threshold when they were scanned.
    pub survivors: u64,
    /// Pages with at least one survivor, each list's visit counted for itself.
    pub page_candidates: u64,
    /// Reads issued to the device, id reads included.
    pub issued: u64,
    /// 4 KiB pages read (a record of two pages counts 2), id pages included.
    pub pages: u64,
    /// Bytes read: pages × 4096.
    pub bytes: u64,
    /// Page candidates discarded before any read.
    pub dropped: u64,
    /// Reads none of whose members still passed the threshold when they came back.
    pub wasted: u64,
    /// Records re-ranked.
    pub reranked: u64,
    /// Reads that completed before the scan ended.
    pub completed_in_scan: u64,
    /// Nanoseconds from the query to its result.
    pub total_ns: u64,
    /// Nanoseconds to rotate, build tables and find the lists.
    pub route_ns: u64,
    /// Nanoseconds from the first list to the end of the scan, harvests included.
    pub scan_ns: u64,
    /// Nanoseconds from the end of the scan to the last result.
    pub drain_ns: u64,
    /// Nanoseconds blocked on reads.
    pub wait_ns: u64,
    /// Sum over time of the reads in flight, in read-nanoseconds.
    pub inflight_ns: u64,
    /// Nanoseconds from the first submit to the last completion.
    pub io_span_ns: u64,
}

impl AddAssign for SearchStats {
    fn add_assign(&mut self, o: Self) {
        self.lists_probed += o.lists_probed;
        self.codes_scanned += o.codes_scanned;
        self.survivors += o.survivors;
        self.page_candidates += o.page_candidates;
        self.issued += o.issued;
        self.pages += o.pages;
        self.bytes += o.bytes;
        self.dropped += o.dropped;
        self.wasted += o.wasted;
        self.reranked += o.reranked;
        self.completed_in_scan += o.completed_in_scan;
        self.total_ns += o.total_ns;
        self.route_ns += o.route_ns;
        self.scan_ns += o.scan_ns;
        self.drain_ns += o.drain_ns;
        self.wait_ns += o.wait_ns;
        self.inflight_ns += o.inflight_ns;
        self.io_span_ns += o.io_span_ns;
    }
}
