//! Removing nodes.

use std::collections::HashSet;

use cuda_handles::clones;
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
    /// Removes nodes with their edges and lets go of what they used; see [`Node::remove`]. A node
    /// given twice counts once.
    ///
    /// All are checked before the first is removed. One driver call each.
    ///
    /// Stands on `cuGraphDestroyNode`, CUDA 10.0.
    ///
    /// # Errors
    /// A node of another graph or a removed one; or what the driver answers, which removes no nodes
    /// of a graph with memory nodes. The graph is unchanged then, unless some were removed before
    /// one failed: then [`Error::RemovedSome`] names them.
    #[doc(alias = "cuGraphDestroyNode")]
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
    /// Removes the node and its edges from the graph and lets go of what it used.
    ///
    /// Executables made before keep the node and what it uses.
    ///
    /// Stands on `cuGraphDestroyNode`, CUDA 10.0.
    ///
    /// # Errors
    /// It is removed already, or what the driver answers, which removes no nodes of a graph with
    /// memory nodes.
    #[doc(alias = "cuGraphDestroyNode")]
    pub fn remove(&self) -> Result<()> {
        // The rows with their owners come out of the lock before they are dropped.
        let taken = self.graph().enter().and_then(|mut guard| {
            let id = guard.live_id(self)?;
            guard.destroy(id)
        });
        taken.map(drop)
    }

    /// Removes the node, and lets the nodes that waited for it wait for those that it waited for,
    /// by full edges: the order of the others stays.
    ///
    /// Stands on `cuGraphRemoveDependencies`, `cuGraphAddDependencies` and `cuGraphDestroyNode`,
    /// CUDA 10.0, each called once, after queries of the node's edges and of those of its
    /// successors.
    ///
    /// # Errors
    /// It is removed already, or what the driver answers, which removes neither edges nor nodes of
    /// a graph with memory nodes. The graph is unchanged then, or
    /// [broken](Error::Broken). (If edges had to be taken away and added again
    /// meanwhile, their order may be another.)
    #[doc(alias = "cuGraphDestroyNode")]
    pub fn remove_bridging(&self) -> Result<()> {
        // The rows with their owners come out of the lock before they are dropped.
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
        let there = self.kinds_of(&bridges)?;
        let new = bridges.iter().zip(there).filter(|(_, kind)| kind.is_none());
        let link = |(from, to)| Link { from, to, kind: EdgeKind::Full };
        let new: Vec<Link> = new.map(|(ends, _)| link(*ends)).collect();
        // Edges first: where the driver refuses that, as in a graph with memory nodes, nothing has
        // been done.
        self.change(&entering, &new)?;
        match self.destroy(id) {
            Ok(taken) => Ok(taken),
            Err(error) => Err(self.restore_edges(error, &entering, &new)),
        }
    }

    /// A node's edges.
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

    /// Destroys a node that is there; gives its row, and those of the graph in it, which are to be
    /// dropped after the lock.
    fn destroy(&mut self, id: NodeId) -> Result<TakenNodes> {
        self.destroy_raw(id)?;
        let default = match self.record(id).map(|record| &record.node_params) {
            Some(NodeParams::Conditional(conditional)) => conditional.default,
            _ => None,
        };
        let taken = self.take(id);
        // It is of no use without the node, and of no harm: should the driver refuse, it stays.
        let _stays = self.remove_default(default);
        Ok(taken)
    }

    /// The driver call that destroys a node that is there. Its row goes right afterwards.
    pub(crate) fn destroy_raw(&self, id: NodeId) -> Result<()> {
        let raw = self.raw_of(id)?;
        self.ensure_may_lose(id, "nodes")?;
        let result = {
            let _alone = clones::alone(self.context())?;
            // SAFETY: the table says that the node is live and of this hierarchy, whose lock is
            // held. Nobody sees the table before the row is gone.
            unsafe { self.driver().cuGraphDestroyNode(raw) }
        };
        self.answer(Call::cuGraphDestroyNode, result)
    }
}
