//! Page-aligned memory, and a slab of it that a kernel may write to.
//!
//! ```text
//! AlignedBuf   one owner, a plain slice, 4096-aligned
//! Slab         |slot 0 pages|slot 1 pages|...|slot n-1 pages|   one allocation, registrable;
//!              reached by raw pointer, since the kernel writes some slots while others are read
//! ```

use std::alloc::{self, Layout};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

use crate::{PAGE, ReadError};

/// Zeroed memory aligned to [`PAGE`], fit for direct reads. A large one takes no memory until it is
/// written to.
pub struct AlignedBuf {
    ptr: NonNull<u8>,
    len: usize,
    /// What was allocated: up to a page before `ptr`.
    start: NonNull<u8>,
}

impl AlignedBuf {
    /// `pages * 4096` zero bytes.
    ///
    /// # Errors
    /// [`ReadError::Memory`] when the system has no more.
    pub fn zeroed(pages: usize) -> Result<AlignedBuf, ReadError> {
        let refused = || ReadError::Memory { bytes: pages.saturating_mul(PAGE) };
        let len = pages.checked_mul(PAGE).ok_or_else(refused)?;
        let layout = Self::layout(len).ok_or_else(refused)?;
        // SAFETY: `layout` has at least PAGE bytes, so its size is not zero.
        let start = NonNull::new(unsafe { alloc::alloc_zeroed(layout) }).ok_or_else(refused)?;
        let aligned = start.as_ptr().map_addr(|address| address.next_multiple_of(PAGE));
        Ok(AlignedBuf { ptr: NonNull::new(aligned).ok_or_else(refused)?, len, start })
    }

    /// A page more than asked for, to align in. An allocator that is asked for alignment fills what
    /// it returns with zeros, which touches all of it; unaligned, it takes pages from the system
    /// that are zero as they come.
    fn layout(len: usize) -> Option<Layout> {
        Layout::from_size_align(len.checked_add(PAGE)?, 1).ok()
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: less than a page after `start`, so `len` initialised bytes that this value owns
        // follow.
        unsafe { slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes this the only access.
        unsafe { slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        if let Some(layout) = Self::layout(self.len) {
            // SAFETY: allocated in `zeroed` with this same layout, and freed only here.
            unsafe { alloc::dealloc(self.start.as_ptr(), layout) }
        }
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuf({} bytes)", self.len)
    }
}

// SAFETY: an AlignedBuf owns its bytes as a Vec<u8> does; no other pointer to them is kept.
unsafe impl Send for AlignedBuf {}
// SAFETY: through a shared reference the bytes can only be read.
unsafe impl Sync for AlignedBuf {}

/// Buffers for a fixed number of slots. Who may touch which slot when is the owner's business.
pub(crate) struct Slab {
    base: NonNull<u8>,
    slot_bytes: usize,
    /// Keeps the memory; absent when it has been leaked.
    owner: Option<AlignedBuf>,
}

impl Slab {
    /// `slot_bytes` is a whole number of pages.
    pub(crate) fn zeroed(slots: usize, slot_bytes: usize) -> Result<Slab, ReadError> {
        let owner = AlignedBuf::zeroed(slots * (slot_bytes / PAGE))?;
        Ok(Slab { base: owner.ptr, slot_bytes, owner: Some(owner) })
    }

    /// The buffer of a slot, to be handed to the kernel.
    pub(crate) fn slot(&self, slot: u32) -> *mut u8 {
        self.base.as_ptr().wrapping_add(slot as usize * self.slot_bytes)
    }

    /// The first `len` bytes of a slot.
    ///
    /// # Safety
    /// `slot` exists, `len` is at most its size, and nothing writes to it while the slice lives.
    pub(crate) unsafe fn bytes(&self, slot: u32, len: usize) -> &[u8] {
        // SAFETY: inside the allocation, initialised by `zeroed`, and unwritten as the caller
        // promises.
        unsafe { slice::from_raw_parts(self.slot(slot), len) }
    }

    /// Start and length of the whole, for registration.
    pub(crate) fn whole(&self) -> (*mut u8, usize) {
        (self.base.as_ptr(), self.owner.as_ref().map_or(0, |owner| owner.len))
    }

    /// Never frees the memory, because the kernel may still write to it.
    pub(crate) fn leak(&mut self) {
        std::mem::forget(self.owner.take());
    }
}

// SAFETY: the slab owns its memory; only raw pointers to it leave, and their use is the caller's
// to justify.
unsafe impl Send for Slab {}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zero_and_as_long_as_asked_for() {
        for pages in [0, 1, 2, 63, 64] {
            let mut buf = AlignedBuf::zeroed(pages).unwrap();
            assert_eq!(buf.as_ptr().addr() % PAGE, 0);
            assert_eq!(buf.len(), pages * PAGE);
            assert!(buf.iter().all(|&byte| byte == 0));
            buf.fill(0xff);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_large_buffer_takes_no_memory_until_it_is_used() {
        let resident = || {
            let words = std::fs::read_to_string("/proc/self/statm").unwrap();
            words.split(' ').nth(1).unwrap().parse::<usize>().unwrap()
        };
        let pages = 128 << 10;
        let before = resident();
        let mut buf = AlignedBuf::zeroed(pages).unwrap();
        assert!(resident() < before + pages / 4);
        buf.fill(1);
        assert!(resident() > before + pages / 2);
    }
}
