//! Stream capture: what is enqueued on a capturing stream becomes nodes of a graph.

pub(crate) mod open_captures;

use crate::graph::edit::add;
use crate::graph::edit::remove;
use crate::graph::model::hierarchy;
use crate::sync::lock;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use cuda_sys::{CUgraphEdgeData, CUgraphNode, CUresult, CUstreamCaptureMode};

use crate::device::loss::crash;
use crate::driver::handle::to_raw;
use crate::driver::result_code::{
    Answer, CAPTURED_EVENT, ILLEGAL_STATE, INVALID_VALUE, LOSSY_QUERY, STREAM_CAPTURE_IMPLICIT,
    STREAM_CAPTURE_INVALIDATED, STREAM_CAPTURE_ISOLATION, STREAM_CAPTURE_MERGE, STREAM_CAPTURE_UNJOINED,
    STREAM_CAPTURE_UNMATCHED, STREAM_CAPTURE_UNSUPPORTED, STREAM_CAPTURE_WRONG_THREAD,
};
use crate::graph::model::edge::Edge;
use crate::graph::model::graph::Owner;
use crate::graph::model::graphs::Graphs;
use crate::graph::model::store::store;
use crate::graph::model::task::Task;
use crate::stream::{Stream, StreamKind};

/// A capturing stream: its capture and what the next node will depend on.
#[derive(Debug)]
struct CapturingStream {
    capture: u64,
    dependencies: Vec<(u64, Edge)>,
    blocking: bool,
    context: u64,
    /// The arrays that were last handed out.
    nodes: Vec<CUgraphNode>,
    edges: Vec<CUgraphEdgeData>,
}

// SAFETY: the pointers are handles, never followed.
unsafe impl Send for CapturingStream {}

/// An open capture.
#[derive(Debug)]
struct Capture {
    graph: u64,
    /// The graph's, as it may be destroyed meanwhile with one that it is part of.
    uid: u64,
    origin: u64,
}

impl Capture {
    /// The graph, which has to be there still.
    fn living(&self, graphs: &Graphs) -> u64 {
        if graphs.graph(self.graph).map(|graph| graph.uid) != Ok(self.uid) {
            crash("a capture goes on or ends whose graph was destroyed with the graph that it is part of");
        }
        self.graph
    }
}

/// An event recorded in a capture: the capture and the nodes it stands for.
#[derive(Debug, Clone)]
struct CapturedEvent {
    capture: u64,
    nodes: Vec<(u64, Edge)>,
}

#[derive(Debug, Default)]
struct CaptureState {
    /// By the stream's id.
    streams: HashMap<u64, CapturingStream>,
    captures: HashMap<u64, Capture>,
    /// By the event's handle.
    events: HashMap<u64, CapturedEvent>,
}

static CAPTURES: Mutex<Option<CaptureState>> = Mutex::new(None);

