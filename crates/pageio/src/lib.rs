//! Aligned pages from a file, many at once; knows nothing of vectors.
//!
//! A search wants dozens of 4 KiB pages in the device at a time and wants to compute while they
//! travel. So a thread queues reads, hands them to the kernel in one go, and collects whichever
//! arrives first:
//!
//! ```text
//! PageFile (shared)                 PageReader (one per thread)
//! +----------------------+          submit(tag, page, n)   queued, nothing in the device yet
//! | file, O_DIRECT or not | reader() flush()                everything queued -> kernel
//! | backend, proved       | ------> poll / wait             completions, in any order, by tag
//! | by a real read        |         bytes(slot)             the pages, until release(slot)
//! +----------------------+          release(slot)           the buffer can be read into again
//! ```
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! let file = Arc::new(pageio::PageFile::from_memory(vec![7; 8 * pageio::PAGE])?);
//! let mut reader = file.reader()?;
//! let mut done = Vec::new();
//! reader.submit(1, 3, 1)?; // tag 1: page 3
//! reader.submit(2, 5, 1)?; // tag 2: page 5
//! reader.flush()?;
//! while reader.in_flight() > 0 {
//!     reader.wait(&mut done)?;
//! }
//! for completion in done {
//!     completion.result?;
//!     assert_eq!(reader.bytes(completion.slot), [7; pageio::PAGE]);
//!     reader.release(completion.slot);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Backends: an io_uring or a kernel AIO context per reader (Linux), a thread pool per file that
//! calls `pread`, and memory. [`Backend::Auto`] takes the first that reads a page, and
//! [`PageFile::why`] tells what was skipped. A device that does not answer becomes an error. It is not
//! a cache and not an async runtime, and it never writes.

mod options;
mod error;
mod reader;
mod file;
mod direct;
mod buffer;
mod request;
mod slots;
mod watchdog;
mod choose;
mod refusal;
#[cfg(target_os = "linux")]
mod locked;
#[cfg(target_os = "linux")]
mod uring;
#[cfg(target_os = "linux")]
mod aio;
mod pool;
mod mem;
#[cfg_attr(not(feature = "fault-injection"), path = "fault/off.rs")]
mod fault;
mod probe;
mod trim;

pub use buffer::AlignedBuf;
pub use error::{OpenError, OptionError, ReadError};
#[cfg(feature = "fault-injection")]
pub use fault::{Fault, Faults};
pub use file::PageFile;
pub use options::{Backend, Direct, OpenOptions, most_slots};
pub use probe::{ProbeResult, probe};
pub use reader::{Completion, PageReader, Slot};
pub use trim::return_freed_memory;

/// Bytes in a page, and the alignment of every buffer and file offset.
pub const PAGE: usize = 4096;
