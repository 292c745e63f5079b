//! Adding the nodes of an ended capture to an existing graph, all or none.
//!
//! 1. **Plan.** Every node is read from the captured graph, which stays locked, and refused if the
//!    other graph cannot hold it. Nothing has changed yet.
//! 2. **Add.** The edge that the nodes replace is removed. Then one node after the other is added,
//!    in topological order, with its edges and their kinds. A node without predecessors comes after
//!    the nodes of the position, a node without successors before those.
//!    The graph keeps the captured one if that has nodes of other code: it may hold what they use.
//! 3. **Undo.** If the driver refuses a node, the edge is put back, and the nodes added before are
//!    removed again.

use std::collections::HashMap;

use cuda_handles::Owner;
use cuda_sys::{CUgraphNode, CUgraphNodeParams};
use smallvec::SmallVec;

use crate::build::frontier::Frontier;
use crate::build::insertion::{Before, NewNode};
use crate::capture::adopted::{Adopted, RawHandles};
use crate::capture::placed::Placed;
use crate::clone::node_copy::NodeCopy;
use crate::edge::change::Link;
use crate::edge_kind::EdgeKind;
use crate::error::{CaptureError, ConditionError, Error, NodeError, ParamError, Result};
use crate::graph::Graph;
use crate::node_kind::NodeKind;
use crate::state::AddedNode;
use crate::state::bindings::Binding;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::owners::Owners;
use crate::state::params::NodeParams;

/// Nodes, each with the kind of edge that leads from it or to it.
type Ends = SmallVec<[(NodeId, EdgeKind); 4]>;

/// A position in an existing graph.
#[derive(Clone, Debug)]
pub(super) struct Position {
    graph: Graph,
    after: Ends,
    before: Option<Before>,
}

