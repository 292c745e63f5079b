//! Capture as a state of a stream: joining, refusals, and an end that leaves every stream usable.

use std::sync::Arc;

use cuda_handles::capture::{ActiveCapture, CaptureMode, Captured};
use cuda_handles::{Context, Error, NoTime, Owner, Stream, Which};
use cuda_sys::{CUresult, CUstreamCaptureStatus, Call};
use cuda_tests::{count, fail, kernel, no_leaks, raw, settle, setup};

fn begin(stream: &Stream) -> ActiveCapture {
    stream.begin_capture(CaptureMode::ThreadLocal).unwrap()
}

/// The driver's capture status of a stream.
fn status(stream: &Stream) -> CUstreamCaptureStatus {
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: the stream lives and the out pointer is valid.
    raw::ok(unsafe { raw::driver().cuStreamIsCapturing(stream.as_raw(), &raw mut status) });
    status
}

#[track_caller]
fn assert_free(streams: &[&Stream]) {
    for stream in streams {
        assert_eq!(stream.capture_id(), None);
        assert_eq!(status(stream), CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE);
        stream.synchronize_blocking().unwrap();
        assert_eq!(stream.upload(&[3_u32]).unwrap().read_blocking(stream).unwrap(), [3]);
    }
}

/// Streams are drawn into a capture by an event and joined by another.
fn fork(context: &Context, from: &Stream, to: &Stream) {
    let event = context.event().unwrap();
    from.record(&event).unwrap();
    to.wait(&event).unwrap();
}

#[test]
fn a_capture_is_one_call_at_each_end_and_makes_a_graph() {
    let context = setup();
    let increment = kernel(&context, "increment");
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(8).unwrap();
        let (capture, cost) = count(|| begin(&stream));
        cost.assert_calls(&[("cuStreamBeginCapture", 1)]);
        assert_eq!(stream.capture_id(), Some(capture.id()));
        assert_eq!(stream.clone().capture_id(), Some(capture.id()), "whichever clone");
        raw::launch(&stream, &increment, 8, &[buffer.address(), 8]);
        stream.fill(&buffer, 1).unwrap();
        let (captured, cost) = count(|| capture.end().unwrap());
        cost.assert_calls(&[("cuStreamEndCapture", 1)]);
        assert_eq!(raw::nodes(captured.graph.as_raw()).len(), 2);
        assert_free(&[&stream]);
        let again = begin(&stream);
        assert_ne!(again.id(), 0);
        drop(again);
        assert_free(&[&stream]);
    });
}

#[test]
fn only_the_enqueuing_of_adopted_streams_asks_the_driver() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (captured, cost) = count(|| stream.enqueue().unwrap().is_captured().unwrap());
        cost.assert_calls(&[]);
        assert_eq!(cost.heap_allocations(), 0);
        assert!(!captured);
        let (kept, cost) = count(|| stream.enqueue().unwrap().keep(Owner::Stream(stream.clone())));
        kept.unwrap();
        cost.assert_calls(&[]);
        let ((), cost) = count(|| stream.synchronize_blocking().unwrap());
        cost.assert_calls(&[
            ("cuCtxGetCurrent", 1),
            ("cuStreamSynchronize", 1),
            ("cuThreadExchangeStreamCaptureMode", 2),
        ]);
    });
}

#[test]
fn owners_go_to_the_capture_and_come_out_with_the_graph() {
    let context = setup();
    no_leaks(|| {
        let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
        let things: Vec<Arc<u32>> = (0..4).map(Arc::new).collect();
        let capture = begin(&stream);
        stream.enqueue().unwrap().keep(Owner::shared(things[0].clone())).unwrap();
        fork(&context, &stream, &other);
        assert_eq!(capture.streams(), 2);
        other.enqueue().unwrap().keep(Owner::shared(things[1].clone())).unwrap();
        std::thread::scope(|scope| {
            let keep = || stream.clone().enqueue().unwrap().keep(Owner::shared(things[2].clone()));
            scope.spawn(keep).join().unwrap().unwrap();
        });
        capture.keep(Owner::shared(things[3].clone()));
        fork(&context, &other, &stream);
        let Captured { graph, records, .. } = capture.end().unwrap();
        assert_eq!((records.len(), records.kept().len()), (0, 4));
        assert!(things.iter().all(|thing| Arc::strong_count(thing) == 2));
        drop((graph, records));
        assert!(things.iter().all(|thing| Arc::strong_count(thing) == 1));
        let (stream, capture) = (stream.clone(), begin(&stream));
        stream.enqueue().unwrap().keep(Owner::shared(things[0].clone())).unwrap();
        drop(capture);
        assert_eq!(Arc::strong_count(&things[0]), 1, "a capture thrown away owns nothing");
    });
}

