//! What invalidates a capture, what it answers then, and how it ends.

use std::ffi::c_void;
use std::ptr::{null, null_mut, with_exposed_provenance_mut};
use std::thread;

use cuda_sys::*;
use cuda_tests::needs;

use crate::common::table::{Table, said};
use crate::common::*;

type Mode = CUstreamCaptureMode;
const GLOBAL: Mode = Mode::CU_STREAM_CAPTURE_MODE_GLOBAL;
const RELAXED: Mode = Mode::CU_STREAM_CAPTURE_MODE_RELAXED;
const MODES: [Mode; 3] = [GLOBAL, Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, RELAXED];

const IMPLICIT: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
const INVALID_HANDLE: CUresult = CUresult::CUDA_ERROR_INVALID_HANDLE;
const INVALIDATED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;

fn begin(s: &Session, stream: CUstream, mode: Mode) {
    assert_eq!(unsafe { s.cuStreamBeginCapture(stream, mode) }, OK);
}

/// Ends a capture and destroys its graph, if there is one.
fn end(s: &Driver, stream: CUstream) -> CUresult {
    let mut graph = null_mut();
    let answer = unsafe { s.cuStreamEndCapture(stream, &mut graph) };
    assert_eq!(answer == OK, !graph.is_null());
    if answer == OK {
        assert_eq!(unsafe { s.cuGraphDestroy(graph) }, OK);
    }
    answer
}

fn is_valid(s: &Session, stream: CUstream) -> bool {
    let mut status = CUstreamCaptureStatus(9);
    assert_eq!(unsafe { s.cuStreamIsCapturing(stream, &mut status) }, OK);
    status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
}

/// Makes a call in a capture of its own: the answer, and whether the capture goes on.
fn in_capture(s: &Session, call: impl FnOnce() -> CUresult) -> String {
    begin(s, s.stream, GLOBAL);
    let answer = call();
    let valid = is_valid(s, s.stream);
    assert_eq!(end(s, s.stream), if valid { OK } else { INVALIDATED });
    format!("{}, {}", said(answer), if valid { "goes on" } else { "invalidated" })
}

#[test]
fn null_handles_in_a_capture() {
    let s = session();
    let mut table = Table::default();
    let mut none = [null_mut::<c_void>(); 2];
    let fill = s.words(1);
    unsafe {
        table.row("wait for no event", in_capture(&s, || s.cuStreamWaitEvent(s.stream, null_mut(), 0)));
        table.row("record of no event", in_capture(&s, || s.cuEventRecord(null_mut(), s.stream)));
        table.row("no host function", in_capture(&s, || s.cuLaunchHostFunc(s.stream, None, null_mut())));
        let no_function =
            || s.cuLaunchKernel(null_mut(), 1, 1, 1, 1, 1, 1, 0, s.stream, none.as_mut_ptr(), null_mut());
        table.row("no function", in_capture(&s, no_function));
        table.row("unaligned fill", in_capture(&s, || s.cuMemsetD32Async(fill + 1, 0, 1, s.stream)));
    }
    s.free(fill);
    table.is("wait for no event: INVALID_HANDLE, invalidated
        record of no event: INVALID_HANDLE, goes on
        no host function: INVALID_VALUE, goes on
        no function: INVALID_HANDLE, goes on
        unaligned fill: INVALID_VALUE, goes on");
}

#[test]
fn the_wait_for_no_event_is_harmless_without_a_capture() {
    let s = session();
    unsafe {
        assert_eq!(s.cuStreamWaitEvent(s.stream, null_mut(), 0), INVALID_HANDLE);
        assert_eq!(s.cuStreamWaitEvent(null_mut(), null_mut(), 0), INVALID_HANDLE);
        assert_eq!(s.cuStreamSynchronize(s.stream), OK);
    }
}

#[test]
fn the_legacy_stream_stays_forbidden_beside_an_invalid_capture() {
    let s = session();
    let (mut stream, word) = (null_mut(), s.words(1));
    assert_eq!(unsafe { s.cuStreamCreate(&mut stream, 0) }, OK);
    for mode in MODES {
        begin(&s, stream, mode);
        let (mut address, mut value, function) = (word, 1u64, s.function("add"));
        let mut pointers: [*mut c_void; 2] = [(&raw mut address).cast(), (&raw mut value).cast()];
        let launched = unsafe {
            s.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, null_mut(), pointers.as_mut_ptr(), null_mut())
        };
        assert_eq!(launched, IMPLICIT, "{mode:?}");
        assert!(!is_valid(&s, stream), "{mode:?}");
        let mut seen = 7u32;
        unsafe {
            assert_eq!(s.cuMemcpyDtoH((&raw mut seen).cast(), word, 4), IMPLICIT, "{mode:?}");
            assert_eq!(s.cuMemcpyHtoD(word, (&raw const seen).cast(), 4), IMPLICIT, "{mode:?}");
        }
        assert_eq!(end(&s, stream), INVALIDATED, "{mode:?}");
    }
    // The copies were not made.
    assert_eq!(s.read(word), 0);
    assert_eq!(unsafe { s.cuStreamDestroy(stream) }, OK);
    s.free(word);
}

#[test]
fn an_invalid_capture_ends_on_another_thread_once_its_own_is_gone() {
    let s = session();
    let stream = s.stream.expose_provenance();
    // The harness would end the thread with its captures.
    let driver = cuda_tests::raw::driver();
    thread::spawn(move || {
        let stream = with_exposed_provenance_mut(stream);
        assert_eq!(unsafe { driver.cuStreamBeginCapture(stream, GLOBAL) }, OK);
    })
    .join()
    .unwrap();
    let mut address = 0;
    let forbidden = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    assert_eq!(unsafe { s.cuMemAlloc(&mut address, 4) }, forbidden);
    assert_eq!(end(&s, s.stream), INVALIDATED);
    assert_eq!(end(&s, s.stream), CUresult::CUDA_ERROR_ILLEGAL_STATE);
}

#[test]
fn a_picture_of_a_graph_whose_body_lost_its_capture() {
    cuda_tests::alone!();
    let s = session();
    needs!(Conditionals);
    let own = s.graph();
    let handle = s.condition(own, 0);
    let (_, bodies) = s.conditional(own, &[], handle, (IF, 1));
    let answer = unsafe { s.cuStreamBeginCaptureToGraph(s.stream, bodies[0], null(), null(), 0, RELAXED) };
    assert_eq!(answer.unwrap(), OK);
    // Nothing may wait for the context.
    assert_ne!(unsafe { s.cuCtxSynchronize() }, OK);
    let folder = std::env::temp_dir().join(format!("cuda-tests-{}.dot", std::process::id()));
    let path = std::ffi::CString::new(folder.to_str().unwrap()).unwrap();
    assert_eq!(unsafe { s.cuGraphDebugDotPrint(own, path.as_ptr(), 0) }, OK);
    assert_eq!(end(&s, s.stream), INVALIDATED);
    // The body is gone. Destroying the graph would crash.
    assert_eq!(unsafe { s.cuGraphDebugDotPrint(own, path.as_ptr(), 0) }, OK);
    std::fs::remove_file(folder).unwrap();
}