impl Position {
    pub(super) fn new(graph: Graph, after: &[(NodeId, EdgeKind)], before: Option<&Before>) -> Self {
        Self { graph, after: after.into(), before: before.cloned() }
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The edge that the nodes replace, if it still exists.
    fn current_cut(&self, guard: &GraphGuard<'_>) -> Result<Option<Link>> {
        let Some((from, to)) = self.before.as_ref().and_then(|before| before.cut) else { return Ok(None) };
        if guard.record(from).is_none() || guard.record(to).is_none() {
            return Ok(None);
        }
        Ok(guard.kind_of(from, to)?.map(|kind| Link { from, to, kind }))
    }

    /// The same position, with the edge removed.
    fn without_cut(&self) -> Self {
        let before = self.before.clone().map(|before| Before { cut: None, ..before });
        Self { before, ..self.clone() }
    }
}

/// A captured node that was read.
struct Step {
    id: NodeId,
    action: Action,
    /// The steps that it waits for.
    after: SmallVec<[(usize, EdgeKind); 4]>,
    has_successors: bool,
}

impl Step {
    fn is_copy(&self) -> bool {
        matches!(self.action, Action::Copy(_))
    }
}

enum Action {
    Copy(Box<NodeCopy>),
    /// These nodes are in the graph already.
    Place(Placed),
}

/// Adds the nodes of an ended capture at a position of another graph.
pub(super) fn copy_into(adopted: &Adopted, position: &Position, placed: &[Placed]) -> Result<()> {
    let mut guards = position.graph.enter_with(adopted.graph())?;
    let (ours, theirs) = guards.both();
    let Some(theirs) = theirs else { return Err(Error::Node(NodeError::GraphMoved)) };
    // The graph may have been moved into another one since the calls were captured.
    if adopted.params_of().is_some_and(|of| of != ours.number()) {
        return Err(ParamError::Foreign.into());
    }
    let steps = plan(ours, theirs, position, placed)?;
    let cut = if steps.is_empty() { None } else { position.current_cut(ours)? };
    ours.change(cut.as_slice(), &[])?;
    let position = &position.without_cut();
    let has_foreign = steps.iter().any(|step| step.is_copy() && adopted.is_foreign(step.id));
    let mut adding = Adding { position, adopted, ends: Vec::with_capacity(steps.len()), added: Vec::new() };
    let done = steps.into_iter().try_for_each(|step| adding.take(ours, theirs, step));
    match done {
        Ok(()) => {
            let mut kept = theirs.facts(SubgraphId::ROOT).map(|facts| facts.kept.clone()).unwrap_or_default();
            // The other code may have given the captured graph what its nodes use, as user objects.
            kept.extend(has_foreign.then(|| Owner::other(adopted.graph().clone())));
            let subgraph = position.graph.subgraph();
            for owner in &kept {
                ours.keep(subgraph, owner);
            }
            ours.drop_kept(kept);
            Ok(())
        }
        Err(cause) => Err(ours.take_back(&adding.added, cut, cause)),
    }
}

/// Reads all nodes, in topological order.
fn plan(
    ours: &GraphGuard<'_>,
    theirs: &mut GraphGuard<'_>,
    position: &Position,
    placed: &[Placed],
) -> Result<Vec<Step>> {
    let mut nodes: Vec<(u64, CUgraphNode, NodeId)> = Vec::new();
    for raw in theirs.raw_nodes()? {
        let index = theirs.index(raw)?;
        if let Some((id, record)) = theirs.id(index).and_then(|id| Some((id, theirs.record(id)?))) {
            nodes.push((record.label, raw, id));
        }
    }
    nodes.sort_unstable_by_key(|(label, _, id)| (*label, id.index));
    let places: HashMap<usize, usize> =
        nodes.iter().enumerate().map(|(place, (_, raw, _))| (raw.addr(), place)).collect();
    let mut steps = Vec::with_capacity(nodes.len());
    for &(_, raw, id) in &nodes {
        let action = read(ours, theirs, position, (raw, id), placed)?;
        steps.push(Step { id, action, after: SmallVec::new(), has_successors: false });
    }
    for (from, to, kind) in theirs.raw_edges_of(theirs.raw())? {
        if let (Some(&from), Some(&to)) = (places.get(&from.addr()), places.get(&to.addr())) {
            steps[to].after.push((from, kind));
            steps[from].has_successors = true;
        }
    }
    Ok(steps)
}

/// Reads one node, and refuses one that the graph cannot hold.
fn read(
    ours: &GraphGuard<'_>,
    theirs: &GraphGuard<'_>,
    position: &Position,
    (raw, id): (CUgraphNode, NodeId),
    placed: &[Placed],
) -> Result<Action> {
    let not_copied = || Error::Capture(CaptureError::NotCopied { node: theirs.name(id) });
    let Some(record) = theirs.record(id) else { return Err(not_copied()) };
    if let Some(placed) = Placed::find(placed, &record.node_params) {
        return Ok(Action::Place(*placed));
    }
    ours.ensure_may_hold(position.graph.subgraph(), &record.node_params)?;
    let copy = NodeCopy::of(theirs, raw, id)?.ok_or_else(not_copied)?;
    Ok(Action::Copy(Box::new(copy)))
}

/// The nodes added so far.
struct Adding<'a> {
    position: &'a Position,
    adopted: &'a Adopted,
    /// The node of each step that its successors wait for.
    ends: Vec<NodeId>,
    /// The nodes to remove if a later one fails.
    added: Vec<NodeId>,
}

impl Adding<'_> {
    fn take(&mut self, ours: &mut GraphGuard<'_>, theirs: &GraphGuard<'_>, step: Step) -> Result<()> {
        let after: Ends = match step.after.is_empty() {
            true => self.position.after.clone(),
            false => {
                step.after.iter().filter_map(|&(place, kind)| Some((*self.ends.get(place)?, kind))).collect()
            }
        };
        let before = if step.has_successors { None } else { self.position.before.as_ref() };
        let end = match step.action {
            Action::Place(placed) => link(ours, placed, &after, before)?,
            Action::Copy(copy) => {
                let id = self.copy(ours, theirs, step.id, (after, before), *copy)?;
                self.added.push(id);
                id
            }
        };
        self.ends.push(end);
        Ok(())
    }

    fn copy(
        &self,
        ours: &mut GraphGuard<'_>,
        theirs: &GraphGuard<'_>,
        id: NodeId,
        (mut after, before): (Ends, Option<&Before>),
        mut copy: NodeCopy,
    ) -> Result<NodeId> {
        let subgraph = self.position.graph.subgraph();
        let Some(record) = theirs.record(id) else { return Err(theirs.removed(id)) };
        let handles = ours.conditions_of(&self.adopted.handles_of(id), &record.node_params)?;
        // The node waits for the nodes that assign the defaults of its conditions.
        for default in handles.iter().filter_map(|number| ours.default_node(*number, subgraph)) {
            if !after.iter().any(|(id, _)| *id == default) {
                after.push((default, EdgeKind::Full));
            }
        }
        let owners: Owners = record.owners.kept().iter().chain(theirs.used_by(record)).cloned().collect();
        ours.ensure_own_memory(&owners, &record.node_params)?;
        ours.ensure_not_freed(&owners, &record.node_params)?;
        ours.store_mut().reserve(owners.len());
        let frontier = Frontier::at(&self.position.graph, after, before);
        let mut params = *copy.params();
        let node_params = record.node_params.clone();
        let binding = theirs.bindings.get(id).cloned();
        let new = CopiedNode { subgraph, node_params, owners, handles, binding, copy };
        frontier.insert(ours, new, &mut params)
    }
}

