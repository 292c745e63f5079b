//! The transaction that adds a node: prepare, call, finish, commit; or undo.
//!
//! 1. **Prepare.** Everything that can be checked is checked, and the record's place is reserved. If
//!    the node goes into an edge, that edge is removed: a graph with memory nodes refuses it, so it
//!    comes before anything else.
//! 2. **Call.** `cuGraphAddNode`. If the driver refuses, the removed edge is put back.
//! 3. **Finish.** Further driver calls that the node needs ([`NewNode::finish`]), and the edges to
//!    the nodes that it comes before. If one fails, the transaction is undone: the edge is put back
//!    and the node destroyed, and the graph is as it was.
//! 4. **Commit.** The node gets its record ([`NewNode::commit`]). This cannot fail.
//!
//! Undoing happens once. If the driver refuses that as well, the hierarchy is marked
//! [broken](crate::Error::Broken): it keeps what the node uses and refuses every later call.

use cuda_handles::clones;
use cuda_sys::{CUgraphChildGraphNodeOwnership, CUgraphNode, CUgraphNodeParams, CUgraphNodeType, Call};

use crate::build::frontier::Frontier;
use crate::edge::change::Link;
use crate::edge::change::ensure_kinds;
use crate::edge_kind::EdgeKind;
use crate::error::{Broken, Error, Result};
use crate::node_kind::NodeKind;
use crate::state::AddedNode;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::owners::Owners;
use crate::state::params::NodeParams;

/// A node to be added: what differs between the types of nodes.
pub(crate) trait NewNode {
    /// Results of [`finish`](Self::finish) for [`commit`](Self::commit).
    type Found;

    fn kind(&self) -> NodeKind;

    /// Makes the driver calls that the node needs after it was added. `params` are those of the
    /// call, into which the driver may have written.
    fn finish(
        &mut self,
        guard: &mut GraphGuard<'_>,
        raw: CUgraphNode,
        params: &CUgraphNodeParams,
    ) -> Result<Self::Found>;

    /// Enters the node into the state.
    fn commit(self, guard: &mut GraphGuard<'_>, added: AddedNode, found: Self::Found) -> NodeId;

    /// Everything that the node keeps alive, for a node that is not entered.
    fn into_owners(self) -> Owners;
}

/// A node that needs nothing but the call that adds it.
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

/// The nodes that a node added at a frontier comes before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    pub(crate) nodes: Vec<(NodeId, EdgeKind)>,
    /// The edge that the first node added takes the place of, if it is still there.
    pub(crate) cut: Option<(NodeId, NodeId)>,
}

/// The place prepared for a node that comes before others.
#[derive(Debug, Default)]
struct Opening {
    label: Option<u64>,
    /// The edge that was removed for the node.
    cut: Option<Link>,
}

/// Refuses nodes that cannot be taken out again: a node into which a graph is moved would take the
/// graph with it.
fn ensure_undoable(params: &CUgraphNodeParams) -> Result<()> {
    const MOVE: CUgraphChildGraphNodeOwnership =
        CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    let is_graph = params.type_ == CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH;
    // SAFETY: the parameters are complete for their type.
    let is_moved = is_graph && unsafe { params.__bindgen_anon_1.graph.ownership } == MOVE;
    if is_moved { Err(Error::MovesBefore) } else { Ok(()) }
}

impl Frontier<'_> {
    /// Adds a node; see the [module](self). On failure the graph is as it was, or broken.
    // Inlined since for most nodes all but one driver call and the commit is nothing.
    #[inline(always)]
    pub(crate) fn insert<N: NewNode>(
        &self,
        guard: &mut GraphGuard<'_>,
        mut new: N,
        params: &mut CUgraphNodeParams,
    ) -> Result<NodeId> {
        let opening = match self.prepare(guard, new.kind(), params) {
            Ok(opening) => opening,
            Err(error) => return Err(guard.give_up(new.into_owners(), error)),
        };
        let raw = match self.call_add(guard, new.kind(), params) {
            Ok(raw) => raw,
            Err(error) => return Err(guard.close(&opening, new.into_owners(), error)),
        };
        let finished = new.finish(guard, raw, params).and_then(|found| {
            self.comes_before().map_or(Ok(()), |before| guard.join_before(raw, before))?;
            Ok(found)
        });
        match finished {
            Ok(found) => Ok(new.commit(guard, AddedNode { raw, label: opening.label }, found)),
            Err(cause) => Err(guard.undo(raw, &opening, new.into_owners(), cause)),
        }
    }

    #[inline]
    fn prepare(
        &self,
        guard: &mut GraphGuard<'_>,
        kind: NodeKind,
        params: &CUgraphNodeParams,
    ) -> Result<Opening> {
        guard.reserve(self.graph().subgraph());
        guard.retain_if_adopted()?;
        match self.comes_before() {
            None => Ok(Opening::default()),
            Some(before) => {
                ensure_undoable(params)?;
                guard.open(self.comes_after(), before, kind)
            }
        }
    }
}

