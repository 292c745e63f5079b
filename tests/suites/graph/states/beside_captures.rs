//! Operations on graphs beside a capture.

use core::ptr;

use cuda_graph::ContextExt;
use cuda_handles::Stream;
use cuda_launch::{params, per};
use cuda_sys::{CUresult, CUstreamCaptureMode};
use cuda_tests::{kernel, no_leaks, raw, settle, setup};

/// Begins a capture, if the driver can.
fn begin(stream: &Stream, mode: CUstreamCaptureMode) -> bool {
    // SAFETY: the stream lives.
    let result = unsafe { raw::driver().cuStreamBeginCapture(stream.as_raw(), mode) };
    if result == CUresult::CUDA_ERROR_NOT_SUPPORTED {
        return false;
    }
    raw::ok(result);
    true
}

fn end(stream: &Stream) {
    let mut graph = ptr::null_mut();
    // SAFETY: the stream lives; the graph that comes back is destroyed.
    raw::ok(unsafe { raw::driver().cuStreamEndCapture(stream.as_raw(), &raw mut graph) });
    // SAFETY: as above.
    raw::ok(unsafe { raw::driver().cuGraphDestroy(graph) });
}

#[test]
fn drawing_instantiating_launching_and_dropping_beside_a_capture_leave_it_valid() {
    let context = setup();
    let increment = kernel(&context, "increment");
    let (capturing, stream) = (context.stream().unwrap(), context.stream().unwrap());
    for mode in [
        CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
    ] {
        no_leaks(|| {
            let buffer = stream.zeros::<u32>(8).unwrap();
            stream.synchronize_blocking().unwrap();
            if !begin(&capturing, mode) {
                println!("skipped: the driver under test does not capture yet");
                return;
            }
            let graph = context.graph().unwrap();
            // SAFETY: the arguments are the kernel's, and the count is the buffer's.
            let node = unsafe { graph.root().launch_untyped(&increment, per(8, 8), params![&buffer, 8_u32]) }
                .unwrap();
            let mut exec = graph.instantiate().unwrap();
            exec.upload(&stream).unwrap();
            exec.launch(&stream).unwrap();
            node.remove().unwrap();
            drop((exec, graph, node));
            settle();
            end(&capturing);
            assert_eq!(buffer.read_blocking(&stream).unwrap(), [1; 8]);
        });
    }
}

#[test]
fn a_launch_into_a_capturing_stream_is_refused() {
    let context = setup();
    no_leaks(|| {
        let capturing = context.stream().unwrap();
        let mut exec = context.graph().unwrap().instantiate().unwrap();
        if !begin(&capturing, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
            cuda_tests::skip!("the driver under test does not capture yet");
        }
        let error = exec.launch(&capturing).unwrap_err();
        assert!(error.to_string().contains("captur"), "{error}");
        let mut graph = ptr::null_mut();
        // SAFETY: the stream lives; a graph that comes back is destroyed.
        unsafe {
            let _ = raw::driver().cuStreamEndCapture(capturing.as_raw(), &raw mut graph);
            if !graph.is_null() {
                raw::ok(raw::driver().cuGraphDestroy(graph));
            }
        }
    });
}
