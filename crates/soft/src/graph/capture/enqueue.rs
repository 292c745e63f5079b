//! Work on capturing streams, which becomes nodes instead of running.

use cuda_sys::CUresult;

use super::open_captures;
use super::state::{CaptureState, state};
use crate::driver::result_code::{
    Answer, ILLEGAL_STATE, STREAM_CAPTURE_IMPLICIT, STREAM_CAPTURE_INVALIDATED, STREAM_CAPTURE_UNSUPPORTED,
};
use crate::graph::edit::add;
use crate::graph::model::edge::Edge;
use crate::graph::model::graphs::Graphs;
use crate::graph::model::store::store;
use crate::graph::model::task::Task;
use crate::stream::{Stream, StreamKind};

/// Whether work on a stream is captured; fails if it may not be enqueued at all.
pub(crate) fn is_captured(stream: &Stream) -> Answer<bool> {
    if !open_captures::any() {
        return Ok(false);
    }
    let state = state();
    if stream.kind == StreamKind::Legacy {
        let hit: Vec<u64> = state
            .streams
            .values()
            .filter(|capturing| capturing.blocking && capturing.context == stream.context.id)
            .map(|capturing| capturing.capture)
            .collect();
        hit.iter().for_each(|capture| open_captures::invalidate(*capture));
        return if hit.is_empty() { Ok(false) } else { Err(STREAM_CAPTURE_IMPLICIT) };
    }
    match state.streams.get(&stream.id) {
        None => Ok(false),
        Some(capturing) if open_captures::is_valid(capturing.capture) => Ok(true),
        Some(_) => Err(STREAM_CAPTURE_INVALIDATED),
    }
}

/// Refuses a call on a capturing stream and invalidates the capture.
pub(crate) fn refuse_on(stream: &Stream) -> Answer {
    match is_captured(stream) {
        Ok(false) => Ok(()),
        Ok(true) => {
            invalidate(stream);
            Err(STREAM_CAPTURE_UNSUPPORTED)
        }
        Err(STREAM_CAPTURE_INVALIDATED) => Err(STREAM_CAPTURE_UNSUPPORTED),
        Err(code) => Err(code),
    }
}

/// Invalidates the capture of a stream.
pub(crate) fn invalidate(stream: &Stream) {
    if let Some(capturing) = state().streams.get(&stream.id) {
        open_captures::invalidate(capturing.capture);
    }
}

/// Adds a node for work on a capturing stream. `programmatic` makes edges from kernels
/// programmatic.
pub(crate) fn add(stream: &Stream, task: Task, programmatic: bool) -> Answer<u64> {
    add_with(stream, |graphs, graph, dependencies| {
        let mut dependencies = dependencies.to_vec();
        if programmatic {
            for (node, edge) in &mut dependencies {
                if graphs.node(*node)?.payload.kernel().is_some() {
                    *edge = Edge { from_port: 1, kind: 1 };
                }
            }
        }
        add::add_task(graphs, graph, &dependencies, task)
    })
}

/// Adds a node with `make`, which gets the graph and the dependencies.
fn add_with(
    stream: &Stream,
    make: impl FnOnce(&mut Graphs, u64, &[(u64, Edge)]) -> Answer<u64>,
) -> Answer<u64> {
    add_where_captured(stream, make)?.ok_or(ILLEGAL_STATE)
}

/// As [`add_with`], but `None` if the stream does not capture (any more).
pub(crate) fn add_where_captured(
    stream: &Stream,
    make: impl FnOnce(&mut Graphs, u64, &[(u64, Edge)]) -> Answer<u64>,
) -> Answer<Option<u64>> {
    let mut state = state();
    let CaptureState { streams, captures, .. } = &mut *state;
    let Some(capturing) = streams.get_mut(&stream.id) else { return Ok(None) };
    let mut store = store();
    let graph = captures.get(&capturing.capture).ok_or(ILLEGAL_STATE)?.living(&store.graphs);
    let node = make(&mut store.graphs, graph, &capturing.dependencies)?;
    capturing.dependencies = vec![(node, Edge::default())];
    Ok(Some(node))
}

/// Invalidates the capture of the stream if the result is an error.
pub(crate) fn invalidate_on<T>(stream: &Stream, answer: Result<T, CUresult>) -> Answer<T> {
    answer.inspect_err(|_| invalidate(stream))
}