struct Guard(MutexGuard<'static, Option<CaptureState>>);

impl Guard {
    fn get(&mut self) -> &mut CaptureState {
        self.0.get_or_insert_default()
    }
}

fn state() -> Guard {
    Guard(lock(&CAPTURES))
}

/// Whether work on a stream is captured; an error where it may not be enqueued at all.
pub(crate) fn is_captured(stream: &Stream) -> Answer<bool> {
    if !open_captures::any() {
        return Ok(false);
    }
    let mut state = state();
    let state = state.get();
    if stream.kind == StreamKind::Legacy {
        let hit: Vec<u64> = state
            .streams
            .values()
            .filter(|capturing| {
                capturing.blocking
                    && capturing.context == stream.context.id
                    && open_captures::is_valid(capturing.capture)
            })
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

/// A call that is refused on a capturing stream and invalidates its capture.
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
    if let Some(capturing) = state().get().streams.get(&stream.id) {
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

/// Adds a node by `make`, which gets the graph and the dependencies.
fn add_with(
    stream: &Stream,
    make: impl FnOnce(&mut Graphs, u64, &[(u64, Edge)]) -> Answer<u64>,
) -> Answer<u64> {
    add_where_captured(stream, make)?.ok_or(ILLEGAL_STATE)
}

/// As [`add_with`], but `None` where the stream does not capture, or no more since it was asked.
pub(crate) fn add_where_captured(
    stream: &Stream,
    make: impl FnOnce(&mut Graphs, u64, &[(u64, Edge)]) -> Answer<u64>,
) -> Answer<Option<u64>> {
    let mut state = state();
    let state = state.get();
    let Some(capturing) = state.streams.get_mut(&stream.id) else { return Ok(None) };
    let mut store = store();
    let graph = state.captures.get(&capturing.capture).ok_or(ILLEGAL_STATE)?.living(&store.graphs);
    let node = make(&mut store.graphs, graph, &capturing.dependencies)?;
    capturing.dependencies = vec![(node, Edge::default())];
    Ok(Some(node))
}

/// Begins a capture; `into` is a given graph and what the first node depends on.
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
    let state = state.get();
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

impl CaptureState {
    fn enter(&mut self, stream: &Stream, capture: u64, dependencies: Vec<(u64, Edge)>) {
        self.streams.insert(
            stream.id,
            CapturingStream {
                capture,
                dependencies,
                blocking: stream.kind == StreamKind::Blocking,
                context: stream.context.id,
                nodes: Vec::new(),
                edges: Vec::new(),
            },
        );
    }

    /// Ends a capture in all its streams; the graph.
    fn close(&mut self, capture: u64) -> u64 {
        open_captures::end(capture);
        self.streams.retain(|_, capturing| capturing.capture != capture);
        self.captures.remove(&capture).map_or(0, |capture| capture.graph)
    }

    /// Whether every stream's work leads to the origin.
    fn is_joined(&self, capture: u64, origin: u64) -> bool {
        let store = store();
        let mut reached = HashSet::new();
        let ends = self.streams.get(&origin).into_iter().flat_map(|capturing| &capturing.dependencies);
        let mut open: Vec<u64> = ends.map(|(node, _)| *node).collect();
        while let Some(node) = open.pop() {
            if reached.insert(node) {
                open.extend(store.graphs.node(node).into_iter().flat_map(|node| node.dependencies.keys()));
            }
        }
        let forks = self.streams.values().filter(|capturing| capturing.capture == capture);
        forks.flat_map(|capturing| &capturing.dependencies).all(|(node, _)| reached.contains(node))
    }
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

/// Ends the capture of its origin: the graph. Any failure discards it.
pub(crate) fn end(stream: &Stream) -> Answer<u64> {
    let (graph, failure) = {
        let mut state = state();
        let state = state.get();
        let capture = state.streams.get(&stream.id).ok_or(ILLEGAL_STATE)?.capture;
        let own = state.captures.get(&capture).ok_or(ILLEGAL_STATE)?;
        let origin = own.origin;
        own.living(&store().graphs);
        if origin != stream.id {
            open_captures::invalidate(capture);
            return Err(STREAM_CAPTURE_UNMATCHED);
        }
        let failure = if !open_captures::may_end(capture) {
            Some(STREAM_CAPTURE_WRONG_THREAD)
        } else if !open_captures::is_valid(capture) {
            Some(STREAM_CAPTURE_INVALIDATED)
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

/// A stream is destroyed: the capture that it began is over.
pub(crate) fn forget_stream(stream: &Stream) {
    let graph = {
        let mut state = state();
        let state = state.get();
        let Some(capture) = state.streams.get(&stream.id).map(|capturing| capturing.capture) else { return };
        let Some(own) = state.captures.get(&capture).filter(|own| own.origin == stream.id) else { return };
        if matches!(store().graphs.graph(own.graph).map(|graph| graph.owner), Ok(Owner::Body { .. })) {
            crash("a stream is destroyed that captures the body of a conditional node");
        }
        state.close(capture)
    };
    discard(graph);
}

/// Records an event in a capturing stream.
pub(crate) fn record(stream: &Stream, event: u64) {
    let mut state = state();
    let state = state.get();
    if let Some(capturing) = state.streams.get(&stream.id) {
        let recorded = CapturedEvent { capture: capturing.capture, nodes: capturing.dependencies.clone() };
        state.events.insert(event, recorded);
    }
}

/// Records an event that a captured kernel triggers: what waits for it depends on that node by that
/// edge.
pub(crate) fn record_node(stream: &Stream, event: u64, node: u64, edge: Edge) {
    let mut state = state();
    let state = state.get();
    if let Some(capturing) = state.streams.get(&stream.id) {
        state.events.insert(event, CapturedEvent { capture: capturing.capture, nodes: vec![(node, edge)] });
    }
}

/// The event is recorded outside or destroyed: what it stood for in a capture is over.
pub(crate) fn forget_event(event: u64) {
    state().get().events.remove(&event);
}

/// What to do about a wait for an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The capture has it all.
    Captured,
    /// An ordinary wait.
    Plain,
}

/// A stream waits for an event: joins or enters the event's capture.
pub(crate) fn wait(stream: &Stream, event: u64, was_recorded: bool) -> Answer<Wait> {
    let captured = is_captured(stream)?;
    let mut state = state();
    let state = state.get();
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

/// The answer of a query or wait of the host for an event that a capture has; `invalidates` the
/// capture with it.
pub(crate) fn check_event(event: u64, invalidates: bool) -> Answer {
    let mut state = state();
    let Some(recorded) = state.get().events.get(&event) else { return Ok(()) };
    if !open_captures::is_open(recorded.capture) {
        return Err(INVALID_VALUE);
    }
    if invalidates {
        open_captures::invalidate(recorded.capture);
    }
    Err(CAPTURED_EVENT)
}

/// Whether a graph is being captured into.
pub(crate) fn is_capturing(graph: u64) -> bool {
    open_captures::any() && state().get().captures.values().any(|capture| capture.graph == graph)
}

/// Whether the next captured node depends on this one.
pub(crate) fn is_awaited_by_capture(node: u64) -> bool {
    let waits =
        |capturing: &CapturingStream| capturing.dependencies.iter().any(|(pending, _)| *pending == node);
    open_captures::any() && state().get().streams.values().any(waits)
}

/// What a stream says of its capture.
#[derive(Debug)]
pub(crate) enum Info {
    None,
    Invalidated,
    Active { id: u64, graph: u64, nodes: *const CUgraphNode, edges: *const CUgraphEdgeData, count: usize },
}

/// The state of a stream's capture. The arrays live until the next call for the stream or the end
/// of its capture.
pub(crate) fn info(stream: &Arc<Stream>, wants_nodes: bool, takes_edges: bool) -> Answer<Info> {
    let mut state = state();
    let state = state.get();
    let Some(capturing) = state.streams.get_mut(&stream.id) else { return Ok(Info::None) };
    if !open_captures::is_valid(capturing.capture) {
        return Ok(Info::Invalidated);
    }
    if wants_nodes && !takes_edges && capturing.dependencies.iter().any(|(_, edge)| !edge.is_plain()) {
        return Err(LOSSY_QUERY);
    }
    capturing.nodes = capturing.dependencies.iter().map(|(node, _)| to_raw(*node)).collect();
    capturing.edges = capturing.dependencies.iter().map(|(_, edge)| edge.raw()).collect();
    let graph = state.captures.get(&capturing.capture).map_or(0, |capture| capture.graph);
    Ok(Info::Active {
        id: capturing.capture,
        graph,
        nodes: capturing.nodes.as_ptr(),
        edges: capturing.edges.as_ptr(),
        count: capturing.nodes.len(),
    })
}

/// Whether the legacy stream may be asked: a blocking capture in its context forbids it,
/// harmlessly.
pub(crate) fn check_legacy_question(stream: &Stream) -> Answer {
    let mut state = state();
    let hit = |capturing: &CapturingStream| capturing.blocking && capturing.context == stream.context.id;
    let forbidden = stream.kind == StreamKind::Legacy && state.get().streams.values().any(hit);
    if forbidden { Err(STREAM_CAPTURE_IMPLICIT) } else { Ok(()) }
}

/// `cuStreamUpdateCaptureDependencies`: adds to or replaces what the next node depends on.
pub(crate) fn update(stream: &Stream, nodes: &[(u64, Edge)], replace: bool) -> Answer {
    let mut state = state();
    let state = state.get();
    let capturing = state.streams.get_mut(&stream.id).ok_or(ILLEGAL_STATE)?;
    if !open_captures::is_valid(capturing.capture) {
        return Err(STREAM_CAPTURE_INVALIDATED);
    }
    let graph = state.captures.get(&capturing.capture).map_or(0, |capture| capture.graph);
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

/// The codes after which a captured call leaves its capture invalid.
pub(crate) fn invalidate_on<T>(stream: &Stream, answer: Result<T, CUresult>) -> Answer<T> {
    answer.inspect_err(|_| invalidate(stream))
}
