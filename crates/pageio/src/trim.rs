//! Giving freed memory back to the system, for work that keeps within a limit.

/// Asks the allocator to return the pages it holds but nobody uses. Without it a process stays as
/// large as its largest moment: glibc keeps what threads have freed. Does nothing elsewhere.
pub fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: malloc_trim takes no pointer, touches only memory that nobody has allocated, and may
    // be called from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
