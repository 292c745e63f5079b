//! The transaction that adds a node: prepare, call, finish, commit; or undo.
//!
//! 1. **Prepare.** Everything that can be checked is checked, and room for the record is reserved.
//!    If the node goes into an edge, that edge is removed: a graph with memory nodes refuses that,
//!    so it comes before anything else.
//! 2. **Call.** `cuGraphAddNode`. If the driver refuses, the removed edge is put back.
//! 3. **Finish.** Further driver calls that the node needs ([`NewNode::finish`]), and the edges to
//!    the nodes that it comes before. If one fails, the transaction is undone: the edge is put back
//!    and the node destroyed, and the graph is as it was.
//! 4. **Commit.** The node gets its record ([`NewNode::commit`]). This cannot fail.
//!
//! An undo is tried once. If the driver refuses that as well, the hierarchy is marked
//! [broken](crate::Error::Broken): it keeps alive what the node uses and refuses every later call.
//! A lost context has no graphs to break: there the first error alone is returned.

use cuda_handles::internal::alone_in_order;
use cuda_sys::{CUgraphChildGraphNodeOwnership, CUgraphNode, CUgraphNodeParams, CUgraphNodeType, Call};

use crate::build::frontier::Frontier;
use crate::check::collect::memory_among;
use crate::edge::change::{Link, ensure_kinds};
use crate::edge::order::Labels;
use crate::edge_kind::EdgeKind;
use crate::error::{Broken, EdgeError, Error, Result};
use crate::footprint::Footprint;
use crate::node_kind::NodeKind;
use crate::state::AddedNode;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::owners::Owners;
use crate::state::params::NodeParams;

/// A node to be added: everything that differs between the types of nodes.
pub(crate) trait NewNode {
    /// Results of [`finish`](Self::finish) for [`commit`](Self::commit).
    type Found;

    fn kind(&self) -> NodeKind;

    /// The bytes that the node will touch; unknown unless the type of node says more. `params` are
    /// complete.
    fn footprint(&self, _: &GraphGuard<'_>, _: &CUgraphNodeParams) -> Result<Footprint> {
        Ok(Footprint::OPAQUE)
    }

    /// Makes the driver calls that the node needs after it was added. `params` are the parameters
    /// of the call that added it; the driver may have written into them.
    fn finish(
        &mut self,
        guard: &mut GraphGuard<'_>,
        raw: CUgraphNode,
        params: &CUgraphNodeParams,
    ) -> Result<Self::Found>;

    /// Enters the node into the state. Cannot fail.
    fn commit(self, guard: &mut GraphGuard<'_>, added: AddedNode, found: Self::Found) -> NodeId;

    /// Everything that the node keeps alive, for a node that was not added.
    fn into_owners(self) -> Owners;
}

/// A node that needs no driver call but the one that adds it.
pub(crate) struct PlainNode {
    pub(crate) subgraph: SubgraphId,
    pub(crate) node_params: NodeParams,
    pub(crate) owners: Owners,
}

impl NewNode for PlainNode {
    type Found = ();

    fn kind(&self) -> NodeKind {
        self.node_params.kind()
    }

    fn footprint(&self, guard: &GraphGuard<'_>, params: &CUgraphNodeParams) -> Result<Footprint> {
        if matches!(self.node_params, NodeParams::Empty) {
            // A barrier.
            return Ok(Footprint::OPAQUE);
        }
        let used = memory_among(self.owners.iter());
        Footprint::of_new(guard.context(), &self.node_params, params, used, &[])
    }

    fn finish(&mut self, _: &mut GraphGuard<'_>, _: CUgraphNode, _: &CUgraphNodeParams) -> Result<()> {
        Ok(())
    }

    fn commit(self, guard: &mut GraphGuard<'_>, added: AddedNode, (): ()) -> NodeId {
        guard.insert(self.subgraph, added, self.node_params, self.owners)
    }

    fn into_owners(self) -> Owners {
        let mut owners = self.owners;
        owners.extend(self.node_params.owner());
        owners
    }
}

/// The same for a node whose accesses are not known, since graph parameters decide about them.
pub(crate) struct BoundPlainNode(pub(crate) PlainNode);

impl NewNode for BoundPlainNode {
    type Found = ();

    fn kind(&self) -> NodeKind {
        self.0.kind()
    }

    fn finish(
        &mut self,
        guard: &mut GraphGuard<'_>,
        raw: CUgraphNode,
        params: &CUgraphNodeParams,
    ) -> Result<()> {
        self.0.finish(guard, raw, params)
    }

