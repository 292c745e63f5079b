//! The first use of memory of another stream in a capture: it waits for nothing.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use cuda_handles::capture::CaptureMode;
use cuda_handles::{Context, Error, Stream};
use cuda_tests::{Gate, count, kernel, no_leaks, raw, setup};

/// Memory that is not settled before the gate of its home opens.
fn unsettled(context: &Context) -> (cuda_handles::Buffer<u32>, Stream, Gate) {
    let home = context.stream().unwrap();
    let gate = Gate::close(&home);
    (home.zeros(8).unwrap(), home, gate)
}

#[test]
fn it_waits_for_nothing_and_a_later_plain_use_waits_all_the_same() {
    let context = setup();
    no_leaks(|| {
        let (buffer, home, gate) = unsettled(&context);
        let (stream, done) = (context.stream().unwrap(), context.stream().unwrap());
        let capture = stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
        let (filled, cost) = count(|| stream.fill(&buffer, 5));
        filled.unwrap();
        assert_eq!((cost.total(), cost.calls("cuMemsetD32Async")), (1, 1), "{cost}");
        let other = home.zeros(8).unwrap();
        let (copied, cost) = count(|| stream.copy(&buffer, &other));
        copied.unwrap();
        // The context is current meanwhile.
        cost.assert_calls(&[("cuCtxPushCurrent", 1), ("cuMemcpyDtoDAsync", 1), ("cuCtxPopCurrent", 1)]);
        let (written, cost) = count(|| stream.write(&buffer, &[1; 8]));
        written.unwrap();
        assert_eq!(cost.calls("cuStreamWaitEvent") + cost.calls("cuEventRecord"), 0, "{cost}");
        assert!(buffer.allocation().is_shared() && !buffer.allocation().is_settled());
        let captured = capture.end().unwrap();
        assert_eq!(raw::nodes(captured.graph.as_raw()).len(), 3);
        // The captured uses were no waits of the stream.
        stream.fill(&buffer, 6).unwrap();
        assert!(!stream.query().unwrap());
        assert!(done.query().unwrap());
        gate.open();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [6; 8]);
    });
}

#[test]
fn a_plain_use_before_the_capture_settles_nothing_that_the_graph_needs() {
    let context = setup();
    no_leaks(|| {
        let (buffer, _home, gate) = unsettled(&context);
        let stream = context.stream().unwrap();
        stream.fill(&buffer, 1).unwrap();
        let capture = stream.begin_capture(CaptureMode::Global).unwrap();
        let (filled, cost) = count(|| stream.fill(&buffer, 5));
        filled.unwrap();
        assert_eq!(cost.total(), 1, "{cost}");
        drop(capture.end().unwrap());
        gate.open();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [1; 8]);
    });
}

#[test]
fn the_right_to_enqueue_comes_with_ready_memory() {
    let context = setup();
    let increment = kernel(&context, "increment");
    no_leaks(|| {
        let (buffer, _home, gate) = unsettled(&context);
        let stream = context.stream().unwrap();
        let capture = stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
        assert_eq!(buffer.allocation().ready_on(&stream), Err(Error::CapturedFirstUse));
        let (turn, cost) = count(|| stream.enqueue_ready(&[buffer.allocation()]));
        let turn = turn.unwrap();
        cost.assert_calls(&[]);
        assert!(turn.is_captured().unwrap());
        turn.keep(&buffer).unwrap();
        raw::launch(&stream, &increment, 8, &[buffer.address(), 8]);
        drop(turn);
        let captured = capture.end().unwrap();
        assert_eq!(captured.records.into_owners().len(), 1);
        let turn = stream.enqueue_ready(&[buffer.allocation()]).unwrap();
        raw::launch(&stream, &increment, 8, &[buffer.address(), 8]);
        drop(turn);
        assert!(!stream.query().unwrap());
        gate.open();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [1; 8]);
    });
}

/// The software driver loses the context at a use that is not ordered behind the allocation.
#[test]
fn captures_that_come_and_go_let_no_plain_use_miss_its_wait() {
    let context = setup();
    no_leaks(|| {
        let (home, stream) = (context.stream().unwrap(), context.stream().unwrap());
        let (stop, begun) = (AtomicBool::new(false), Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                begun.wait();
                while !stop.load(Ordering::Relaxed) {
                    drop(stream.begin_capture(CaptureMode::Relaxed).unwrap().end());
                    std::thread::yield_now();
                }
            });
            begun.wait();
            let work = || -> cuda_handles::Result<()> {
                (0..400).try_for_each(|round| {
                    let buffer = home.zeros::<u32>(64)?;
                    stream.fill(&buffer, round)?;
                    // Not on the other stream, which allocates nothing while it captures.
                    stream.copy(&buffer, &home.zeros::<u32>(64)?)
                })
            };
            let worked = work();
            stop.store(true, Ordering::Relaxed);
            worked.unwrap();
        });
        context.synchronize_blocking().unwrap();
    });
}
