//! The beginning and the end of a capture.

use cuda_sys::CUstreamCaptureMode;

use super::open_captures;
use super::state::{Capture, state};
use crate::driver::abort::crash;
use crate::driver::result_code::{
    Answer, ILLEGAL_STATE, INVALID_VALUE, STREAM_CAPTURE_INVALIDATED, STREAM_CAPTURE_UNJOINED,
    STREAM_CAPTURE_UNMATCHED, STREAM_CAPTURE_UNSUPPORTED, STREAM_CAPTURE_WRONG_THREAD,
};
use crate::graph::edit::remove;
use crate::graph::model::edge::Edge;
use crate::graph::model::graph::Owner;
use crate::graph::model::hierarchy;
use crate::graph::model::store::store;
use crate::stream::{Stream, StreamKind};

/// Begins a capture; `into` is an existing graph and the dependencies of the first node.
pub(crate) fn begin(
    stream: &Stream,
    mode: CUstreamCaptureMode,
    into: Option<(u64, Vec<(u64, Edge)>)>,
) -> Answer {
    if stream.kind == StreamKind::Legacy {
        return Err(STREAM_CAPTURE_UNSUPPORTED);
    }
    if mode.0 > 2 {
        return Err(INVALID_VALUE);
    }
    let mut state = state();
    if state.streams.contains_key(&stream.id) {
        return Err(ILLEGAL_STATE);
    }
    let (graph, dependencies) = match into {
        Some((graph, dependencies)) => {
            if state.captures.values().any(|capture| capture.graph == graph) {
                return Err(ILLEGAL_STATE);
            }
            (graph, dependencies)
        }
        None => (store().graphs.create(Owner::User), Vec::new()),
    };
    let uid = store().graphs.graph(graph)?.uid;
    let capture = open_captures::begin(mode);
    state.captures.insert(capture, Capture { graph, uid, origin: stream.id });
    state.enter(stream, capture, dependencies);
    Ok(())
}

fn discard(graph: u64) {
    let leftovers = {
        let mut store = store();
        hierarchy::ensure_whole(
            &store.graphs,
            store.graphs.nodes_of(graph).unwrap_or_default(),
            "the capture of a graph fails",
        );
        remove::remove_graph(&mut store.graphs, graph)
    };
    leftovers.end();
}

/// Ends the capture that began on this stream; returns the graph. A failure discards it.
pub(crate) fn end(stream: &Stream) -> Answer<u64> {
    let (graph, failure) = {
        let mut state = state();
        let capture = state.streams.get(&stream.id).ok_or(ILLEGAL_STATE)?.capture;
        let own = state.captures.get(&capture).ok_or(ILLEGAL_STATE)?;
        let origin = own.origin;
        own.living(&store().graphs);
        if origin != stream.id {
            open_captures::invalidate(capture);
            return Err(STREAM_CAPTURE_UNMATCHED);
        }
        let failure = if !open_captures::is_valid(capture) {
            Some(STREAM_CAPTURE_INVALIDATED)
        } else if !open_captures::may_end(capture) {
            Some(STREAM_CAPTURE_WRONG_THREAD)
        } else if !state.is_joined(capture, origin) {
            Some(STREAM_CAPTURE_UNJOINED)
        } else {
            None
        };
        (state.close(capture), failure)
    };
    match failure {
        None => Ok(graph),
        Some(code) => {
            discard(graph);
            Err(code)
        }
    }
}

/// Ends the capture of a stream that is destroyed.
pub(crate) fn forget_stream(stream: &Stream) {
    let graph = {
        let mut state = state();
        let Some(capture) = state.streams.get(&stream.id).map(|capturing| capturing.capture) else { return };
        let Some(own) = state.captures.get(&capture).filter(|own| own.origin == stream.id) else { return };
        let owner = {
            let store = store();
            store.graphs.graph(own.living(&store.graphs)).map(|graph| graph.owner)
        };
        if matches!(owner, Ok(Owner::Body { .. })) {
            crash("a stream is destroyed that captures the body of a conditional node");
        }
        state.close(capture)
    };
    discard(graph);
}
