//! Putting a new node before nodes that are there, and into an edge.

use cuda_handles::clones;
use cuda_sys::{CUgraphChildGraphNodeOwnership, CUgraphNode, CUgraphNodeParams, CUgraphNodeType, Call};

use crate::edge::{Link, ensure_kinds};
use crate::edge_kind::EdgeKind;
use crate::error::{Error, HalfDone, Result};
use crate::node_kind::NodeKind;
use crate::state::PendingInsert;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;

/// What the nodes added at a frontier come before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    pub(crate) nodes: Vec<(NodeId, EdgeKind)>,
    /// The edge that goes with the first node, if it is still there.
    pub(crate) cut: Option<(NodeId, NodeId)>,
}

/// Refuses what cannot be taken out again: a node into which a graph is moved would take the graph
/// with it.
pub(crate) fn ensure_undoable(params: &CUgraphNodeParams) -> Result<()> {
    const MOVE: CUgraphChildGraphNodeOwnership =
        CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    let is_graph = params.type_ == CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH;
    // SAFETY: the parameters are complete for their type.
    let is_moved = is_graph && unsafe { params.__bindgen_anon_1.graph.ownership } == MOVE;
    if is_moved { Err(Error::MovesBefore) } else { Ok(()) }
}

impl GraphGuard<'_> {
    /// Prepares the add of a node of a kind: everything is checked, labels are found, and the edge
    /// is taken away. Edges come first, since a graph with memory nodes refuses that: so nothing
    /// has changed then.
    #[cold]
    pub(crate) fn make_room(
        &mut self,
        after: impl Iterator<Item = NodeId>,
        before: &Before,
        kind: NodeKind,
    ) -> Result<PendingInsert> {
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
        // They fit without the node, too, and with the edge.
        self.relabel(labels);
        Ok(PendingInsert { label, cut: cut.map(|Link { from, to, kind }| (from, to, kind)) })
    }

    /// After the add failed.
    #[cold]
    pub(crate) fn take_room_back(&mut self, entering: &PendingInsert, cause: Error) -> Error {
        match entering.cut {
            Some((from, to, kind)) => self.put_right(cause, &[Link { from, to, kind }], &[]),
            None => cause,
        }
    }

    /// Lets nodes wait for one that was added just now. One driver call for each kind of edge that
    /// occurs.
    #[cold]
    pub(crate) fn join_before(&self, raw: CUgraphNode, before: &Before) -> Result<()> {
        let mut edges = Vec::with_capacity(before.nodes.len());
        for &(id, kind) in &before.nodes {
            edges.push((raw, self.record(id).ok_or_else(|| self.removed(id))?.raw.0, kind));
        }
        self.link_raw(edges.into_iter())
    }

    /// The edge that the node takes the place of whose row comes next.
    pub(crate) fn cut(&self) -> Option<Link> {
        let (from, to, kind) = self.entering.as_ref()?.cut?;
        Some(Link { from, to, kind })
    }

    /// Takes out a node that was added just now and that nobody knows, and puts the edge back that
    /// it took the place of: then the graph is as it was, and the cause is the result.
    ///
    /// # Errors
    /// The node had to stay: its row is to be inserted, and [`told`](Stuck::told) says so.
    #[cold]
    pub(crate) fn undo(&mut self, raw: CUgraphNode, cause: Error) -> Result<Error, Box<Stuck>> {
        let cut = self.cut();
        match self.take_out(raw, cut) {
            Ok(()) => {
                self.entering = None;
                Ok(cause)
            }
            Err(undo) => Err(Box::new(Stuck { cause, undo, cut })),
        }
    }

    /// [Undoes](Self::undo) a node if what had to be done once it was there failed. What is left to
    /// be told, if it had to stay.
    ///
    /// # Errors
    /// Why that failed, if the graph is as it was.
    #[inline]
    pub(crate) fn unless_undone(
        &mut self,
        raw: CUgraphNode,
        outcome: Result<()>,
    ) -> Result<Option<Box<Stuck>>> {
        match outcome.map_err(|cause| self.undo(raw, cause)) {
            Err(Ok(cause)) => Err(cause),
            Err(Err(stuck)) => Ok(Some(stuck)),
            Ok(()) => Ok(None),
        }
    }

    /// As [`undo`](Self::undo), for a node that has its row already, which goes with the lock.
    #[cold]
    pub(crate) fn undo_inserted(
        &mut self,
        id: NodeId,
        cut: Option<Link>,
        cause: Error,
    ) -> Result<Error, Box<Stuck>> {
        match self.raw_of(id).and_then(|raw| self.take_out(raw, cut)) {
            Ok(()) => {
                self.lose(id);
                Ok(cause)
            }
            Err(undo) => Err(Box::new(Stuck { cause, undo, cut })),
        }
    }

    fn take_out(&self, raw: CUgraphNode, cut: Option<Link>) -> Result<()> {
        // First the edge: while it is not there, the node stands for it.
        self.link(cut.as_slice())?;
        let result = {
            let _alone = clones::alone(self.context())?;
            // SAFETY: the node is live, and nobody sees its row any more, if it has one.
            unsafe { self.driver().cuGraphDestroyNode(raw) }
        };
        self.answer(Call::cuGraphDestroyNode, result)
    }
}

/// A node that was added, but not finished, and could not be taken out again.
#[derive(Debug)]
#[must_use]
pub(crate) struct Stuck {
    cause: Error,
    undo: Error,
    /// The edge that it took the place of.
    cut: Option<Link>,
}

impl Stuck {
    /// The error, once the node has its row: the driver is asked for the edges that the node should
    /// have and the one that it took the place of.
    #[cold]
    pub(crate) fn told(
        self,
        guard: &mut GraphGuard<'_>,
        id: NodeId,
        before: Option<&Before>,
        more: impl IntoIterator<Item = String>,
    ) -> Error {
        let Self { cause, undo, cut } = self;
        // A lost context has no graphs in which anything could be missing.
        if guard.context().ensure_usable().is_err() {
            return cause;
        }
        let wanted = before.map_or(&[][..], |before| &before.nodes);
        let wanted: Vec<Link> =
            wanted.iter().map(|&(to, kind)| Link { from: id, to, kind: kind.plain() }).collect();
        // What cannot be asked any more may be so.
        let (gone, there) = guard
            .left_of(cut.as_slice(), &wanted)
            .unwrap_or_else(|_| (cut.into_iter().collect(), Vec::new()));
        let missing: Vec<Link> = wanted.into_iter().filter(|link| !there.contains(link)).collect();
        let mut left = guard.tell(&gone, "gone");
        left.push(format!("node `{}` is in the graph", guard.name(id)));
        left.extend(guard.tell(&missing, "missing"));
        left.extend(more);
        HalfDone::error(cause, Some(undo), left)
    }
}
