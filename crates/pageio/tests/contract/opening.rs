//! What can be opened, in which mode, and what is said when it cannot.

use std::path::Path;
use std::time::Duration;

use pageio::{Backend, Direct, OpenError, OpenOptions, PAGE, PageFile};

use crate::fixture::{Fixture, collect_all, page_bytes};

#[test]
fn a_file_that_is_no_whole_number_of_pages_is_refused() {
    let fixture = Fixture::new(3);
    let file = std::fs::File::options().write(true).open(&fixture.path).unwrap();
    for len in [3 * PAGE as u64 - 1, 2 * PAGE as u64 + 2048, 1] {
        file.set_len(len).unwrap();
        let error = PageFile::open(&fixture.path, &OpenOptions::default()).err().unwrap();
        assert!(matches!(error, OpenError::Length { found, .. } if found == len), "{error}");
        assert!(error.to_string().contains("pages.bin"), "{error}");
    }
    assert!(PageFile::from_memory(vec![0; 5000]).is_err());
}

#[test]
fn an_empty_file_opens_and_has_no_pages() {
    let fixture = Fixture::new(0);
    for file in fixture.every_way(2, 1) {
        assert_eq!(file.pages(), 0);
        assert!(file.reader().unwrap().submit(0, 0, 1).is_err());
        assert!(pageio::probe(&file, 1, std::time::Duration::ZERO, 0).is_err());
    }
}

#[test]
fn what_is_not_a_file_is_refused() {
    let options = OpenOptions::default();
    let missing = PageFile::open(Path::new("/nonexistent/pages.bin"), &options).err().unwrap();
    assert!(matches!(missing, OpenError::Open { .. }), "{missing}");
    let folder = PageFile::open(Path::new(env!("CARGO_TARGET_TMPDIR")), &options).err().unwrap();
    assert!(matches!(folder, OpenError::Kind { .. }), "{folder}");
}

#[test]
fn automatic_choices_are_resolved_and_a_skipped_one_is_explained() {
    let fixture = Fixture::new(2);
    let file = fixture.open(&OpenOptions::default());
    let skipped = match file.backend() {
        Backend::IoUring => 0,
        Backend::Aio => 1,
        Backend::Pread => 2,
        other => panic!("{other}"),
    };
    let skipped = skipped + usize::from(!file.direct());
    assert_eq!(file.why().len(), skipped, "{:?}", file.why());
    let buffered = fixture.open(&OpenOptions { direct: Direct::Off, ..OpenOptions::default() });
    assert!(!buffered.direct());
}

#[test]
fn aio_through_the_page_cache_runs_if_asked_for_and_says_that_it_blocks() {
    let fixture = Fixture::new(2);
    let [direct, buffered] = [Direct::Auto, Direct::Off].map(|direct| {
        let options = OpenOptions { backend: Backend::Aio, direct, ..OpenOptions::default() };
        PageFile::open(&fixture.path, &options)
    });
    let (Ok(direct), Ok(buffered)) = (direct, buffered) else { return };
    assert_eq!((direct.backend(), buffered.backend()), (Backend::Aio, Backend::Aio));
    assert!(!direct.direct() || direct.why().is_empty(), "{:?}", direct.why());
    assert!(buffered.why()[0].contains("while it submits"), "{:?}", buffered.why());
}

#[test]
fn a_file_in_memory_is_read_through_the_page_cache_and_says_so() {
    let Some(tmpfs) = tmpfs() else { return };
    let fixture = Fixture::within(&tmpfs, 8);
    let file = fixture.open(&OpenOptions::default());
    assert!(!file.direct());
    assert!(file.why()[0].contains("tmpfs"), "{:?}", file.why());
    let mut reader = file.reader().unwrap();
    reader.submit(5, 5, 1).unwrap();
    let done = collect_all(reader.as_mut());
    assert!(reader.bytes(done[0].slot) == page_bytes(5));

    let demanded = OpenOptions { direct: Direct::On, ..OpenOptions::default() };
    let error = PageFile::open(&fixture.path, &demanded).err().unwrap();
    assert!(error.to_string().contains("direct = auto or off"), "{error}");
}

/// A writable tmpfs, if this machine has one.
fn tmpfs() -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
    let places = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mut tmpfs = places.filter(|fields| fields[2] == "tmpfs").map(|fields| fields[1].to_owned());
    tmpfs.find(|place| tempfile::tempdir_in(place).is_ok())
}

#[test]
fn absurd_options_are_refused_by_name() {
    let fixture = Fixture::new(1);
    for (slots, pages, named) in [
        (0, 1, "slots"),
        (1 << 20, 1, "slots"),
        (1, 0, "max_pages_per_read"),
        (1, 1 << 20, "max_pages_per_read"),
        (4096, 1024, "1 GiB"),
        (16_385, 1, "16384"),
    ] {
        let options = OpenOptions { slots, max_pages_per_read: pages, ..OpenOptions::default() };
        let error = PageFile::open(&fixture.path, &options).err().unwrap();
        assert!(matches!(error, OpenError::Option(_)), "{error}");
        assert!(error.to_string().contains(named), "{error}");
    }
    let hasty = OpenOptions { timeout: Some(Duration::ZERO), ..OpenOptions::default() };
    assert!(PageFile::open(&fixture.path, &hasty).err().unwrap().to_string().contains("timeout"));
    let file = fixture.open(&OpenOptions::default());
    assert!(file.reader_with_slots(0).is_err());
    assert!(file.reader_with_slots(16_384).is_ok());
    for pages in [1, 2, 17, 1024] {
        let slots = pageio::most_slots(pages);
        let most =
            |slots| OpenOptions { slots, max_pages_per_read: pages, ..OpenOptions::default() };
        assert!(PageFile::open(&fixture.path, &most(slots)).is_ok(), "{pages}");
        assert!(PageFile::open(&fixture.path, &most(slots + 1)).is_err(), "{pages}");
    }
}

#[test]
fn names_of_modes_are_read_as_they_are_written() {
    for backend in [Backend::Auto, Backend::IoUring, Backend::Aio, Backend::Pread, Backend::Memory]
    {
        assert_eq!(backend.to_string().parse::<Backend>().unwrap(), backend);
    }
    for direct in [Direct::Auto, Direct::On, Direct::Off] {
        assert_eq!(direct.to_string().parse::<Direct>().unwrap(), direct);
    }
    let error = "spdk".parse::<Backend>().unwrap_err().to_string();
    assert!(error.contains("auto, io_uring, aio, pread or memory") && error.contains("spdk"));
    assert!("yes".parse::<Direct>().is_err());
}
