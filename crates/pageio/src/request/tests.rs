#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

fn extent() -> Extent {
    Extent { path: "pages.bin".into(), pages: 10 }
}

fn os(code: i32) -> io::Result<usize> {
    Err(io::Error::from_raw_os_error(code))
}

#[test]
fn a_whole_read_ends_at_once() {
    let mut request = Request::new(0, 3, 2 * PAGE);
    assert_eq!(request.offset(), 3 * PAGE as u64);
    assert_eq!(request.advance(&extent(), Ok(2 * PAGE)).unwrap(), Step::Ended);
}

#[test]
fn a_short_read_goes_on_from_the_last_whole_page() {
    let mut request = Request::new(0, 3, 3 * PAGE);
    assert_eq!(request.advance(&extent(), Ok(PAGE + 700)).unwrap(), Step::Again);
    assert_eq!(request.rest(), PAGE..3 * PAGE);
    assert_eq!(request.offset(), 4 * PAGE as u64);
    assert_eq!(request.advance(&extent(), Ok(2 * PAGE)).unwrap(), Step::Ended);
}

#[test]
fn the_end_of_the_file_is_an_error_that_names_the_page() {
    let mut request = Request::new(0, 3, 3 * PAGE);
    request.advance(&extent(), Ok(2 * PAGE)).unwrap();
    let error = request.advance(&extent(), Ok(0)).unwrap_err();
    assert!(
        matches!(error, ReadError::Short { page: 5, offset: 20480, expected: PAGE, found: 0, .. }),
        "{error}"
    );
}

#[test]
fn a_page_cut_in_the_middle_is_given_up_after_some_attempts() {
    let mut request = Request::new(0, 3, PAGE);
    let error = (0..100).find_map(|_| request.advance(&extent(), Ok(100)).err()).unwrap();
    assert!(matches!(error, ReadError::Short { page: 3, found: 100, .. }), "{error}");
}

#[test]
fn an_interrupted_read_is_tried_again_but_not_for_ever() {
    let mut request = Request::new(0, 3, PAGE);
    assert_eq!(request.advance(&extent(), os(libc::EINTR)).unwrap(), Step::Again);
    assert_eq!(request.advance(&extent(), os(libc::EAGAIN)).unwrap(), Step::Again);
    let error = (0..100).find_map(|_| request.advance(&extent(), os(libc::EAGAIN)).err());
    assert!(matches!(error.unwrap(), ReadError::Io { page: 3, .. }));
}

#[test]
fn progress_forgives_earlier_interruptions() {
    let mut request = Request::new(0, 0, 8 * PAGE);
    for _ in 0..7 {
        for _ in 0..MAX_STALLS {
            assert_eq!(request.advance(&extent(), os(libc::EINTR)).unwrap(), Step::Again);
        }
        assert_eq!(request.advance(&extent(), Ok(PAGE)).unwrap(), Step::Again);
    }
    assert_eq!(request.advance(&extent(), Ok(PAGE)).unwrap(), Step::Ended);
}

#[test]
fn a_device_error_names_page_and_file() {
    let mut request = Request::new(0, 3, PAGE);
    let error = request.advance(&extent(), os(libc::EIO)).unwrap_err().to_string();
    assert!(error.contains("pages.bin") && error.contains("page 3 (byte 12288)"), "{error}");
}

#[test]
fn an_extent_ends_where_its_pages_end_even_for_absurd_numbers() {
    let extent = extent();
    assert!(extent.check(0, 10).is_ok());
    assert!(extent.check(9, 1).is_ok());
    assert!(matches!(extent.check(9, 2), Err(ReadError::PastEnd { page: 10, .. })));
    assert!(matches!(extent.check(12, 1), Err(ReadError::PastEnd { page: 12, .. })));
    assert!(extent.check(u64::MAX, u64::MAX).is_err());
}
