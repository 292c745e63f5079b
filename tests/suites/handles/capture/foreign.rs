//! Captures and event records of other code: the library notices them in time and harms no capture.

use std::sync::Arc;

use cuda_handles::capture::CaptureMode;
use cuda_handles::{Context, Error, Event, Owner, Stream};
use cuda_sys::{CUevent, CUgraph, CUgraphEdgeData, CUresult, CUstream, CUstreamCaptureMode, Call};
use cuda_tests::{Gate, alone, count, fail, in_forked_child, kernel, needs, no_leaks, raw, setup, until};

/// Streams and events of other code. They live to the end of the test's process.
fn their_stream(context: &Context) -> (CUstream, Stream) {
    let mut stream = core::ptr::null_mut();
    // SAFETY: the out pointer is valid.
    raw::ok(context.with_current(|| unsafe { raw::driver().cuStreamCreate(&raw mut stream, 1) }).unwrap());
    // SAFETY: it is never destroyed.
    (stream, unsafe { Stream::from_raw(context, stream) }.unwrap())
}

fn their_event(context: &Context) -> (CUevent, Event) {
    let mut event = core::ptr::null_mut();
    // SAFETY: the out pointer is valid.
    raw::ok(context.with_current(|| unsafe { raw::driver().cuEventCreate(&raw mut event, 2) }).unwrap());
    // SAFETY: it is never destroyed.
    (event, unsafe { Event::from_raw(context, event) }.unwrap())
}

fn begin(stream: CUstream) {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: the stream lives.
    raw::ok(unsafe { raw::driver().cuStreamBeginCapture(stream, mode) });
}

fn record(event: CUevent, stream: CUstream) {
    // SAFETY: both live.
    raw::ok(unsafe { raw::driver().cuEventRecord(event, stream) });
}

/// Ends a capture, which is intact.
#[track_caller]
fn end(stream: CUstream) -> CUgraph {
    let mut graph = core::ptr::null_mut();
    // SAFETY: the stream lives and the out pointer is valid.
    raw::ok(unsafe { raw::driver().cuStreamEndCapture(stream, &raw mut graph) });
    graph
}

fn is_captured(stream: &Stream) -> bool {
    stream.enqueue().unwrap().is_captured().unwrap()
}

/// Makes `theirs` wait for `stream`, as a capture must before its end.
fn join(context: &Context, theirs: CUstream, stream: &Stream) {
    let event = context.event().unwrap();
    record(event.as_raw(), stream.as_raw());
    // SAFETY: both live.
    raw::ok(unsafe { raw::driver().cuStreamWaitEvent(theirs, event.as_raw(), 0) });
}

#[test]
fn an_event_that_others_record_draws_no_stream_in_unnoticed() {
    alone!();
    let context = setup();
    for lent in [false, true] {
        for recorded_here in [false, true] {
            let (theirs, _adopted) = their_stream(&context);
            let stream = context.stream().unwrap();
            let buffer = stream.zeros::<u32>(8).unwrap();
            let (raw, event) = match lent {
                true => context.event().map(|event| (event.lend(), event)).unwrap(),
                false => their_event(&context),
            };
            if recorded_here {
                stream.record(&event).unwrap();
            }
            stream.synchronize_blocking().unwrap();
            begin(theirs);
            record(raw, theirs);
            stream.wait(&event).unwrap();
            assert!(is_captured(&stream), "lent {lent}, recorded here {recorded_here}");
            let before = Arc::strong_count(buffer.allocation());
            stream.fill(&buffer, 7).unwrap();
            assert_eq!(Arc::strong_count(buffer.allocation()), before + 1, "the graph owns it");
            join(&context, theirs, &stream);
            assert!(!end(theirs).is_null());
            assert!(!is_captured(&stream));
        }
    }
}

#[test]
fn a_wait_that_draws_nobody_in_leaves_the_stream_without_questions() {
    alone!();
    let context = setup();
    let stream = context.stream().unwrap();
    let (_, event) = their_event(&context);
    stream.wait(&event).unwrap();
    let (captured, cost) = count(|| is_captured(&stream));
    assert!(!captured);
    cost.assert_calls(&[]);
    let raw = stream.lend();
    stream.wait(&event).unwrap();
    begin(raw);
    assert!(is_captured(&stream), "lent for ever");
    end(raw);
}

#[test]
fn a_stream_is_asked_after_from_before_the_wait_on_whatever_fails() {
    alone!();
    let context = setup();
    let (theirs, adopted) = their_stream(&context);
    let stream = context.stream().unwrap();
    let event = context.event().unwrap();
    begin(theirs);
    adopted.record(&event).unwrap();
    let injection = fail(Call::cuStreamIsCapturing, 1, CUresult::CUDA_ERROR_UNKNOWN);
    stream.wait(&event).unwrap();
    assert!(injection.hit());
    drop(injection);
    assert!(is_captured(&stream));
    // Nobody uses a stream while it joins: work is captured whole or not at all.
    let other = context.stream().unwrap();
    let turn = other.enqueue().unwrap();
    let (stopped, event_again) = (Arc::new(()), event.clone());
    let (waits, mark) = (other.clone(), Arc::clone(&stopped));
    let thread = std::thread::spawn(move || {
        waits.wait(&event_again).unwrap();
        drop(mark);
    });
    assert!(!until(std::time::Duration::from_millis(50), || Arc::strong_count(&stopped) == 1));
    assert!(!turn.is_captured().unwrap());
    drop(turn);
    thread.join().unwrap();
    assert!(is_captured(&other));
    join(&context, theirs, &stream);
    join(&context, theirs, &other);
    end(theirs);
}