#[test]
fn events_and_waits_draw_streams_in_and_the_end_lets_all_go() {
    let context = setup();
    let increment = kernel(&context, "increment");
    no_leaks(|| {
        let streams: Vec<_> = (0..4).map(|_| context.stream().unwrap()).collect();
        let buffer = streams[0].zeros::<u32>(8).unwrap();
        streams[0].synchronize_blocking().unwrap();
        let capture = begin(&streams[0]);
        fork(&context, &streams[0], &streams[1]);
        streams[2].wait_for(&streams[1]).unwrap();
        for stream in &streams[..3] {
            assert_eq!(stream.capture_id(), Some(capture.id()));
            assert_eq!(status(stream), CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE);
            raw::launch(stream, &increment, 8, &[buffer.address(), 8]);
        }
        assert_eq!((streams[3].capture_id(), capture.streams()), (None, 3));
        streams[1].wait_for(&streams[2]).unwrap();
        streams[0].wait_for(&streams[1]).unwrap();
        let captured = capture.end().unwrap();
        assert_eq!(raw::nodes(captured.graph.as_raw()).len(), 3);
        assert_free(&streams.iter().collect::<Vec<_>>());
    });
}

#[test]
fn an_event_of_a_capture_is_refused_until_it_is_recorded_anew() {
    let context = setup();
    no_leaks(|| {
        let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
        let (event, start) = (context.event().unwrap(), context.event().unwrap());
        stream.record(&start).unwrap();
        let capture = begin(&stream);
        stream.record(&event).unwrap();
        let refused = |when: &str| {
            assert_eq!(event.query(), Err(Error::CapturedEvent), "{when}");
            assert_eq!(event.synchronize_blocking(), Err(Error::CapturedEvent), "{when}");
            let captured = |which| Err(Error::NoTime(NoTime::Captured(which)));
            assert_eq!(event.elapsed_since(&start), captured(Which::End), "{when}");
            assert_eq!(start.elapsed_since(&event), captured(Which::Start), "{when}");
        };
        refused("during the capture");
        assert_eq!(status(&stream), CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE);
        capture.end().unwrap();
        refused("after the capture");
        assert_eq!(other.wait(&event), Err(Error::CapturedEvent));
        stream.record(&event).unwrap();
        event.synchronize_blocking().unwrap();
        assert!(event.query().unwrap());
        event.elapsed_since(&start).unwrap();
        other.wait(&event).unwrap();
        assert_free(&[&stream, &other]);
    });
}

#[test]
fn waits_that_would_invalidate_a_capture_are_refused_and_it_goes_on() {
    let context = setup();
    no_leaks(|| {
        let (one, two, outside) =
            (context.stream().unwrap(), context.stream().unwrap(), context.stream().unwrap());
        let (before, never) = (context.event().unwrap(), context.event().unwrap());
        outside.record(&before).unwrap();
        let (first, second) = (begin(&one), begin(&two));
        assert_eq!(one.wait(&before), Err(Error::Isolated));
        assert_eq!(one.wait_for(&outside), Err(Error::Isolated));
        one.wait(&never).unwrap();
        let event = context.event().unwrap();
        two.record(&event).unwrap();
        assert_eq!(one.wait(&event), Err(Error::Merge));
        assert_eq!(one.wait_for(&two), Err(Error::Merge));
        assert!(matches!(one.begin_capture(CaptureMode::Relaxed), Err(Error::Capturing { .. })));
        for stream in [&one, &two] {
            assert_eq!(status(stream), CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE);
        }
        first.end().unwrap();
        second.end().unwrap();
        assert_free(&[&one, &two, &outside]);
    });
}

