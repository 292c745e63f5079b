//! Events that graphs record and wait for.

use cuda_handles::capture::CaptureMode;
use cuda_handles::{Error, Event, Stream};
use cuda_tests::{Gate, SOON, until};

/// Whether an event was recorded in a capture last, as far as this library knows.
pub(crate) fn is_captured(event: &Event) -> bool {
    event.query() == Err(Error::CapturedEvent)
}

/// Records the event in a capture that comes to nothing.
#[track_caller]
pub(crate) fn record_in_capture(event: &Event, stream: &Stream) {
    let capture = stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
    stream.record(event).unwrap();
    drop(capture);
    assert!(is_captured(event));
}

/// Launches while the event is not reached: the launch ends once it is.
#[track_caller]
pub(crate) fn ensure_held_up(event: &Event, stream: &Stream, launch: impl FnOnce()) {
    let context = stream.context();
    let other = context.stream().unwrap();
    let gate = Gate::close(&other);
    other.record(event).unwrap();
    launch();
    let done = context.event().unwrap();
    stream.record(&done).unwrap();
    assert!(!done.query().unwrap());
    gate.open();
    assert!(until(SOON, || done.query().unwrap()));
}
