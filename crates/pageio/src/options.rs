//! How to open a page file.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::{OptionError, PAGE};

/// What carries the reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// The first of `io_uring`, `aio` and `pread` that reads a page of the file. For a file without
    /// `O_DIRECT`, `aio` is skipped.
    #[default]
    Auto,
    /// One io_uring per reader: least CPU per read. Linux 5.6 or later, where it is allowed.
    IoUring,
    /// One kernel AIO context per reader, Linux: nearly as good, and allowed where containers forbid
    /// io_uring. Without `O_DIRECT` it blocks while it submits.
    Aio,
    /// A thread pool per file that calls `pread`: runs anywhere, costs more CPU.
    Pread,
    /// The whole file read into memory at open.
    Memory,
}

/// Whether reads go around the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Direct {
    /// `O_DIRECT` where a real read with it succeeds, the page cache elsewhere.
    #[default]
    Auto,
    /// `O_DIRECT`, or an error.
    On,
    /// Through the page cache: right for a file that fits in memory and is read again and again.
    Off,
}

/// Options of [`PageFile::open`](crate::PageFile::open).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// What carries the reads.
    pub backend: Backend,
    /// Whether reads go around the page cache.
    pub direct: Direct,
    /// Most reads in flight or unreleased per reader, 1 to 16384; 64 by default.
    pub slots: u32,
    /// Most pages one read may ask for, 1 to 1024; 1 by default. A reader's buffers take
    /// `slots * max_pages_per_read * 4096` bytes of addresses, and of memory what its deepest queue
    /// so far has touched.
    pub max_pages_per_read: u32,
    /// How long a [`wait`](crate::PageReader::wait) may last without any read ending before the
    /// device counts as dead; 30 seconds by default, `None` for ever.
    pub timeout: Option<Duration>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            backend: Backend::Auto,
            direct: Direct::Auto,
            slots: 64,
            max_pages_per_read: 1,
            timeout: Some(Duration::from_secs(30)),
        }
    }
}

/// A kernel ring takes twice as many. Far beyond what any device works on at a time: for readers
/// that put no bound on what is in flight.
const MAX_SLOTS: u32 = 16_384;
const MAX_PAGES_PER_READ: u32 = 1024;
/// The kernel registers at most 1 GiB as one buffer.
const MAX_BUFFER_BYTES: u64 = 1 << 30;

impl OpenOptions {
    pub(crate) fn check(&self) -> Result<(), OptionError> {
        if !(1..=MAX_PAGES_PER_READ).contains(&self.max_pages_per_read) {
            return Err(OptionError {
                option: "max_pages_per_read",
                found: self.max_pages_per_read.to_string(),
                expected: "1 to 1024",
            });
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(OptionError {
                option: "timeout",
                found: "0 s".to_owned(),
                expected: "more than 0, or none",
            });
        }
        check_slots(self.slots, self.max_pages_per_read)
    }
}

/// The most slots a reader of a file can have whose reads take up to `max_pages_per_read` pages.
pub fn most_slots(max_pages_per_read: u32) -> u32 {
    let by_bytes = MAX_BUFFER_BYTES / (u64::from(max_pages_per_read.max(1)) * PAGE as u64);
    MAX_SLOTS.min(by_bytes.max(1) as u32)
}

/// Also for a reader with its own number of slots.
pub(crate) fn check_slots(slots: u32, max_pages_per_read: u32) -> Result<(), OptionError> {
    if !(1..=MAX_SLOTS).contains(&slots) {
        return Err(OptionError {
            option: "slots",
            found: slots.to_string(),
            expected: "1 to 16384",
        });
    }
    let bytes = u64::from(slots) * u64::from(max_pages_per_read) * PAGE as u64;
    if bytes > MAX_BUFFER_BYTES {
        return Err(OptionError {
            option: "slots times max_pages_per_read",
            found: format!("{bytes} bytes of buffers"),
            expected: "at most 1 GiB",
        });
    }
    Ok(())
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Backend::Auto => "auto",
            Backend::IoUring => "io_uring",
            Backend::Aio => "aio",
            Backend::Pread => "pread",
            Backend::Memory => "memory",
        })
    }
}

impl FromStr for Backend {
    type Err = OptionError;

    fn from_str(name: &str) -> Result<Self, OptionError> {
        match name {
            "auto" => Ok(Backend::Auto),
            "io_uring" => Ok(Backend::IoUring),
            "aio" => Ok(Backend::Aio),
            "pread" => Ok(Backend::Pread),
            "memory" => Ok(Backend::Memory),
            _ => Err(OptionError {
                option: "backend",
                found: name.to_owned(),
                expected: "auto, io_uring, aio, pread or memory",
            }),
        }
    }
}

impl fmt::Display for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Direct::Auto => "auto",
            Direct::On => "on",
            Direct::Off => "off",
        })
    }
}

impl FromStr for Direct {
    type Err = OptionError;

    fn from_str(name: &str) -> Result<Self, OptionError> {
        match name {
            "auto" => Ok(Direct::Auto),
            "on" => Ok(Direct::On),
            "off" => Ok(Direct::Off),
            _ => Err(OptionError {
                option: "direct",
                found: name.to_owned(),
                expected: "auto, on or off",
            }),
        }
    }
}