#[test]
fn an_invalidated_capture_ends_with_an_error_and_every_stream_is_usable() {
    let context = setup();
    no_leaks(|| {
        let (stream, forked) = (context.stream().unwrap(), context.stream().unwrap());
        let capture = begin(&stream);
        fork(&context, &stream, &forked);
        // SAFETY: the stream lives; the driver answers by invalidating the capture.
        let code = unsafe { raw::driver().cuStreamQuery(stream.as_raw()) };
        assert_eq!(code, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        let error = capture.end().unwrap_err();
        assert_eq!(error, Error::CaptureInvalidated { by: None });
        let text = error.to_string();
        assert!(text.contains("a synchronisation or a query") && text.contains("legacy stream"), "{text}");
        assert_free(&[&stream, &forked]);
    });
}

#[test]
fn an_unjoined_stream_is_an_error_and_every_stream_is_usable() {
    let context = setup();
    let empty = kernel(&context, "empty");
    no_leaks(|| {
        let (stream, forked) = (context.stream().unwrap(), context.stream().unwrap());
        let capture = begin(&stream);
        fork(&context, &stream, &forked);
        raw::launch(&forked, &empty, 1, &[]);
        let error = capture.end().unwrap_err();
        assert_eq!(error, Error::CaptureUnjoined { origin: stream.id(), others: [forked.id()].into() });
        let text = error.to_string();
        assert!(text.contains(&format!("number {}", forked.id())) && text.contains("wait_for"), "{text}");
        assert_free(&[&stream, &forked]);
    });
}

#[test]
fn handles_dropped_during_a_capture_do_not_end_it() {
    let context = setup();
    let empty = kernel(&context, "empty");
    no_leaks(|| {
        let (stream, forked) = (context.stream().unwrap(), context.stream().unwrap());
        let capture = begin(&stream);
        forked.wait_for(&stream).unwrap();
        raw::launch(&forked, &empty, 1, &[]);
        stream.wait_for(&forked).unwrap();
        drop((forked, stream));
        settle();
        let captured = capture.end().unwrap();
        assert_eq!(raw::nodes(captured.graph.as_raw()).len(), 1);
    });
}

#[test]
fn a_failing_begin_or_end_leaves_the_stream_as_usable_as_before() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let code = CUresult::CUDA_ERROR_OPERATING_SYSTEM;
        let injection = fail(Call::cuStreamBeginCapture, 1, code);
        let error = stream.begin_capture(CaptureMode::Global).unwrap_err();
        assert_eq!(error, Error::Driver { call: Call::cuStreamBeginCapture, code });
        drop(injection);
        assert_free(&[&stream]);
        let capture = begin(&stream);
        let injection = fail(Call::cuStreamEndCapture, 1, code);
        let error = capture.end().unwrap_err();
        assert_eq!(error, Error::Driver { call: Call::cuStreamEndCapture, code });
        drop(injection);
        assert_free(&[&stream]);
    });
}

#[test]
fn a_capture_of_somebody_else_is_seen_on_an_adopted_stream() {
    let context = setup();
    let thing = Arc::new(());
    no_leaks(|| {
        let mut theirs = core::ptr::null_mut();
        // SAFETY: the out pointer is valid.
        let create = || unsafe { raw::driver().cuStreamCreate(&raw mut theirs, 1) };
        raw::ok(context.with_current(create).unwrap());
        // SAFETY: the stream is destroyed at the end of this test, after its handle.
        let adopted = unsafe { Stream::from_raw(&context, theirs) }.unwrap();
        let owned = context.stream().unwrap();
        let mode = cuda_sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream lives.
        raw::ok(unsafe { raw::driver().cuStreamBeginCapture(theirs, mode) });
        let turn = adopted.enqueue().unwrap();
        assert!(turn.is_captured().unwrap());
        turn.keep(Owner::shared(thing.clone())).unwrap();
        drop(turn);
        assert_eq!(Arc::strong_count(&thing), 2);
        assert!(matches!(adopted.query(), Err(Error::Capturing { .. })));
        let event = context.event().unwrap();
        adopted.record(&event).unwrap();
        assert_eq!(event.query(), Err(Error::CapturedEvent));
        owned.wait(&event).unwrap();
        assert!(owned.enqueue().unwrap().is_captured().unwrap(), "drawn into a capture not ours");
        assert!(matches!(owned.synchronize_blocking(), Err(Error::Capturing { .. })));
        let mut graph = core::ptr::null_mut();
        // SAFETY: the stream lives, the out pointer is valid, and the graph is ours.
        unsafe {
            raw::ok(raw::driver().cuStreamEndCapture(theirs, &raw mut graph));
            assert_eq!(Arc::strong_count(&thing), 2, "the graph owns it");
            raw::ok(raw::driver().cuGraphDestroy(graph));
        }
        settle();
        assert!(cuda_tests::until(cuda_tests::SOON, || Arc::strong_count(&thing) == 1));
        assert_free(&[&adopted, &owned]);
        drop(adopted);
        // SAFETY: ours, and its handle is gone.
        raw::ok(unsafe { raw::driver().cuStreamDestroy(theirs) });
    });
}

#[test]
fn enqueuing_from_other_threads_is_captured_whole_or_not_at_all() {
    let context = setup();
    let increment = kernel(&context, "increment");
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(8).unwrap();
        stream.synchronize_blocking().unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let mut nodes = 0;
        let mut owners = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let turn = stream.enqueue().unwrap();
                    turn.keep(&buffer).unwrap();
                    raw::launch(&stream, &increment, 8, &[buffer.address(), 8]);
                    drop(turn);
                    std::thread::yield_now();
                }
            });
            for _ in 0..50 {
                let capture = stream.begin_capture(CaptureMode::Relaxed).unwrap();
                std::thread::sleep(std::time::Duration::from_micros(200));
                let captured = capture.end().unwrap();
                nodes += raw::nodes(captured.graph.as_raw()).len();
                owners += captured.records.kept().len();
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert_eq!(nodes, owners, "every captured launch has its owner, and no other has one");
        stream.synchronize_blocking().unwrap();
    });
}
