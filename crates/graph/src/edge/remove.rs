//! Removing nodes.

use std::collections::HashSet;

use cuda_handles::internal::alone_in_order;
use cuda_sys::Call;

use super::change::Link;
use super::query::Way;
use crate::edge::kind_query::Ends;
use crate::edge_kind::EdgeKind;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::state::TakenNodes;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::params::NodeParams;

impl Graph {
    /// Removes nodes with their edges and drops what they kept alive; see [`Node::remove`]. A node
    /// given twice counts once.
    ///
    /// All nodes are checked before the first is removed. One driver call for each.
    ///
    /// Calls `cuGraphDestroyNode` (CUDA 10.0).
    ///
    /// # Errors
    /// - [`NodeError::Foreign`](crate::NodeError::Foreign), if a node is in another graph;
    ///   [`NodeError::Removed`](crate::NodeError::Removed), if a node was removed.
    /// - [`MemoryError::KeepsAll`](crate::MemoryError::KeepsAll), if the graph has memory nodes:
    ///   the driver removes no nodes then.
    /// - The driver's error.
    ///
    /// The graph is unchanged then. If the driver fails after some nodes were removed, the error is
    /// [`Error::RemovedSome`], which names them.
    #[doc(alias = "cuGraphDestroyNode")]
    #[doc(alias = "cudaGraphDestroyNode")]
    pub fn remove_nodes(&self, nodes: &[&Node]) -> Result<()> {
        nodes.iter().try_for_each(|node| self.ensure_own(node))?;
        // Declared before the guard, so that the records are dropped after the lock is released.
        let mut removed: Vec<(NodeId, TakenNodes)> = Vec::with_capacity(nodes.len());
        let mut guard = self.enter()?;
        let (mut seen, mut ids) = (HashSet::with_capacity(nodes.len()), Vec::with_capacity(nodes.len()));
        for node in nodes {
            let id = guard.live_id(node)?;
            if seen.insert(id) {
                ids.push(id);
            }
        }
        for id in ids {
            // A node that sets a default is removed together with its conditional node.
            if guard.record(id).is_none() {
                continue;
            }
            match guard.destroy(id) {
                Ok(taken) => removed.push((id, taken)),
                Err(error) if removed.is_empty() => return Err(error),
                Err(error) => return Err(removed_some(&removed, error)),
            }
        }
        Ok(())
    }
}

/// The error of a removal that fails after other nodes were removed.
fn removed_some(removed: &[(NodeId, TakenNodes)], cause: Error) -> Error {
    let records = removed.iter().filter_map(|(id, taken)| Some((id, &taken.first()?.record)));
    let names = records.map(|(id, record)| format!("node `{}` is removed", record.display_name(*id)));
    Error::RemovedSome { removed: names.collect(), cause: Box::new(cause) }
}

impl Node {
    /// Removes the node and its edges from the graph, and drops what it kept alive.
    ///
    /// Executables made before still contain the node and keep alive what it uses.
    ///
    /// Calls `cuGraphDestroyNode` (CUDA 10.0).
    ///
    /// # Errors
    /// [`NodeError::Removed`](crate::NodeError::Removed), if the node was removed before;
    /// [`MemoryError::KeepsAll`](crate::MemoryError::KeepsAll), if the graph has memory nodes; or
    /// the driver's error.
    #[doc(alias = "cuGraphDestroyNode")]
    #[doc(alias = "cudaGraphDestroyNode")]
    pub fn remove(&self) -> Result<()> {
        // The records leave the lock before they are dropped.
        let taken = self.graph().enter().and_then(|mut guard| {
            let id = guard.live_id(self)?;
            guard.destroy(id)
        });
        taken.map(drop)
    }

    /// Removes the node and connects each of its predecessors with each of its successors by a full
    /// edge, so that the order of the other nodes stays.
    ///
    /// Calls `cuGraphRemoveDependencies`, `cuGraphAddDependencies` and `cuGraphDestroyNode` (CUDA
    /// 10.0) once each, after queries of the edges of the node and of its successors.
    ///
    /// # Errors
    /// [`NodeError::Removed`](crate::NodeError::Removed), if the node was removed before;
    /// [`MemoryError::KeepsAll`](crate::MemoryError::KeepsAll), if the graph has memory nodes; or
    /// the driver's error. The graph is unchanged then, or [broken](Error::Broken). (If edges had
    /// to be removed and added again meanwhile, their order may differ.)
    #[doc(alias = "cuGraphDestroyNode")]
    pub fn remove_bridging(&self) -> Result<()> {
        // The records leave the lock before they are dropped.
        let taken = self.graph().enter().and_then(|mut guard| guard.bridge(self));
        taken.map(drop)
    }
}

impl GraphGuard<'_> {
    fn bridge(&mut self, node: &Node) -> Result<TakenNodes> {
        let id = self.live_id(node)?;
        let entering = self.links_of(id, Way::In)?;
        let leaving = self.links_of(id, Way::Out)?;
        if entering.is_empty() || leaving.is_empty() {
            return self.destroy(id);
        }
        let bridges: Vec<Ends> =
            leaving.iter().flat_map(|after| entering.iter().map(|before| (before.from, after.to))).collect();
        let existing = self.kinds_of(&bridges)?;
        let new = bridges.iter().zip(existing).filter(|(_, kind)| kind.is_none());
        let link = |(from, to)| Link { from, to, kind: EdgeKind::Full };
        let new: Vec<Link> = new.map(|(ends, _)| link(*ends)).collect();
        // Edges first: if the driver refuses that, as in a graph with memory nodes, nothing has
        // changed.
        self.change(&entering, &new)?;
        match self.destroy(id) {
            Ok(taken) => Ok(taken),
            Err(error) => Err(self.restore_edges(error, &entering, &new)),
        }
    }

    /// The edges on one side of a node.
    fn links_of(&mut self, id: NodeId, way: Way) -> Result<Vec<Link>> {
        let mut links = Vec::new();
        for (raw, kind) in self.neighbours(self.raw_of(id)?, way)? {
            let (other, _) = self.node_of_raw(raw)?;
            links.push(match way {
                Way::In => Link { from: other, to: id, kind },
                Way::Out => Link { from: id, to: other, kind },
            });
        }
        Ok(links)
    }

    /// Destroys an existing node. Returns its record and the records of the graphs in it, to be
    /// dropped after the lock.
    fn destroy(&mut self, id: NodeId) -> Result<TakenNodes> {
        self.destroy_raw(id)?;
        let params = self.record(id).map(|record| &record.node_params);
        let default =
            if let Some(NodeParams::Conditional(conditional)) = params { conditional.default } else { None };
        let taken = self.take(id);
        // Without its conditional node, a default is useless and harmless. If the driver refuses to
        // remove it, it stays.
        let _stays = self.remove_default(default);
        Ok(taken)
    }

    /// The driver call that destroys an existing node. The caller takes out its record right
    /// afterwards.
    pub(crate) fn destroy_raw(&self, id: NodeId) -> Result<()> {
        let raw = self.raw_of(id)?;
        self.ensure_may_lose(id, "nodes")?;
        let result = {
            let _alone = alone_in_order(self.context())?;
            // SAFETY: the record says that the node is live and in this hierarchy, whose lock is
            // held. Nobody sees the state before the record is taken out.
            unsafe { self.driver().cuGraphDestroyNode(raw) }
        };
        self.answer(Call::cuGraphDestroyNode, result)
    }
}
