//! Captures that end without a graph: the error says why, and every stream can be used.

use cuda_handles::capture::{ActiveCapture, CaptureMode};
use cuda_handles::{Cause, Error, Stream};
use cuda_sys::{CUresult, CUstreamCaptureMode, Call};
use cuda_tests::{alone, count, fail, no_leaks, raw, setup};

fn begin(stream: &Stream) -> ActiveCapture {
    stream.begin_capture(CaptureMode::Relaxed).unwrap()
}

/// Lets other code invalidate a capture.
fn invalidate(stream: &Stream) {
    // SAFETY: the stream lives; the driver answers by invalidating the capture.
    let code = unsafe { raw::driver().cuStreamQuery(stream.as_raw()) };
    assert_eq!(code, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

#[track_caller]
fn is_free(stream: &Stream) {
    assert_eq!(stream.capture_id(), None);
    assert!(stream.capture_info().unwrap().is_none());
    stream.synchronize_blocking().unwrap();
    begin(stream).end().unwrap();
}

#[test]
fn the_first_refused_call_is_named_when_a_capture_is_invalid() {
    let context = setup();
    no_leaks(|| {
        let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
        let (buffer, event) = (stream.zeros::<u32>(8).unwrap(), context.event().unwrap());
        stream.synchronize_blocking().unwrap();
        let code = CUresult::CUDA_ERROR_INVALID_VALUE;
        let calls: [(Call, &dyn Fn() -> Result<(), Error>); 4] = [
            (Call::cuMemsetD32Async, &|| stream.fill(&buffer, 1)),
            (Call::cuEventRecord, &|| stream.record(&event)),
            (Call::cuEventRecord, &|| other.wait_for(&stream)),
            (Call::cuStreamWaitEvent, &|| other.wait_for(&stream)),
        ];
        for (call, refused) in calls {
            let capture = begin(&stream);
            let injection = fail(call, 1, code);
            refused().unwrap_err();
            assert!(injection.hit(), "{call:?}");
            drop(injection);
            invalidate(&stream);
            // It meets an invalid capture, and has not invalidated it.
            let code_now = CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
            assert!(matches!(stream.clear(&buffer), Err(Error::Driver { code, .. }) if code == code_now));
            let error = capture.end().unwrap_err();
            assert_eq!(error, Error::CaptureInvalidated { by: Some(Cause { call, code }) });
            assert!(error.to_string().contains(&format!("{} answered", call.name())), "{error}");
            is_free(&stream);
            is_free(&other);
        }
        let capture = begin(&stream);
        invalidate(&stream);
        stream.fill(&buffer, 1).unwrap_err();
        assert_eq!(capture.end().unwrap_err(), Error::CaptureInvalidated { by: None });
    });
}

#[test]
fn all_streams_that_were_not_waited_for_are_named() {
    let context = setup();
    no_leaks(|| {
        let streams: Vec<Stream> = (0..3).map(|_| context.stream().unwrap()).collect();
        let buffer = streams[0].zeros::<u32>(8).unwrap();
        streams[0].synchronize_blocking().unwrap();
        let capture = begin(&streams[0]);
        for forked in &streams[1..] {
            forked.wait_for(&streams[0]).unwrap();
            forked.fill(&buffer, 1).unwrap();
        }
        let error = capture.end().unwrap_err();
        let others = [streams[1].id(), streams[2].id()].into();
        assert_eq!(error, Error::CaptureUnjoined { origin: streams[0].id(), others });
        let text = error.to_string();
        assert!(text.contains(&format!("number {}, {}", streams[1].id(), streams[2].id())), "{text}");
        streams.iter().for_each(is_free);
    });
}

#[test]
fn a_forgotten_capture_is_discarded_from_any_of_its_streams_and_on_any_thread() {
    alone!();
    let context = setup();
    let (stream, forked) = (context.stream().unwrap(), context.stream().unwrap());
    let buffer = stream.zeros::<u32>(8).unwrap();
    stream.synchronize_blocking().unwrap();
    assert_eq!(stream.discard_capture(), Ok(false));
    for (by_fork, elsewhere) in [(false, false), (true, false), (false, true), (true, true)] {
        let mode = CaptureMode::ThreadLocal;
        std::mem::forget(stream.begin_capture(mode).unwrap());
        let before = std::sync::Arc::strong_count(buffer.allocation());
        forked.wait_for(&stream).unwrap();
        forked.fill(&buffer, 1).unwrap();
        let through = if by_fork { &forked } else { &stream };
        let (discarded, cost) = match elsewhere {
            true => std::thread::scope(|scope| {
                scope.spawn(|| count(|| through.discard_capture())).join().unwrap()
            }),
            false => count(|| through.discard_capture()),
        };
        assert_eq!(discarded, Ok(true));
        assert_eq!(cost.calls("cuStreamEndCapture"), 1);
        assert_eq!(std::sync::Arc::strong_count(buffer.allocation()), before);
        is_free(&stream);
        is_free(&forked);
    }
}

#[test]
fn the_end_of_a_discarded_capture_is_an_error_without_a_driver_call() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let capture = begin(&stream);
        assert_eq!(stream.discard_capture(), Ok(true));
        let next = begin(&stream);
        let (ended, cost) = count(|| capture.end().map(drop));
        assert_eq!(ended, Err(Error::Discarded));
        cost.assert_calls(&[]);
        next.end().unwrap();
        let dropped = begin(&stream);
        assert_eq!(stream.discard_capture(), Ok(true));
        let ((), cost) = count(|| drop(dropped));
        cost.assert_calls(&[]);
        is_free(&stream);
    });
}

#[test]
fn the_driver_tells_state_graph_and_dependencies_of_a_capture() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(8).unwrap();
        stream.synchronize_blocking().unwrap();
        let (info, cost) = count(|| stream.capture_info());
        assert_eq!(info, Ok(None));
        cost.assert_calls(&[]);
        let capture = begin(&stream);
        let begun = stream.capture_info().unwrap().unwrap();
        assert!(begun.is_active && begun.id != 0 && begun.dependencies.is_empty());
        stream.fill(&buffer, 1).unwrap();
        let filled = stream.capture_info().unwrap().unwrap();
        assert_eq!((filled.id, filled.graph), (begun.id, begun.graph));
        let nodes: Vec<_> = filled.dependencies.iter().map(|(node, _)| *node).collect();
        assert_eq!(nodes, raw::nodes(filled.graph));
        invalidate(&stream);
        let invalid = stream.capture_info().unwrap().unwrap();
        assert!(!invalid.is_active && invalid.graph.is_null() && invalid.dependencies.is_empty());
        capture.end().unwrap_err();
        // Other code's capture.
        let theirs = stream.lend();
        assert_eq!(stream.capture_info(), Ok(None));
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream lives.
        raw::ok(unsafe { raw::driver().cuStreamBeginCapture(theirs, mode) });
        assert!(stream.capture_info().unwrap().unwrap().is_active);
        assert_eq!(stream.discard_capture(), Ok(false), "it is not this library's");
        let mut graph = core::ptr::null_mut();
        // SAFETY: the stream lives, the out pointer is valid, and the graph is ours.
        unsafe {
            raw::ok(raw::driver().cuStreamEndCapture(theirs, &raw mut graph));
            raw::ok(raw::driver().cuGraphDestroy(graph));
        }
    });
}