    fn commit(self, guard: &mut GraphGuard<'_>, added: AddedNode, found: ()) -> NodeId {
        self.0.commit(guard, added, found)
    }

    fn into_owners(self) -> Owners {
        self.0.into_owners()
    }
}

/// The nodes that a node added at a frontier comes before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    pub(crate) nodes: Vec<(NodeId, EdgeKind)>,
    /// The edge that the first added node replaces, if it still exists.
    pub(crate) cut: Option<(NodeId, NodeId)>,
}

/// The position prepared for a node that comes before others.
#[derive(Debug, Default)]
struct Position {
    label: u64,
    /// The edge that was removed for the node.
    cut: Option<Link>,
}

/// Refuses nodes that cannot be removed again: destroying a node into which a graph was moved would
/// destroy that graph.
fn ensure_undoable(params: &CUgraphNodeParams) -> Result<()> {
    const MOVE: CUgraphChildGraphNodeOwnership =
        CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    let is_graph = params.type_ == CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH;
    // SAFETY: the parameters are complete for their type.
    let is_moved = is_graph && unsafe { params.__bindgen_anon_1.graph.ownership } == MOVE;
    if is_moved { Err(Error::Edge(EdgeError::MovesBefore)) } else { Ok(()) }
}

impl Frontier<'_> {
    /// Adds a node; see the [module](self). On failure the graph is as it was, or broken.
    // Inlined since for most nodes there is nothing to prepare and nothing to finish.
    #[inline(always)]
    pub(crate) fn insert<N: NewNode>(
        &self,
        guard: &mut GraphGuard<'_>,
        mut new: N,
        params: &mut CUgraphNodeParams,
    ) -> Result<NodeId> {
        if let Some(before) = self.comes_before() {
            return self.insert_before(before, guard, new, params);
        }
        if self.is_by_data() {
            return self.insert_by_data(guard, new, params);
        }
        guard.reserve(self.graph().subgraph());
        let added = guard.retain_if_adopted().and_then(|()| self.call_add(guard, new.kind(), params));
        let raw = match added {
            Ok(raw) => raw,
            Err(error) => return Err(guard.abandon(new.into_owners(), error)),
        };
        match new.finish(guard, raw, params) {
            Ok(found) => Ok(new.commit(guard, raw.into(), found)),
            Err(cause) => Err(guard.undo(raw, None, new.into_owners(), cause)),
        }
    }

    /// [`insert`](Self::insert) for a node that comes before others.
    #[cold]
    #[inline(never)]
    fn insert_before<N: NewNode>(
        &self,
        before: &Before,
        guard: &mut GraphGuard<'_>,
        mut new: N,
        params: &mut CUgraphNodeParams,
    ) -> Result<NodeId> {
        let position = match self.prepare(before, guard, new.kind(), params) {
            Ok(position) => position,
            Err(error) => return Err(guard.abandon(new.into_owners(), error)),
        };
        let cut = position.cut;
        let raw = match self.call_add(guard, new.kind(), params) {
            Ok(raw) => raw,
            Err(error) => return Err(guard.undo_prepare(cut, new.into_owners(), error)),
        };
        let finished = new.finish(guard, raw, params);
        let finished = finished.and_then(|found| guard.link_before(raw, before).map(|()| found));
        match finished {
            Ok(found) => Ok(new.commit(guard, AddedNode { raw, label: Some(position.label) }, found)),
            Err(cause) => Err(guard.undo(raw, cut, new.into_owners(), cause)),
        }
    }

    /// Refuses a position that a node cannot have, before other nodes are added for its sake. Only
    /// for graphs with memory nodes, from which the driver would not remove those again.
    pub(crate) fn ensure_position(&self, guard: &mut GraphGuard<'_>, kind: NodeKind) -> Result<()> {
        if !guard.has_memory_nodes() {
            return Ok(());
        }
        for id in self.comes_after() {
            guard.record(id).ok_or_else(|| guard.removed(id))?;
        }
        match self.comes_before() {
            Some(before) => guard.plan_before(self.comes_after(), before, kind).map(drop),
            None => Ok(()),
        }
    }

    fn prepare(
        &self,
        before: &Before,
        guard: &mut GraphGuard<'_>,
        kind: NodeKind,
        params: &CUgraphNodeParams,
    ) -> Result<Position> {
        guard.reserve(self.graph().subgraph());
        guard.retain_if_adopted()?;
        ensure_undoable(params)?;
        guard.prepare_before(self.comes_after(), before, kind)
    }
}

