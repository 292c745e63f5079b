//! Work and drops beside a capture leave it valid.

use std::sync::Barrier;

use cuda_handles::capture::{ActiveCapture, CaptureMode};
use cuda_handles::{Buffer, Context, Stream};
use cuda_sys::CUstreamCaptureStatus;
use cuda_tests::{kernel, no_leaks, raw, settle, setup};

const GLOBAL: CaptureMode = CaptureMode::Global;
const THREAD_LOCAL: CaptureMode = CaptureMode::ThreadLocal;

fn begin(stream: &Stream, mode: CaptureMode) -> ActiveCapture {
    stream.begin_capture(mode).unwrap()
}

fn end(capture: ActiveCapture) {
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let stream = capture.stream().as_raw();
    // SAFETY: the stream lives and the out pointer is valid.
    raw::ok(unsafe { raw::driver().cuStreamIsCapturing(stream, &raw mut status) });
    assert_eq!(
        status,
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE,
        "the capture must still be valid"
    );
    capture.end().unwrap();
}

/// One of each thing that is dropped in its own way.
struct Things {
    home: Buffer<u32>,
    shared: Buffer<u32>,
    settled_and_shared: Buffer<u32>,
    stream: Stream,
    event: cuda_handles::Event,
    kernel: cuda_handles::Kernel,
}

fn things(context: &Context) -> Things {
    let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
    let settled_and_shared = home.upload(&[1; 10]).unwrap();
    home.synchronize_blocking().unwrap();
    other.fill(&settled_and_shared, 2).unwrap();
    let shared = home.zeros(10).unwrap();
    other.fill(&shared, 2).unwrap();
    Things {
        home: home.zeros(10).unwrap(),
        shared,
        settled_and_shared,
        stream: other,
        event: context.event().unwrap(),
        kernel: kernel(context, "empty"),
    }
}

fn drop_all(things: Things) {
    let Things { home, shared, settled_and_shared, stream, event, kernel } = things;
    drop((home, shared, settled_and_shared, stream, event, kernel));
}

#[test]
fn drops_on_a_thread_that_captures_leave_the_capture_valid() {
    let context = setup();
    let capturing = context.stream().unwrap();
    for mode in [THREAD_LOCAL, GLOBAL] {
        no_leaks(|| {
            let things = things(&context);
            context.synchronize_blocking().unwrap();
            let capture = begin(&capturing, mode);
            drop_all(things);
            settle();
            end(capture);
        });
    }
}

#[test]
fn drops_beside_another_threads_global_capture_leave_it_valid() {
    let context = setup();
    no_leaks(|| {
        let capturing = context.stream().unwrap();
        let things = things(&context);
        context.synchronize_blocking().unwrap();
        let (begun, dropped) = (Barrier::new(2), Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let capture = begin(&capturing, GLOBAL);
                begun.wait();
                dropped.wait();
                end(capture);
            });
            begun.wait();
            drop_all(things);
            settle();
            dropped.wait();
        });
    });
}

#[test]
fn a_buffer_whose_home_stream_captures_is_freed_after_the_capture() {
    let context = setup();
    no_leaks(|| {
        let capturing = context.stream().unwrap();
        let buffer = capturing.upload(&[1_u32; 10]).unwrap();
        let capture = begin(&capturing, THREAD_LOCAL);
        drop(buffer);
        end(capture);
        settle();
        let again = capturing.upload(&[3_u32; 10]).unwrap();
        assert_eq!(again.read_blocking(&capturing).unwrap(), [3; 10]);
    });
}

#[test]
fn ordinary_work_beside_a_capture_leaves_it_valid() {
    let context = setup();
    let capturing = context.stream().unwrap();
    for mode in [THREAD_LOCAL, GLOBAL] {
        no_leaks(|| {
            let capture = begin(&capturing, mode);
            let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
            let (start, event) = (context.event().unwrap(), context.event().unwrap());
            let buffer = stream.upload(&[1_u32, 2, 3]).unwrap();
            let copy = other.zeros::<u32>(3).unwrap();
            stream.record(&start).unwrap();
            other.copy(&buffer, &copy).unwrap();
            other.fill(copy.slice(..1).unwrap(), 9).unwrap();
            assert_eq!(copy.read_blocking(&other).unwrap(), [9, 2, 3]);
            copy.write_blocking(&stream, &[4, 5, 6]).unwrap();
            stream.record(&event).unwrap();
            event.synchronize_blocking().unwrap();
            assert!(event.query().unwrap());
            event.elapsed_since(&start).unwrap();
            stream.synchronize_blocking().unwrap();
            assert!(stream.query().unwrap());
            context.memory_info().unwrap();
            let increment = kernel(&context, "increment");
            raw::launch(&stream, &increment, 3, &[copy.address(), 3]);
            assert_eq!(copy.read_blocking(&stream).unwrap(), [5, 6, 7]);
            drop((stream, other, start, event, buffer, copy, increment));
            settle();
            end(capture);
        });
    }
}

#[test]
fn what_cannot_be_captured_is_refused_and_the_capture_goes_on() {
    let context = setup();
    no_leaks(|| {
        let (capturing, home) = (context.stream().unwrap(), context.stream().unwrap());
        let buffer = home.upload_blocking(&[1_u32; 8]).unwrap();
        // Its home would have to be waited for as well, which would be of no use.
        let unsettled = home.upload(&[1_u32; 8]).unwrap();
        let capture = begin(&capturing, THREAD_LOCAL);
        let refusals = [
            ("upload", capturing.upload_blocking(&[1_u32]).map(drop)),
            ("read", buffer.read_blocking(&capturing).map(drop)),
            ("write", buffer.write_blocking(&capturing, &[2; 8])),
            ("first read", unsettled.read_blocking(&capturing).map(drop)),
            ("first write", unsettled.write_blocking(&capturing, &[2; 8])),
            ("query", capturing.query().map(drop)),
            ("synchronize", capturing.synchronize_blocking()),
            ("context synchronize", context.synchronize_blocking()),
        ];
        for (what, refusal) in refusals {
            let error = refusal.expect_err(what);
            assert!(matches!(error, cuda_handles::Error::Capturing { .. }), "{what}: {error:?}");
            assert!(error.to_string().contains("captur"), "{what}: {error}");
        }
        end(capture);
        for buffer in [&buffer, &unsettled] {
            assert_eq!(buffer.read_blocking(&home).unwrap(), [1; 8]);
        }
    });
}
