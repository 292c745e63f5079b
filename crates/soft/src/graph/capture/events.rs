//! Events that are recorded and waited for in captures.

use super::enqueue::is_captured;
use super::open_captures;
use super::state::{CaptureState, CapturedEvent, state};
use crate::driver::result_code::{
    Answer, CAPTURED_EVENT, INVALID_VALUE, STREAM_CAPTURE_IMPLICIT, STREAM_CAPTURE_INVALIDATED,
    STREAM_CAPTURE_ISOLATION, STREAM_CAPTURE_MERGE,
};
use crate::graph::model::edge::Edge;
use crate::stream::{Stream, StreamKind};

/// Records an event in a capturing stream.
pub(crate) fn record(stream: &Stream, event: u64) {
    let mut state = state();
    let CaptureState { streams, events, .. } = &mut *state;
    if let Some(capturing) = streams.get(&stream.id) {
        let recorded = CapturedEvent { capture: capturing.capture, nodes: capturing.dependencies.clone() };
        events.insert(event, recorded);
    }
}

/// Records an event that a captured kernel triggers. Work that waits for it gets this edge from the
/// node.
pub(crate) fn record_node(stream: &Stream, event: u64, node: u64, edge: Edge) {
    let mut state = state();
    let CaptureState { streams, events, .. } = &mut *state;
    if let Some(capturing) = streams.get(&stream.id) {
        events.insert(event, CapturedEvent { capture: capturing.capture, nodes: vec![(node, edge)] });
    }
}

/// Forgets the captured record of an event that is recorded elsewhere or destroyed.
pub(crate) fn forget_event(event: u64) {
    state().events.remove(&event);
}

/// The kind of a wait for an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The capture has recorded it.
    Captured,
    /// A wait of the stream itself.
    Plain,
}

/// A stream waits for an event. It joins the capture of the event.
pub(crate) fn wait(stream: &Stream, event: u64, was_recorded: bool) -> Answer<Wait> {
    let captured = is_captured(stream)?;
    let mut state = state();
    let Some(recorded) = state.events.get(&event).cloned() else {
        if !captured || !was_recorded {
            return if captured { Ok(Wait::Captured) } else { Ok(Wait::Plain) };
        }
        if let Some(capturing) = state.streams.get(&stream.id) {
            open_captures::invalidate(capturing.capture);
        }
        return Err(STREAM_CAPTURE_ISOLATION);
    };
    if !open_captures::is_open(recorded.capture) {
        return Err(INVALID_VALUE);
    }
    if stream.kind == StreamKind::Legacy {
        open_captures::invalidate(recorded.capture);
        return Err(STREAM_CAPTURE_IMPLICIT);
    }
    if !open_captures::is_valid(recorded.capture) {
        return Err(STREAM_CAPTURE_INVALIDATED);
    }
    match state.streams.get_mut(&stream.id) {
        None => state.enter(stream, recorded.capture, recorded.nodes),
        Some(capturing) if capturing.capture == recorded.capture => {
            for (node, edge) in recorded.nodes {
                if !capturing.dependencies.iter().any(|(known, _)| *known == node) {
                    capturing.dependencies.push((node, edge));
                }
            }
        }
        Some(capturing) => {
            open_captures::invalidate(capturing.capture);
            open_captures::invalidate(recorded.capture);
            return Err(STREAM_CAPTURE_MERGE);
        }
    }
    Ok(Wait::Captured)
}

/// Fails if the host queries or waits for a captured event. The capture is invalidated if
/// `invalidates` is set.
pub(crate) fn check_event(event: u64, invalidates: bool) -> Answer {
    let state = state();
    let Some(recorded) = state.events.get(&event) else { return Ok(()) };
    if !open_captures::is_open(recorded.capture) {
        return Err(INVALID_VALUE);
    }
    if invalidates {
        open_captures::invalidate(recorded.capture);
    }
    Err(CAPTURED_EVENT)
}
