//! The time between two events, and the errors if there is none.

use std::ptr::null_mut;
use std::time::Duration;

use cuda_sys::{CUevent, CUevent_flags, CUresult, CUstreamCaptureMode};

use crate::common::*;

const UNTIMED: u32 = CUevent_flags::CU_EVENT_DISABLE_TIMING.0;
const INVALID_HANDLE: CUresult = CUresult::CUDA_ERROR_INVALID_HANDLE;
const NOT_READY: CUresult = CUresult::CUDA_ERROR_NOT_READY;

fn event(driver: &Session, flags: u32) -> CUevent {
    let mut event = null_mut();
    assert_eq!(unsafe { driver.cuEventCreate(&mut event, flags) }, OK);
    event
}

fn record(driver: &Session, event: CUevent) {
    assert_eq!(unsafe { driver.cuEventRecord(event, driver.stream) }, OK);
}

fn wait(driver: &Session) {
    assert_eq!(unsafe { driver.cuStreamSynchronize(driver.stream) }, OK);
}

/// The answer, and the time if it is one.
fn elapsed(driver: &Session, start: CUevent, end: CUevent) -> Result<f32, CUresult> {
    let mut milliseconds = f32::NAN;
    match unsafe { driver.cuEventElapsedTime(&mut milliseconds, start, end) } {
        OK => Ok(milliseconds),
        code => {
            assert!(milliseconds.is_nan(), "{code}: nothing is written");
            Err(code)
        }
    }
}

fn destroy(driver: &Session, events: &[CUevent]) {
    for event in events {
        assert_eq!(unsafe { driver.cuEventDestroy(*event) }, OK);
    }
}

#[test]
fn the_wrong_way_round_is_a_negative_time() {
    let driver = session();
    let (first, second) = (event(&driver, 0), event(&driver, 0));
    record(&driver, first);
    wait(&driver);
    std::thread::sleep(Duration::from_millis(5));
    record(&driver, second);
    assert!(matches!(elapsed(&driver, first, second), Ok(_) | Err(NOT_READY)));
    wait(&driver);
    assert!(elapsed(&driver, first, second).unwrap() > 0.0);
    assert!(elapsed(&driver, second, first).unwrap() < 0.0);
    assert_eq!(elapsed(&driver, first, first), Ok(0.0));
    destroy(&driver, &[first, second]);
}

#[test]
fn events_never_recorded_and_without_timing_have_the_same_answer() {
    let driver = session();
    let (done, never, untimed) = (event(&driver, 0), event(&driver, 0), event(&driver, UNTIMED));
    record(&driver, done);
    record(&driver, untimed);
    wait(&driver);
    for (start, end) in [(never, never), (done, never), (never, done), (done, untimed), (untimed, done)] {
        assert_eq!(elapsed(&driver, start, end), Err(INVALID_HANDLE));
    }
    destroy(&driver, &[done, never, untimed]);
}

#[test]
fn an_event_of_a_capture_has_no_time() {
    let driver = session();
    let (done, captured) = (event(&driver, 0), event(&driver, 0));
    record(&driver, done);
    wait(&driver);
    unsafe {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        assert_eq!(driver.cuStreamBeginCapture(driver.stream, mode), OK);
        record(&driver, captured);
        assert_eq!(elapsed(&driver, done, captured), Err(CUresult::CUDA_ERROR_CAPTURED_EVENT));
        let mut graph = null_mut();
        assert_eq!(driver.cuStreamEndCapture(driver.stream, &mut graph), OK);
        assert_eq!(elapsed(&driver, done, captured), Err(IV));
        driver.destroy(&[graph]);
    }
    destroy(&driver, &[done, captured]);
}
