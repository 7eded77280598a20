//! A file whose every word tells where it belongs, opened in every way that works here.

use std::path::PathBuf;
use std::sync::Arc;

use pageio::{Backend, Completion, Direct, OpenError, OpenOptions, PAGE, PageFile, PageReader};
use tempfile::TempDir;

pub(crate) struct Fixture {
    pub(crate) path: PathBuf,
    pub(crate) pages: u64,
    _dir: TempDir,
}

/// Byte `at` of page `page` in a fixture.
pub(crate) fn page_bytes(page: u64) -> Vec<u8> {
    (0..PAGE as u64 / 8).flat_map(|word| mix(page * 512 + word).to_le_bytes()).collect()
}

pub(crate) fn mix(z: u64) -> u64 {
    let z = (z ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ (z >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) ^ z
}

impl Fixture {
    /// On the disk that the build uses, since `/tmp` is often memory.
    pub(crate) fn new(pages: u64) -> Fixture {
        Fixture::within(env!("CARGO_TARGET_TMPDIR"), pages)
    }

    pub(crate) fn within(place: &str, pages: u64) -> Fixture {
        let dir = tempfile::tempdir_in(place).unwrap();
        let path = dir.path().join("pages.bin");
        std::fs::write(&path, (0..pages).flat_map(page_bytes).collect::<Vec<_>>()).unwrap();
        Fixture { path, pages, _dir: dir }
    }

    pub(crate) fn open(&self, options: &OpenOptions) -> Arc<PageFile> {
        Arc::new(PageFile::open(&self.path, options).unwrap())
    }

    /// The file opened on every backend, direct and buffered. Rings and AIO may be forbidden here;
    /// with `PAGEIO_REQUIRE_RING` in the environment that is a failure.
    pub(crate) fn every_way(&self, slots: u32, max_pages_per_read: u32) -> Vec<Arc<PageFile>> {
        self.every_way_with(&OpenOptions { slots, max_pages_per_read, ..OpenOptions::default() })
    }

    /// As `every_way`, with the other options as they are given.
    pub(crate) fn every_way_with(&self, options: &OpenOptions) -> Vec<Arc<PageFile>> {
        let mut files = Vec::new();
        for backend in [Backend::IoUring, Backend::Aio, Backend::Pread, Backend::Memory] {
            for direct in [Direct::Auto, Direct::Off] {
                let options = OpenOptions { backend, direct, ..options.clone() };
                match PageFile::open(&self.path, &options) {
                    Ok(file) => files.push(Arc::new(file)),
                    Err(OpenError::Backend { .. })
                        if std::env::var_os("PAGEIO_REQUIRE_RING").is_none() => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
        files
    }

    /// As `every_way`, without the ways that no longer look at the file.
    pub(crate) fn every_disk_way(&self, slots: u32, max_pages_per_read: u32) -> Vec<Arc<PageFile>> {
        let mut files = self.every_way(slots, max_pages_per_read);
        files.retain(|file| file.backend() != Backend::Memory);
        files
    }
}

/// For assertion messages.
pub(crate) fn name(file: &PageFile) -> String {
    format!("{} {}", file.backend(), if file.direct() { "direct" } else { "buffered" })
}

/// Waits until nothing is in flight.
pub(crate) fn collect_all(reader: &mut dyn PageReader) -> Vec<Completion> {
    let mut done = Vec::new();
    while reader.in_flight() > 0 {
        let before = done.len();
        let count = reader.wait(&mut done).unwrap();
        assert!(count > 0, "wait came back with nothing");
        assert_eq!(done.len(), before + count);
    }
    done
}