impl GraphGuard<'_> {
    /// Prepares the position of a node that comes before others: finds labels, and removes the edge
    /// that the node replaces.
    #[cold]
    fn prepare_before(
        &mut self,
        after: impl Iterator<Item = NodeId>,
        before: &Before,
        kind: NodeKind,
    ) -> Result<Position> {
        let (labels, position) = self.plan_before(after, before, kind)?;
        // An edge that is put back may be in another place.
        self.changes.note_structure();
        self.unlink(position.cut.as_slice())?;
        // The labels also fit if the node is not added and the edge is put back.
        self.relabel(labels);
        Ok(position)
    }

    /// The position of a node that comes before others, with the labels that it needs. Changes
    /// nothing.
    fn plan_before(
        &mut self,
        after: impl Iterator<Item = NodeId>,
        before: &Before,
        kind: NodeKind,
    ) -> Result<(Labels, Position)> {
        for &(id, edge) in &before.nodes {
            let record = self.record(id).ok_or_else(|| self.removed(id))?;
            if edge == EdgeKind::Full {
                continue;
            }
            if kind != NodeKind::Kernel || !record.node_params.kind().is_kernel() {
                return Err(Error::Edge(EdgeError::EdgeKind { kind: edge, from: "the new node".into() }));
            }
            ensure_kinds(self.driver())?;
        }
        let cut = match before.cut {
            Some((from, to)) => self.kind_of(from, to)?.map(|kind| Link { from, to, kind }),
            None => None,
        };
        if let Some(cut) = &cut {
            self.ensure_may_lose(cut.from, "edges")?;
        }
        let (labels, label) = self.plan_new(after, before.nodes.iter().map(|(id, _)| *id), cut.as_slice())?;
        Ok((labels, Position { label, cut }))
    }

    /// Puts the removed edge back after the driver refused to add the node.
    #[cold]
    fn undo_prepare(&mut self, cut: Option<Link>, owners: Owners, cause: Error) -> Error {
        match self.link(cut.as_slice()) {
            Ok(()) => self.abandon(owners, cause),
            Err(undo) => self.broken(cause, undo, owners),
        }
    }

    /// Adds the edges from a node that was just added to the nodes that it comes before. One driver
    /// call for each kind of edge.
    #[cold]
    fn link_before(&self, raw: CUgraphNode, before: &Before) -> Result<()> {
        let link = |&(id, kind)| {
            let to = self.record(id).ok_or_else(|| self.removed(id))?.raw.0;
            Ok((raw, to, kind))
        };
        self.link_raw(before.nodes.iter().map(link))
    }

    /// Destroys a node that was just added and has no record.
    #[cold]
    fn undo(&mut self, raw: CUgraphNode, cut: Option<Link>, owners: Owners, cause: Error) -> Error {
        // The edge first: until it is back, the node carries the order.
        let undone = self.link(cut.as_slice()).and_then(|()| {
            let result = {
                let _alone = alone_in_order(self.context())?;
                // SAFETY: the node is live, and no record leads to it.
                unsafe { self.driver().cuGraphDestroyNode(raw) }
            };
            self.answer(Call::cuGraphDestroyNode, result)
        });
        match undone {
            Ok(()) => self.abandon(owners, cause),
            Err(undo) => self.broken(cause, undo, owners),
        }
    }

    /// Drops the owners of a node that was not added, once the lock is released.
    #[cold]
    pub(crate) fn abandon(&mut self, owners: Owners, cause: Error) -> Error {
        owners.into_iter().for_each(|owner| self.drop_deferred(Some(owner)));
        cause
    }

    /// Marks the hierarchy as broken: a change failed for `cause`, and undoing it failed for
    /// `undo`. The owners stay alive. If the context is lost, its graphs are unusable anyway, and
    /// the result is `cause`.
    #[cold]
    pub(crate) fn broken(&mut self, cause: Error, undo: Error, owners: Owners) -> Error {
        let undo = match undo {
            // The change that was to undo the other one broke the hierarchy by itself.
            Error::Broken(broken) => broken.cause,
            undo => undo,
        };
        match self.context().ensure_usable() {
            Ok(()) => self.mark_broken(Broken { cause, undo }, owners),
            Err(_) => self.abandon(owners, cause),
        }
    }
}
