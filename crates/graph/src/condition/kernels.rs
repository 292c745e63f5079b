//! Kernel nodes that set conditions: those with handles of conditions among their arguments.

use smallvec::SmallVec;

use crate::edge::Link;
use crate::edge_kind::EdgeKind;
use crate::error::{Error, NodeError, Result};
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::loop_control::LoopDecision;
use crate::state::owners::Owners;
use crate::state::params::{KernelHandles, NodeParams};
use crate::toposort::Index;

impl GraphGuard<'_> {
    /// Refuses handles of conditions of another hierarchy.
    pub(crate) fn ensure_own_handles(&self, handles: &KernelHandles, node_params: &NodeParams) -> Result<()> {
        let name = if let NodeParams::Kernel { kernel, .. } = node_params { kernel.name() } else { "kernel" };
        handles.iter().try_for_each(|handle| self.ensure_own(*handle, name))
    }

    /// The nodes in a subgraph that assign the conditions of these handles their defaults there.
    pub(crate) fn default_nodes(
        &self,
        handles: &KernelHandles,
        subgraph: SubgraphId,
    ) -> SmallVec<[NodeId; 1]> {
        handles.iter().filter_map(|handle| self.default_node(handle.number(), subgraph)).collect()
    }

    /// Records which handles a kernel node has now.
    pub(crate) fn note_handles(&mut self, index: Index, handles: &KernelHandles) {
        if !handles.is_empty() || self.has_handles(index) {
            self.conditions.set_handles(index, handles.iter().map(|handle| handle.number()).collect());
        }
    }

    /// The kernel nodes with handles of conditions.
    pub(crate) fn kernels_with_handles(&self) -> impl Iterator<Item = NodeId> {
        self.conditions.kernels().filter_map(|index| self.id(index))
    }

    /// Whether a node is a kernel node with handles of conditions.
    #[inline]
    pub(crate) fn is_deciding(&self, node: NodeId) -> bool {
        self.has_handles(node.index)
    }

    #[inline]
    fn has_handles(&self, kernel: Index) -> bool {
        !self.conditions.are_in_no_kernel() && !self.conditions.of_kernel(kernel).is_empty()
    }

    /// Prepares a launch with other handles of conditions for a kernel node: checks the handles,
    /// and adds edges from the nodes that assign their defaults. Returns these edges.
    #[cold]
    pub(crate) fn let_decide(
        &mut self,
        node: NodeId,
        handles: &KernelHandles,
        node_params: &NodeParams,
    ) -> Result<Vec<Link>> {
        self.ensure_own_handles(handles, node_params)?;
        let new = self.edges_from_defaults(node, handles)?;
        self.change(&[], &new)?;
        Ok(new)
    }

    /// Completes [`let_decide`](Self::let_decide): records the new handles or, if the driver
    /// refused the launch, removes the new edges.
    #[cold]
    pub(crate) fn decided(
        &mut self,
        node: NodeId,
        handles: &KernelHandles,
        new: &[Link],
        outcome: Result<()>,
    ) -> Result<()> {
        let Err(cause) = outcome else {
            self.note_handles(node.index, handles);
            let before = self.record_mut(node).and_then(|record| record.owners.take_decision());
            self.drop_deferred(before.map(LoopDecision::into_owner));
            return Ok(());
        };
        if self.ensure_usable().is_err() {
            return Err(cause);
        }
        match self.change(new, &[]) {
            Ok(()) => Err(cause),
            Err(undo) => Err(self.broken(cause, undo, Owners::new())),
        }
    }

    /// The edges that make a kernel node run after the nodes that assign the defaults of its
    /// conditions.
    fn edges_from_defaults(&mut self, node: NodeId, handles: &KernelHandles) -> Result<Vec<Link>> {
        let within =
            self.record(node).map(|record| record.within).ok_or(Error::Node(NodeError::GraphRemoved))?;
        let mut new: Vec<Link> = Vec::new();
        for handle in handles {
            if let Some(from) = self.default_node(handle.number(), within)
                && !new.iter().any(|link| link.from == from)
                && self.kind_of(from, node)?.is_none()
            {
                new.push(Link { from, to: node, kind: EdgeKind::Full });
            }
        }
        Ok(new)
    }
}