impl GraphGuard<'_> {
    /// Prepares the place of a node that comes before others: finds labels, and removes the edge
    /// that the node takes the place of.
    #[cold]
    fn open(
        &mut self,
        after: impl Iterator<Item = NodeId>,
        before: &Before,
        kind: NodeKind,
    ) -> Result<Opening> {
        for &(id, edge) in &before.nodes {
            let record = self.record(id).ok_or_else(|| self.removed(id))?;
            if edge == EdgeKind::Full {
                continue;
            }
            if kind != NodeKind::Kernel || !record.node_params.kind().is_kernel() {
                return Err(Error::EdgeKind { kind: edge, from: "the new node".into() });
            }
            ensure_kinds(self.driver())?;
        }
        let cut = match before.cut {
            Some((from, to)) => self.kind_of(from, to)?.map(|kind| Link { from, to, kind }),
            None => None,
        };
        let (labels, label) = self.plan_new(after, before.nodes.iter().map(|(id, _)| *id), cut.as_slice())?;
        self.unlink(cut.as_slice())?;
        // The labels fit without the node, too, and with the edge.
        self.relabel(labels);
        Ok(Opening { label: Some(label), cut })
    }

    /// Puts the removed edge back after the driver refused to add the node.
    #[cold]
    fn close(&mut self, opening: &Opening, owners: Owners, cause: Error) -> Error {
        match self.link(opening.cut.as_slice()) {
            Ok(()) => self.give_up(owners, cause),
            Err(undo) => self.broken(cause, undo, owners),
        }
    }

    /// Adds the edges from a node that was just added to the nodes that it comes before. One driver
    /// call for each kind of edge that occurs.
    #[cold]
    fn join_before(&self, raw: CUgraphNode, before: &Before) -> Result<()> {
        let mut edges = Vec::with_capacity(before.nodes.len());
        for &(id, kind) in &before.nodes {
            edges.push((raw, self.record(id).ok_or_else(|| self.removed(id))?.raw.0, kind));
        }
        self.link_raw(edges.into_iter())
    }

    /// Destroys a node that was just added and has no record.
    #[cold]
    fn undo(&mut self, raw: CUgraphNode, opening: &Opening, owners: Owners, cause: Error) -> Error {
        // First the edge: while it is not there, the node stands for it.
        let undone = self.link(opening.cut.as_slice()).and_then(|()| {
            let result = {
                let _alone = clones::alone(self.context())?;
                // SAFETY: the node is live, and no record leads to it.
                unsafe { self.driver().cuGraphDestroyNode(raw) }
            };
            self.answer(Call::cuGraphDestroyNode, result)
        });
        match undone {
            Ok(()) => self.give_up(owners, cause),
            Err(undo) => self.broken(cause, undo, owners),
        }
    }

    /// Lets go of the owners of a node that was not added, once the lock is given back.
    #[cold]
    fn give_up(&mut self, owners: Owners, cause: Error) -> Error {
        owners.into_iter().for_each(|owner| self.let_go(Some(owner)));
        cause
    }

    /// Marks the hierarchy as broken, as `undo` is why a change could not be taken back that failed
    /// for `cause`. What the change used stays alive. A lost context has no graphs to break.
    #[cold]
    pub(crate) fn broken(&mut self, cause: Error, undo: Error, owners: Owners) -> Error {
        let undo = match undo {
            // The change that was to undo the other one broke the hierarchy by itself.
            Error::Broken(broken) => broken.cause,
            undo => undo,
        };
        match self.context().ensure_usable() {
            Ok(()) => self.break_down(Broken { cause, undo }, owners),
            Err(_) => self.give_up(owners, cause),
        }
    }
}
