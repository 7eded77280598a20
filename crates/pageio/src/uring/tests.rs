#![allow(clippy::unwrap_used)]

use std::io::Write;

use super::*;
use crate::fault::{Fault, Faults, Injector};
use crate::request::Extent;
use crate::{OpenOptions, PAGE};

/// A reader of four pages as on a kernel whose rings wait for ever; none where rings are forbidden.
fn untimed(silent_from: u64) -> Option<UringReader> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[5; 4 * PAGE]).unwrap();
    let extent = Arc::new(Extent { path: "pages.bin".into(), pages: 4 });
    let options =
        OpenOptions { timeout: Some(Duration::from_millis(500)), ..OpenOptions::default() };
    let faults = Faults::new(move |page| (page >= silent_from).then_some(Fault::Silence));
    let slots = Slots::new(extent, 4, &options, Injector::new(faults));
    let mut reader = UringReader::new(Arc::new(file), slots).ok()?;
    reader.timed = false;
    Some(reader)
}

#[test]
fn a_ring_without_timed_waits_still_reads() {
    let Some(mut reader) = untimed(4) else { return };
    let mut done = Vec::new();
    for page in 0..4 {
        reader.submit(page, page, 1).unwrap();
    }
    while reader.in_flight() > 0 {
        reader.wait(&mut done).unwrap();
    }
    assert_eq!(done.len(), 4);
    assert!(done.iter().all(|completion| reader.bytes(completion.slot) == [5; PAGE]));
}

#[test]
fn a_ring_without_timed_waits_still_gives_up() {
    let Some(mut reader) = untimed(0) else { return };
    reader.submit(0, 2, 1).unwrap();
    let error = reader.wait(&mut Vec::new()).unwrap_err();
    assert!(matches!(error, ReadError::NoAnswer { page: 2, reads: 1, .. }), "{error}");
    assert!(!reader.usable());
}

#[test]
fn a_read_that_the_kernel_still_has_is_given_up_and_its_buffer_stays() {
    // Nobody writes to the pipe, so a read from it is a real one that does not come back.
    let (pipe, mut writer) = io::pipe().unwrap();
    let extent = Arc::new(Extent { path: "pages.bin".into(), pages: 4 });
    let options =
        OpenOptions { timeout: Some(Duration::from_millis(300)), ..OpenOptions::default() };
    let slots = Slots::new(extent, 4, &options, Injector::default());
    let file = Arc::new(File::from(std::os::fd::OwnedFd::from(pipe)));
    let Ok(mut reader) = UringReader::new(Arc::clone(&file), slots) else { return };
    reader.submit(0, 1, 1).unwrap();
    let error = reader.wait(&mut Vec::new()).unwrap_err();
    assert!(matches!(error, ReadError::NoAnswer { page: 1, reads: 1, .. }), "{error}");
    assert_eq!(reader.outstanding, 1);
    drop(reader);
    // If the kernel still reads it, it reads it into memory that is nobody else's.
    writer.write_all(&[1; PAGE]).unwrap();
}