#[test]
fn waits_of_a_stream_that_somebody_captures_are_refused_and_all_go_on() {
    alone!();
    let context = setup();
    for lent in [false, true] {
        let (theirs, adopted) = match lent {
            true => context.stream().map(|stream| (stream.lend(), stream)).unwrap(),
            false => their_stream(&context),
        };
        let (stream, event) = (context.stream().unwrap(), context.event().unwrap());
        stream.record(&event).unwrap();
        begin(theirs);
        assert_eq!(adopted.wait(&event), Err(Error::Isolated));
        assert_eq!(adopted.wait_for(&stream), Err(Error::Isolated));
        let capture = stream.begin_capture(CaptureMode::Relaxed).unwrap();
        stream.record(&event).unwrap();
        assert_eq!(adopted.wait(&event), Err(Error::Merge));
        assert_eq!(adopted.wait_for(&stream), Err(Error::Merge));
        capture.end().unwrap();
        end(theirs);
        adopted.wait_for(&stream).unwrap();
        adopted.synchronize_blocking().unwrap();
    }
}

#[test]
fn a_blocking_copy_that_fails_writes_nothing_after_its_return() {
    alone!();
    let context = setup();
    let calls = [Call::cuCtxGetCurrent, Call::cuStreamSynchronize];
    for (call, lent) in calls.into_iter().flat_map(|call| [(call, false), (call, true)]) {
        let stream = context.stream().unwrap();
        let buffer = stream.upload(&[9_u32; 64]).unwrap();
        stream.synchronize_blocking().unwrap();
        if lent {
            let _ = stream.lend();
        }
        let mut host = context.pinned_zeros::<u32>(64).unwrap();
        let gate = Gate::close(&stream);
        std::thread::scope(|scope| {
            let opens = scope.spawn(|| {
                let _ = until(std::time::Duration::from_millis(30), || false);
                gate.open();
            });
            let injection = fail(call, 1, CUresult::CUDA_ERROR_UNKNOWN);
            let failed = buffer.as_slice().read_into_blocking(&stream, &mut host);
            assert!(injection.hit(), "{call:?}: {failed:?}");
            // A lent stream has another way to wait.
            assert!(failed.is_err() || lent, "{call:?}: {failed:?}");
            let at_return = host[5];
            opens.join().unwrap();
            stream.synchronize_blocking().unwrap();
            assert_eq!(host[5], at_return, "{call:?}, lent {lent}");
            assert!(failed.is_err() || at_return == 9);
        });
    }
}

#[cfg(unix)]
#[test]
fn a_forked_child_asks_nobody_whether_an_adopted_stream_captures() {
    alone!();
    let context = setup();
    let (_, adopted) = their_stream(&context);
    let legacy = context.legacy_stream();
    let in_child = || {
        let (refused, cost) = count(|| {
            [adopted.refuse_capture("this"), adopted.wait_for_default(&legacy), legacy.wait_for(&adopted)]
                .iter()
                .all(|answer| *answer == Err(Error::Forked))
        });
        u8::from(!refused) + 2 * u8::from(cost.total_anywhere() != 0)
    };
    // SAFETY: nothing of this waits.
    assert_eq!(unsafe { in_forked_child(in_child) }, 0);
}

/// The driver refuses to tell the dependencies without their data.
#[test]
fn owners_and_dependencies_are_had_while_edges_with_data_are_pending() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let (stream, empty) = (context.stream().unwrap(), kernel(&context, "empty"));
        let kept = Arc::new(());
        let theirs = stream.lend();
        begin(theirs);
        raw::launch(&stream, &empty, 1, &[]);
        let info = stream.capture_info().unwrap().unwrap();
        let [(mut node, plain)] = info.dependencies[..] else { panic!("one node: {info:?}") };
        assert_eq!(plain, CUgraphEdgeData::default());
        let data = CUgraphEdgeData { from_port: 1, type_: 1, ..plain };
        // SAFETY: the stream captures, and the node is of its graph.
        let set = unsafe {
            raw::driver().cuStreamUpdateCaptureDependencies_v12030(
                theirs,
                &raw mut node,
                &raw const data,
                1,
                1,
            )
        };
        raw::ok(set.unwrap());
        stream.enqueue().unwrap().keep(Owner::shared(Arc::clone(&kept))).unwrap();
        assert_eq!(Arc::strong_count(&kept), 2, "the graph owns it");
        assert_eq!(stream.capture_info().unwrap().unwrap().dependencies, [(node, data)]);
        // SAFETY: as above, and the graph is ours.
        unsafe {
            let update = raw::driver().cuStreamUpdateCaptureDependencies_v12030(
                theirs,
                &raw mut node,
                &raw const plain,
                1,
                1,
            );
            raw::ok(update.unwrap());
            raw::ok(raw::driver().cuGraphDestroy(end(theirs)));
        }
        assert!(until(cuda_tests::SOON, || Arc::strong_count(&kept) == 1));
    });
}
