//! Queries of captures, and changes to the dependencies of the next captured node.

use std::sync::Arc;

use cuda_sys::{CUgraphEdgeData, CUgraphNode};

use super::open_captures;
use super::state::{CaptureState, CapturingStream, state};
use crate::driver::handle::to_raw;
use crate::driver::result_code::{
    Answer, ILLEGAL_STATE, INVALID_VALUE, LOSSY_QUERY, STREAM_CAPTURE_IMPLICIT, STREAM_CAPTURE_INVALIDATED,
};
use crate::graph::model::edge::Edge;
use crate::graph::model::store::store;
use crate::stream::{Stream, StreamKind};

/// Whether a graph is being captured into.
pub(crate) fn is_capturing(graph: u64) -> bool {
    open_captures::any() && state().captures.values().any(|capture| capture.graph == graph)
}

/// Whether a node belongs to a graph that is being captured into, whoever added the node.
pub(crate) fn holds(node: u64) -> bool {
    if !open_captures::any() {
        return false;
    }
    let state = state();
    let graph = store().graphs.node(node).map(|node| node.graph);
    graph.is_ok_and(|graph| state.captures.values().any(|capture| capture.graph == graph))
}

/// The capture state of a stream.
#[derive(Debug)]
pub(crate) enum Info {
    None,
    Invalidated,
    Active { id: u64, graph: u64, nodes: *const CUgraphNode, edges: *const CUgraphEdgeData, count: usize },
}

/// The capture state of a stream. The arrays live until the next query of the stream or the end of
/// the capture.
pub(crate) fn info(stream: &Arc<Stream>, wants_nodes: bool, takes_edges: bool) -> Answer<Info> {
    let mut state = state();
    let CaptureState { streams, captures, .. } = &mut *state;
    let Some(capturing) = streams.get_mut(&stream.id) else { return Ok(Info::None) };
    if !open_captures::is_valid(capturing.capture) {
        return Ok(Info::Invalidated);
    }
    if wants_nodes && !takes_edges && capturing.dependencies.iter().any(|(_, edge)| !edge.is_plain()) {
        return Err(LOSSY_QUERY);
    }
    capturing.nodes = capturing.dependencies.iter().map(|(node, _)| to_raw(*node)).collect();
    capturing.edges = capturing.dependencies.iter().map(|(_, edge)| edge.raw()).collect();
    let graph = captures.get(&capturing.capture).map_or(0, |capture| capture.graph);
    Ok(Info::Active {
        id: capturing.capture,
        graph,
        nodes: capturing.nodes.as_ptr(),
        edges: capturing.edges.as_ptr(),
        count: capturing.nodes.len(),
    })
}

/// Fails if the legacy stream may not be queried, because a blocking stream of its context
/// captures. The capture stays valid.
pub(crate) fn check_legacy_question(stream: &Stream) -> Answer {
    let state = state();
    let hit = |capturing: &CapturingStream| capturing.blocking && capturing.context == stream.context.id;
    let forbidden = stream.kind == StreamKind::Legacy && state.streams.values().any(hit);
    if forbidden { Err(STREAM_CAPTURE_IMPLICIT) } else { Ok(()) }
}

/// `cuStreamUpdateCaptureDependencies`: adds to or replaces what the next node depends on.
pub(crate) fn update(stream: &Stream, nodes: &[(u64, Edge)], replace: bool) -> Answer {
    let mut state = state();
    let CaptureState { streams, captures, .. } = &mut *state;
    let capturing = streams.get_mut(&stream.id).ok_or(ILLEGAL_STATE)?;
    if !open_captures::is_valid(capturing.capture) {
        return Err(STREAM_CAPTURE_INVALIDATED);
    }
    let graph = captures.get(&capturing.capture).map_or(0, |capture| capture.graph);
    let store = store();
    for (node, _) in nodes {
        if store.graphs.node(*node)?.graph != graph {
            return Err(INVALID_VALUE);
        }
    }
    if replace {
        capturing.dependencies.clear();
    }
    for (node, edge) in nodes {
        if !capturing.dependencies.iter().any(|(known, _)| known == node) {
            capturing.dependencies.push((*node, *edge));
        }
    }
    Ok(())
}
