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

/// The types of the nodes of a captured graph, which is destroyed.
fn ended_nodes(s: &Session) -> Vec<CUgraphNodeType> {
    let mut graph = null_mut();
    assert_eq!(unsafe { s.cuStreamEndCapture(s.stream, &mut graph) }, OK);
    let kinds = cuda_tests::raw::nodes(graph).into_iter().map(|node| {
        let mut kind = CUgraphNodeType(0);
        assert_eq!(unsafe { s.cuGraphNodeGetType(node, &mut kind) }, OK);
        kind
    });
    let kinds = kinds.collect();
    s.destroy(&[graph]);
    kinds
}

/// External records and waits are for captures. The header of CUDA calls the flag invalid outside.
#[test]
fn external_records_and_waits_are_for_captures() {
    const EXTERNAL: u32 = 1;
    let s = session();
    let (mut event, mut captured, mut other) = (null_mut(), null_mut(), null_mut());
    let mut table = Table::default();
    unsafe {
        assert_eq!(s.cuEventCreate(&mut event, 0), OK);
        assert_eq!(s.cuEventCreate(&mut captured, 0), OK);
        assert_eq!(s.cuStreamCreate(&mut other, 1), OK);
    }
    let record = |event, stream| said(unsafe { s.cuEventRecordWithFlags(event, stream, EXTERNAL) });
    let wait = |event, stream| said(unsafe { s.cuStreamWaitEvent(stream, event, EXTERNAL) });
    table.row("record", record(event, s.stream));
    table.row("record on the legacy stream", record(event, null_mut()));
    table.row("record of no event", record(null_mut(), s.stream));
    table.row("wait for an event without a record", wait(event, s.stream));
    unsafe {
        assert_eq!(s.cuEventRecordWithFlags(event, s.stream, 0), OK);
        assert_eq!(s.cuStreamWaitEvent(s.stream, event, 0), OK);
    }
    table.row("wait", wait(event, s.stream));
    table.row("wait on the legacy stream", wait(event, null_mut()));
    table.row("wait for no event", wait(null_mut(), s.stream));
    begin(&s, other, RELAXED);
    assert_eq!(unsafe { s.cuEventRecord(captured, other) }, OK);
    table.row("record of a captured event", record(captured, s.stream));
    table.row("wait for a captured event", wait(captured, s.stream));
    table.row("that capture", if is_valid(&s, other) { "goes on" } else { "invalidated" });
    end(&s, other);
    unsafe {
        begin(&s, s.stream, RELAXED);
        assert_eq!(s.cuEventRecordWithFlags(event, s.stream, EXTERNAL), OK);
        assert_eq!(s.cuStreamWaitEvent(s.stream, event, EXTERNAL), OK);
        let (record, wait) = (
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT,
        );
        assert_eq!(ended_nodes(&s), [record, wait]);
        assert_eq!(s.cuStreamSynchronize(s.stream), OK);
        for event in [event, captured] {
            assert_eq!(s.cuEventDestroy(event), OK);
        }
        assert_eq!(s.cuStreamDestroy(other), OK);
    }
    table.is("record: ILLEGAL_STATE
        record on the legacy stream: ILLEGAL_STATE
        record of no event: INVALID_HANDLE
        wait for an event without a record: ILLEGAL_STATE
        wait: ILLEGAL_STATE
        wait on the legacy stream: ILLEGAL_STATE
        wait for no event: INVALID_HANDLE
        record of a captured event: ILLEGAL_STATE
        wait for a captured event: ILLEGAL_STATE
        that capture: goes on");
}

#[test]
fn an_invalid_capture_is_told_before_anything_else() {
    let s = session();
    begin(&s, s.stream, GLOBAL);
    unsafe {
        assert_ne!(s.cuStreamQuery(s.stream), OK);
        for flags in [0, 1, 2, 7] {
            assert_eq!(s.cuStreamWaitEvent(s.stream, null_mut(), flags), INVALIDATED, "{flags}");
        }
        assert_eq!(s.cuEventRecord(null_mut(), s.stream), INVALIDATED);
    }
    assert_eq!(end(&s, s.stream), INVALIDATED);
}

#[test]
fn an_empty_capture_ends_well_whatever_became_of_its_graph() {
    cuda_tests::alone!();
    let s = session();
    needs!(Conditionals);
    let into = |graph| {
        let stream = crate::calls::stream(&s);
        let begun = unsafe { s.cuStreamBeginCaptureToGraph(stream, graph, null(), null(), 0, RELAXED) };
        assert_eq!(begun.unwrap(), OK);
        stream
    };
    let body = || {
        let own = s.graph();
        let handle = s.condition(own, 0);
        let (node, bodies) = s.conditional(own, &[], handle, (IF, 1));
        (own, node, bodies[0])
    };
    let inside = || {
        let (own, inner) = (s.graph(), s.graph());
        let node = s.child(own, inner).1;
        (own, node, s.embedded(node))
    };
    let finish = |stream| unsafe { s.cuStreamEndCapture(stream, &mut null_mut()) };
    for make in [&body as &dyn Fn() -> (CUgraph, CUgraphNode, CUgraph), &inside] {
        let (own, _, graph) = make();
        let stream = into(graph);
        assert_eq!(unsafe { s.cuGraphDestroy(own) }, OK);
        assert_eq!(finish(stream), OK);
        let (_, node, graph) = make();
        let stream = into(graph);
        assert_eq!(unsafe { s.cuGraphDestroyNode(node) }, OK);
        assert_eq!(finish(stream), OK);
        // With the graph in its place, the stream may be destroyed, too.
        let (.., graph) = make();
        assert_eq!(unsafe { s.cuStreamDestroy(into(graph)) }, OK);
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
