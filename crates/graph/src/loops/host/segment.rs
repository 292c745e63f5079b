//! Segments: executables of the nodes between two actions of the host.

use std::collections::HashMap;

use cuda_handles::{GraphExecHandle, GraphHandle, Stream};
use cuda_sys::{CUgraph, CUgraphNode};

use crate::clone::flattened::{Action, FlatGraph};
use crate::clone::node_copy::NodeCopy;
use crate::edge_kind::EdgeKind;
use crate::error::{Error, LoopError, Result};
use crate::exec::instantiate::instantiate;
use crate::exec::launch::enqueue;
use crate::exec::options::InstantiateOptions;
use crate::exec::recorded_events::RecordedEvents;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;

/// The copies of nodes that take graph parameters, by their originals.
#[derive(Debug, Default)]
pub(super) struct BoundCopies(pub(super) HashMap<NodeId, CUgraphNode>);

// SAFETY: the handles are only passed to the driver, with exclusive access to the segment.
unsafe impl Send for BoundCopies {}
// SAFETY: as above.
unsafe impl Sync for BoundCopies {}

/// An executable of some nodes of a graph.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(super) exec: GraphExecHandle,
    /// The events that each launch records.
    pub(super) events: RecordedEvents,
    /// The copies of nodes that take graph parameters.
    pub(super) bound: BoundCopies,
    /// The graph of the copies, if some take parameters: updates go by its nodes.
    _source: Option<GraphHandle>,
}

impl Segment {
    /// Makes an executable of some nodes, given in topological order. The context is current.
    pub(crate) fn make(
        guard: &GraphGuard<'_>,
        flat: &FlatGraph,
        nodes: &[usize],
        edges: &[(usize, usize, EdgeKind)],
        options: &InstantiateOptions,
    ) -> Result<Self> {
        // Destroyed at the end of this function, unless parameters need it.
        let graph = GraphHandle::create(guard.context())?;
        let (clone_map, bound) = copy(guard, flat, nodes, edges, graph.as_raw())?;
        let raw = instantiate(guard, graph.as_raw(), options).map_err(|failure| {
            let id = clone_map.get(&failure.params.hErrNode_out.addr());
            guard.explain_at(&failure, id.map(|id| guard.name(*id).into_string()), Vec::new())
        })?;
        // SAFETY: the driver has just made it, in this context, and nobody else knows it.
        let exec = unsafe { GraphExecHandle::from_raw_owned(guard.context(), raw) };
        let events = RecordedEvents::among(guard, nodes.iter().map(|node| flat.nodes[*node].id));
        let source = (!bound.0.is_empty()).then_some(graph);
        Ok(Self { exec, events, bound, _source: source })
    }

    /// Enqueues a run of the segment.
    pub(crate) fn launch(&mut self, stream: &Stream) -> Result<()> {
        enqueue(&mut self.exec, self.events.all(), stream)
    }
}

/// Adds copies of nodes to a new graph. Returns the originals by the addresses of the copies, and
/// the copies of nodes that take graph parameters.
fn copy(
    guard: &GraphGuard<'_>,
    flat: &FlatGraph,
    nodes: &[usize],
    edges: &[(usize, usize, EdgeKind)],
    graph: CUgraph,
) -> Result<(HashMap<usize, NodeId>, BoundCopies)> {
    let mut waits: HashMap<usize, Vec<(usize, EdgeKind)>> = HashMap::new();
    for &(from, to, kind) in edges {
        waits.entry(to).or_default().push((from, kind));
    }
    let mut clone_map: HashMap<usize, CUgraphNode> = HashMap::with_capacity(nodes.len());
    let mut names = HashMap::with_capacity(nodes.len());
    let mut bound = BoundCopies::default();
    for &item in nodes {
        let waits = waits.remove(&item).unwrap_or_default();
        let after = waits.iter().filter_map(|(from, kind)| Some((*clone_map.get(from)?, *kind)));
        let after: Vec<(CUgraphNode, EdgeKind)> = after.collect();
        let copied = match flat.nodes[item].action {
            Action::Run(raw) => {
                let id = flat.nodes[item].id;
                NodeCopy::of(guard, raw, id)?.ok_or_else(|| not_on_host(guard, id))?
            }
            // Segments have no nodes that the host acts on.
            Action::Nothing | Action::Decide(..) | Action::Enter(_) => NodeCopy::empty(),
        };
        let new = copied.add_to(guard, graph, &after)?;
        clone_map.insert(item, new);
        let id = flat.nodes[item].id;
        names.insert(new.addr(), id);
        if matches!(flat.nodes[item].action, Action::Run(_)) && guard.bindings.get(id).is_some() {
            bound.0.insert(id, new);
        }
    }
    Ok((names, bound))
}

/// The error for a node that cannot be in a segment.
#[cold]
fn not_on_host(guard: &GraphGuard<'_>, id: NodeId) -> Error {
    let why = "between what the host decides there can be kernels, copies, fills, host functions, \
               events, batches, semaphores, empty nodes, and child graphs of these: no memory nodes, \
               and no conditional nodes of other code";
    Error::Loop(LoopError::NotOnHost { node: guard.name(id), why })
}
