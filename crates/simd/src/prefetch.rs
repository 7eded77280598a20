//! Asks for bytes ahead of their use.
//!
//! A scan out of cache waits for memory at the start of every batch: the processor's own prefetcher
//! stops at page borders and starts anew with every list. A hint two batches ahead hides that.

const LINE: usize = 64;

/// Brings `bytes` towards the cache, where the processor has such an instruction. Only a hint: it
/// has no effect on any result.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction (SSE, part of every x86-64) reads nothing into the program and
        // faults on no address; this one lies in a live slice besides.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, LINE);
}
