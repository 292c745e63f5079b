//! Putting a new node before nodes that are there, and into an edge.

use cuda_handles::clones;
use cuda_sys::{CUgraphChildGraphNodeOwnership, CUgraphNode, CUgraphNodeParams, CUgraphNodeType};

use crate::edge::EdgeKind;
use crate::error::{Error, Result};
use crate::graph::Locked;
use crate::kind::NodeKind;
use crate::place::NodeId;
use crate::table::Entering;
use crate::topology::{Link, ensure_kinds};

/// What the nodes added at a frontier come before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    pub(crate) nodes: Vec<(NodeId, EdgeKind)>,
    /// The edge that goes with the first node, if it is still there.
    pub(crate) cut: Option<(NodeId, NodeId)>,
}

/// Refuses what cannot be taken out again: a node into which a graph is moved would take the graph with it.
pub(crate) fn ensure_undoable(params: &CUgraphNodeParams) -> Result<()> {
    const MOVE: CUgraphChildGraphNodeOwnership =
        CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    let is_graph = params.type_ == CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH;
    // SAFETY: the parameters are complete for their type.
    let is_moved = is_graph && unsafe { params.__bindgen_anon_1.graph.ownership } == MOVE;
    if is_moved { Err(Error::MovesBefore) } else { Ok(()) }
}

impl Locked<'_> {
    /// Prepares the add of a node of a kind: everything is checked, labels are found, and the edge is taken away. Edges come first, since a graph
    /// with memory nodes refuses that: so nothing has changed then.
    #[cold]
    pub(crate) fn make_room(
        &mut self,
        after: impl Iterator<Item = NodeId>,
        before: &Before,
        kind: NodeKind,
    ) -> Result<Entering> {
        for &(id, edge) in &before.nodes {
            let row = self.row(id).ok_or_else(|| removed(id))?;
            if edge == EdgeKind::Full {
                continue;
            }
            if kind != NodeKind::Kernel || !row.detail.kind().is_kernel() {
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
        Ok(Entering { label, cut: cut.map(|Link { from, to, kind }| (from, to, kind)) })
    }

    /// After the add failed.
    #[cold]
    pub(crate) fn take_room_back(&mut self, entering: &Entering, cause: Error) -> Error {
        match entering.cut {
            Some((from, to, kind)) => self.put_right(cause, &[Link { from, to, kind }], &[]),
            None => cause,
        }
    }

    /// Lets nodes wait for one that was added just now. One driver call for each kind of edge that occurs.
    #[cold]
    pub(crate) fn join_before(&self, raw: CUgraphNode, before: &Before) -> Result<()> {
        let mut edges = Vec::with_capacity(before.nodes.len());
        for &(id, kind) in &before.nodes {
            edges.push((raw, self.row(id).ok_or_else(|| removed(id))?.raw.0, kind));
        }
        self.link_raw(edges.into_iter())
    }

    /// Takes out a node that was added just now and that nobody knows, and puts the edge back that it took the place of. False if the node had to
    /// stay; then its row is to be inserted.
    #[cold]
    pub(crate) fn undo(&mut self, raw: CUgraphNode) -> bool {
        // First the edge: while it is not there, the node stands for it.
        if let Some((from, to, kind)) = self.entering.as_ref().and_then(|entering| entering.cut)
            && self.link(&[Link { from, to, kind }]).is_err()
        {
            return false;
        }
        let _alone = clones::alone();
        // SAFETY: the node is live, and nobody knows it.
        let gone = unsafe { self.driver().cuGraphDestroyNode(raw) }.is_success();
        if gone {
            self.entering = None;
        }
        gone
    }
}

fn removed(id: NodeId) -> Error {
    Error::Removed { node: format!("node#{}", id.number).into() }
}
