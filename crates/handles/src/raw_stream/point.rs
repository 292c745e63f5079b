//! Points in streams: events that the reaper records and asks for. It waits for none.

use cuda_sys::{CUevent_flags, CUevent_st, CUresult, CUstream, Call};

use super::event::create_event;
use crate::context::{Context, capture_mode};
use crate::destroy::{self, Object};
use crate::error::{Error, Result};
use crate::registry::Raw;

/// A new event, which `record` records. If it fails there is none.
pub(crate) fn new(
    context: &Context,
    record: impl FnOnce(Raw<CUevent_st>) -> Result<()>,
) -> Result<Raw<CUevent_st>> {
    let event = create_event(context, CUevent_flags::CU_EVENT_DISABLE_TIMING.0)?;
    let recorded = record(event);
    if recorded.is_err() {
        destroy::destroy(context, Object::Event(event));
    }
    recorded.map(|()| event)
}

/// Records an event in a stream of `context`.
pub(crate) fn record(context: &Context, event: Raw<CUevent_st>, stream: CUstream) -> Result<()> {
    // SAFETY: event and stream are alive.
    let code = unsafe { context.driver().cuEventRecord(event.get(), stream) };
    context.check(Call::cuEventRecord, code)
}

/// A new event, recorded in a stream that never captures.
pub(crate) fn record_new(context: &Context, stream: CUstream) -> Result<Raw<CUevent_st>> {
    new(context, |event| record(context, event, stream))
}

/// Whether an event was reached, or the context is lost and nothing runs in it any more.
pub(crate) fn is_reached(context: &Context, event: Raw<CUevent_st>, what: &'static str) -> bool {
    if !destroy::may_call(context) {
        return true;
    }
    let mode = capture_mode::relaxed(context.driver());
    // SAFETY: the event is ours and alive.
    let code = unsafe { context.driver().cuEventQuery(event.get()) };
    drop(mode);
    match code {
        CUresult::CUDA_SUCCESS => true,
        CUresult::CUDA_ERROR_NOT_READY => false,
        code => match context.check(Call::cuEventQuery, code) {
            Err(Error::ContextLost(_)) => true,
            Err(error) => {
                report_unless_expected(what, error);
                false
            }
            Ok(()) => true,
        },
    }
}

/// Waits for an event that was reached, which takes no time, but makes the driver process the frees
/// before it. Otherwise the driver does so when a thread waits for the stream, and crashes if the
/// pool of that memory is destroyed meanwhile.
pub(crate) fn settle(context: &Context, event: Raw<CUevent_st>) {
    if destroy::may_call(context) {
        // Only to note a lost context.
        let _ = wait(context, event);
    }
}

/// Waits for an event.
pub(crate) fn wait(context: &Context, event: Raw<CUevent_st>) -> Result<()> {
    let _mode = capture_mode::relaxed(context.driver());
    // SAFETY: the event is ours and alive.
    let code = unsafe { context.driver().cuEventSynchronize(event.get()) };
    context.check(Call::cuEventSynchronize, code)
}

/// A capture going on, or a call that is not permitted on this thread, passes by itself.
pub(crate) fn report_unless_expected(what: &'static str, error: Error) {
    match error {
        Error::Capturing { .. } | Error::Driver { code: CUresult::CUDA_ERROR_NOT_PERMITTED, .. } => {}
        Error::Driver { code, .. } if is_of_capture(code) => {}
        error => destroy::report(what, error),
    }
}

/// Codes for a capture that began meanwhile: a later attempt makes sense.
fn is_of_capture(code: CUresult) -> bool {
    let (first, last) = (
        CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.0,
        CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD.0,
    );
    (first..=last).contains(&code.0)
}
