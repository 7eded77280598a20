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

/// Zeroed memory aligned to [`PAGE`], fit for direct reads.
pub struct AlignedBuf {
    ptr: NonNull<u8>,
    len: usize,
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
        let ptr = unsafe { alloc::alloc_zeroed(layout) };
        Ok(AlignedBuf { ptr: NonNull::new(ptr).ok_or_else(refused)?, len })
    }

    /// At least a page, since an allocation of nothing has no address.
    fn layout(len: usize) -> Option<Layout> {
        Layout::from_size_align(len.max(PAGE), PAGE).ok()
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `ptr` is the start of `len` initialised bytes that this value owns.
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
            unsafe { alloc::dealloc(self.ptr.as_ptr(), layout) }
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
