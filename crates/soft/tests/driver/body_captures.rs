//! Captures into bodies of conditional nodes. Where the real driver crashes, this one ends the
//! process with a message.

use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_sys::*;

const RELAXED: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
const INVALIDATED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;

/// An IF node with one body, into which a stream captures.
struct Body {
    own: CUgraph,
    node: CUgraphNode,
    stream: CUstream,
}

fn into_body(driver: &Driver, own: CUgraph) -> Body {
    let (mut handle, stream) = (0, stream(driver));
    let mut params = generic(CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL);
    unsafe {
        let made = driver.cuGraphConditionalHandleCreate(&mut handle, own, context(driver), 1, 1);
        assert_eq!(made, Ok(OK));
        params.__bindgen_anon_1.conditional =
            CUDA_CONDITIONAL_NODE_PARAMS { handle, size: 1, ctx: context(driver), ..Default::default() };
        let (answer, node) = add(driver, own, &[], &mut params);
        assert_eq!(answer, OK);
        let body = params.__bindgen_anon_1.conditional.phGraph_out.read();
        let (nodes, edges) = (null(), null());
        let begun = driver.cuStreamBeginCaptureToGraph(stream, body, nodes, edges, 0, RELAXED);
        assert_eq!(begun, Ok(OK));
        Body { own, node, stream }
    }
}

/// A query invalidates the capture; the end discards the body.
fn fail(driver: &Driver, body: &Body) {
    unsafe {
        assert_eq!(driver.cuStreamQuery(body.stream), CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        assert_eq!(driver.cuStreamEndCapture(body.stream, &mut null_mut()), INVALIDATED);
    }
}

#[test]
fn a_body_is_captured_and_runs() {
    leaves_nothing("body_captures::a_body_is_captured_and_runs", || {
        let driver = &session();
        let address = words(driver, 1);
        let body = into_body(driver, graph(driver));
        unsafe {
            assert_eq!(driver.cuMemsetD32Async(address, 5, 1, body.stream), OK);
            assert_eq!(driver.cuStreamEndCapture(body.stream, &mut null_mut()), OK);
            let exec = instantiate(driver, body.own);
            run(driver, exec, body.stream);
            assert_eq!(read(driver, address, 1), [5]);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(body.own), OK);
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(driver.cuStreamDestroy(body.stream), OK);
        }
    });
}

#[test]
fn the_parent_of_a_failed_body_is_not_instantiated() {
    aborts("body_captures::the_parent_of_a_failed_body_is_not_instantiated", "instantiated", || {
        let driver = &session();
        let body = into_body(driver, graph(driver));
        fail(driver, &body);
        // Its slot is reused by another graph, which changes nothing.
        graph(driver);
        refusal(driver, body.own, 0);
    });
}

#[test]
fn the_parent_of_a_failed_body_is_not_destroyed() {
    aborts("body_captures::the_parent_of_a_failed_body_is_not_destroyed", "destroyed", || {
        let driver = &session();
        let body = into_body(driver, graph(driver));
        fail(driver, &body);
        unsafe { driver.cuGraphDestroy(body.own) };
    });
}

#[test]
fn the_node_of_a_failed_body_is_not_destroyed() {
    aborts("body_captures::the_node_of_a_failed_body_is_not_destroyed", "a node is destroyed", || {
        let driver = &session();
        let body = into_body(driver, graph(driver));
        let other = empty(driver, body.own, &[]);
        fail(driver, &body);
        unsafe {
            assert_eq!(driver.cuGraphDestroyNode(other), OK);
            driver.cuGraphDestroyNode(body.node);
        }
    });
}

#[test]
fn an_invalidated_parent_of_a_failed_body_does_not_end() {
    aborts("body_captures::an_invalidated_parent_of_a_failed_body_does_not_end", "capture", || {
        let driver = &session();
        let (own, outer) = (graph(driver), stream(driver));
        unsafe {
            let begun = driver.cuStreamBeginCaptureToGraph(outer, own, null(), null(), 0, RELAXED);
            assert_eq!(begun, Ok(OK));
            let body = into_body(driver, own);
            fail(driver, &body);
            assert_eq!(driver.cuStreamQuery(outer), CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
            driver.cuStreamEndCapture(outer, &mut null_mut());
        }
    });
}

#[test]
fn a_capture_into_a_destroyed_body_does_not_end() {
    aborts("body_captures::a_capture_into_a_destroyed_body_does_not_end", "was destroyed", || {
        let driver = &session();
        let body = into_body(driver, graph(driver));
        unsafe {
            assert_eq!(driver.cuGraphDestroy(body.own), OK);
            // Its slot is reused by another graph, which changes nothing.
            graph(driver);
            driver.cuStreamEndCapture(body.stream, &mut null_mut());
        }
    });
}

#[test]
fn a_stream_that_captures_a_body_is_not_destroyed() {
    aborts("body_captures::a_stream_that_captures_a_body_is_not_destroyed", "the body", || {
        let driver = &session();
        let body = into_body(driver, graph(driver));
        unsafe { driver.cuStreamDestroy(body.stream) };
    });
}

#[test]
fn a_stream_that_captures_a_destroyed_body_is_not_destroyed() {
    aborts(
        "body_captures::a_stream_that_captures_a_destroyed_body_is_not_destroyed",
        "was destroyed",
        || {
            let driver = &session();
            let body = into_body(driver, graph(driver));
            unsafe {
                assert_eq!(driver.cuGraphDestroy(body.own), OK);
                let _ = driver.cuStreamDestroy(body.stream);
            }
        },
    );
}

#[test]
fn a_stream_that_captures_a_destroyed_child_is_not_destroyed() {
    aborts(
        "body_captures::a_stream_that_captures_a_destroyed_child_is_not_destroyed",
        "was destroyed",
        || {
            let driver = &session();
            let (own, inner, stream) = (graph(driver), graph(driver), stream(driver));
            let (mut node, mut embedded) = (null_mut(), null_mut());
            unsafe {
                assert_eq!(driver.cuGraphAddChildGraphNode(&mut node, own, null(), 0, inner), OK);
                assert_eq!(driver.cuGraphChildGraphNodeGetGraph(node, &mut embedded), OK);
                let begun = driver.cuStreamBeginCaptureToGraph(stream, embedded, null(), null(), 0, RELAXED);
                assert_eq!(begun, Ok(OK));
                assert_eq!(driver.cuGraphDestroy(own), OK);
                let _ = driver.cuStreamDestroy(stream);
            }
        },
    );
}