/// Puts nodes that are in the graph already behind their predecessors, and before the nodes of the
/// position.
fn link(
    guard: &mut GraphGuard<'_>,
    placed: Placed,
    after: &[(NodeId, EdgeKind)],
    before: Option<&Before>,
) -> Result<NodeId> {
    let into = after.iter().map(|&(from, _)| Link { from, to: placed.entry, kind: EdgeKind::Full });
    let nodes = before.map_or(&[][..], |before| &before.nodes);
    let out = nodes.iter().map(|&(to, kind)| Link { from: placed.exit, to, kind });
    let links: Vec<Link> = into.chain(out).collect();
    guard.change(&[], &links)?;
    Ok(placed.exit)
}

/// A captured node to be added to another graph.
struct CopiedNode {
    subgraph: SubgraphId,
    node_params: NodeParams,
    owners: Owners,
    /// The numbers of the conditions whose handles a kernel has.
    handles: RawHandles,
    /// The use of graph parameters.
    binding: Option<Binding>,
    copy: NodeCopy,
}

impl NewNode for CopiedNode {
    type Found = ();

    fn kind(&self) -> NodeKind {
        self.node_params.kind()
    }

    fn finish(&mut self, guard: &mut GraphGuard<'_>, raw: CUgraphNode, _: &CUgraphNodeParams) -> Result<()> {
        self.copy.finish(guard, raw)
    }

    fn commit(self, guard: &mut GraphGuard<'_>, added: AddedNode, (): ()) -> NodeId {
        let id = guard.insert(self.subgraph, added, self.node_params, self.owners);
        if !self.handles.is_empty() {
            guard.conditions.set_handles(id.index, self.handles);
        }
        if let Some(binding) = self.binding {
            guard.bindings.bind(id, binding);
        }
        id
    }

    fn into_owners(self) -> Owners {
        let mut owners = self.owners;
        owners.extend(self.node_params.owner());
        owners
    }
}

impl GraphGuard<'_> {
    /// The numbers of the conditions with these handles.
    fn conditions_of(&self, handles: &[u64], node_params: &NodeParams) -> Result<RawHandles> {
        let number = |handle: &u64| {
            self.conditions.number_of(*handle).ok_or_else(|| {
                let node = node_params.kind().to_string().into();
                Error::Condition(ConditionError::ForeignCondition { node })
            })
        };
        handles.iter().map(number).collect()
    }

    /// Puts an edge back and removes nodes that were added, the last one first. Their owners are
    /// dropped after the lock.
    #[cold]
    fn take_back(&mut self, added: &[NodeId], cut: Option<Link>, cause: Error) -> Error {
        // The edge first: until it is back, the nodes carry the order.
        if let Err(undo) = self.link(cut.as_slice()) {
            return self.broken(cause, undo, Owners::new());
        }
        for &id in added.iter().rev() {
            if let Err(undo) = self.destroy_raw(id) {
                return self.broken(cause, undo, Owners::new());
            }
            self.remove_deferred(id);
        }
        cause
    }

    /// Drops owners after the lock.
    fn drop_kept(&mut self, owners: Vec<Owner>) {
        owners.into_iter().for_each(|owner| self.drop_deferred(Some(owner)));
    }
}
