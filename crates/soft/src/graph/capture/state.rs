//! The state of all captures, under one lock.

use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, Mutex, MutexGuard};

use cuda_sys::{CUgraphEdgeData, CUgraphNode};

use super::open_captures;
use crate::driver::abort::crash;
use crate::graph::model::edge::Edge;
use crate::graph::model::graphs::Graphs;
use crate::graph::model::store::store;
use crate::stream::{Stream, StreamKind};
use crate::sync::lock;

/// A capturing stream: its capture and the dependencies of the next node.
#[derive(Debug)]
pub(super) struct CapturingStream {
    pub(super) capture: u64,
    pub(super) dependencies: Vec<(u64, Edge)>,
    pub(super) blocking: bool,
    pub(super) context: u64,
    /// The arrays that the last query returned.
    pub(super) nodes: Vec<CUgraphNode>,
    pub(super) edges: Vec<CUgraphEdgeData>,
}

// SAFETY: the pointers are handles, never followed.
unsafe impl Send for CapturingStream {}

/// An open capture.
#[derive(Debug)]
pub(super) struct Capture {
    pub(super) graph: u64,
    /// The uid of the graph, which may be destroyed meanwhile with a graph that it is part of.
    pub(super) uid: u64,
    pub(super) origin: u64,
}

impl Capture {
    /// The graph, which must still exist.
    pub(super) fn living(&self, graphs: &Graphs) -> u64 {
        if !self.is_there(graphs) {
            crash("a capture goes on or ends whose graph was destroyed with the graph that it is part of");
        }
        self.graph
    }

    /// Whether the graph still exists.
    fn is_there(&self, graphs: &Graphs) -> bool {
        graphs.graph(self.graph).map(|graph| graph.uid) == Ok(self.uid)
    }
}

/// An event recorded in a capture, and the nodes that it stands for.
#[derive(Debug, Clone)]
pub(super) struct CapturedEvent {
    pub(super) capture: u64,
    pub(super) nodes: Vec<(u64, Edge)>,
}

#[derive(Debug, Default)]
pub(super) struct CaptureState {
    /// By the stream's id.
    pub(super) streams: HashMap<u64, CapturingStream>,
    pub(super) captures: HashMap<u64, Capture>,
    /// By the event's handle.
    pub(super) events: HashMap<u64, CapturedEvent>,
}

static CAPTURES: LazyLock<Mutex<CaptureState>> = LazyLock::new(Mutex::default);

pub(super) fn state() -> MutexGuard<'static, CaptureState> {
    lock(&CAPTURES)
}

impl CaptureState {
    pub(super) fn enter(&mut self, stream: &Stream, capture: u64, dependencies: Vec<(u64, Edge)>) {
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

    /// Whether the next node of a stream depends on nothing: nothing was captured there.
    pub(super) fn is_empty(&self, stream: &Stream) -> bool {
        self.streams.get(&stream.id).is_none_or(|capturing| capturing.dependencies.is_empty())
    }

    /// Ends a capture in all its streams; returns the graph.
    pub(super) fn close(&mut self, capture: u64) -> u64 {
        open_captures::end(capture);
        self.streams.retain(|_, capturing| capturing.capture != capture);
        self.captures.remove(&capture).map_or(0, |capture| capture.graph)
    }

    /// Whether the work of every stream leads to the origin.
    pub(super) fn is_joined(&self, capture: u64, origin: u64) -> bool {
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
