//! What bodies of conditional nodes may hold, and what is done in them that the driver does not do.

use core::ops::Range;

use cuda_handles::MemorySpace;
use cuda_launch::per;
use cuda_sys::{CUgraph, CUgraphNode, CUgraphNodeParams, Call, Version};

use crate::build::frontier::Frontier;
use crate::build::insertion::PlainNode;
use crate::clone::snapshot::GraphSnapshot;
use crate::condition::set_kernel::SetKernel;
use crate::edge_kind::EdgeKind;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::node_kind::NodeKind;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::owners::Owners;
use crate::state::params::{Conditional, NodeParams};
use crate::state::raw_params::kernel_params;

/// Drivers on which a node with two bodies misbehaves if they hold child graphs.
const MIXED_UP: Range<Version> = Version::new(12, 8)..Version::new(13, 0);

impl NodeParams {
    /// Whether the driver runs it in a body; else it would fail at instantiation.
    pub(crate) fn may_be_in_body(&self) -> bool {
        match self {
            Self::Memcpy(layout) => {
                let spaces = [layout.source.space, layout.destination.space];
                !spaces.contains(&MemorySpace::Pageable)
            }
            other => matches!(
                other.kind(),
                NodeKind::Empty
                    | NodeKind::Kernel
                    | NodeKind::Memset
                    | NodeKind::ChildGraph
                    | NodeKind::If
                    | NodeKind::IfElse
                    | NodeKind::While
                    | NodeKind::Switch
            ),
        }
    }
}

impl GraphGuard<'_> {
    /// Refuses what cannot be in a graph because that lies in a body.
    #[inline]
    pub(crate) fn ensure_may_hold(&self, subgraph: SubgraphId, node_params: &NodeParams) -> Result<()> {
        if subgraph.is_root() { Ok(()) } else { self.ensure_body_may_hold(subgraph, node_params) }
    }

    /// Refuses the nodes of a graph that is to be embedded.
    pub(crate) fn ensure_may_hold_all(&self, subgraph: SubgraphId, copied: &GraphSnapshot) -> Result<()> {
        copied.node_params().try_for_each(|node_params| self.ensure_may_hold(subgraph, node_params))?;
        if subgraph.is_root() { Ok(()) } else { self.ensure_not_mixed_up(subgraph) }
    }

    /// Refuses child graphs in nodes with two bodies, where the driver mixes them up.
    #[cold]
    fn ensure_not_mixed_up(&self, subgraph: SubgraphId) -> Result<()> {
        if !MIXED_UP.contains(&self.driver().version()) {
            return Ok(());
        }
        match self.enclosing_if_else(subgraph) {
            Some(node) => Err(Error::ChildInTwoBodies { conditional: self.name(node) }),
            None => Ok(()),
        }
    }

    #[cold]
    fn ensure_body_may_hold(&self, subgraph: SubgraphId, node_params: &NodeParams) -> Result<()> {
        match self.enclosing_conditional(subgraph) {
            Some(conditional) if !node_params.may_be_in_body() => {
                Err(Error::NotInBody { kind: node_params.kind(), conditional: self.name(conditional) })
            }
            _ => Ok(()),
        }
    }

    /// Adds a node that waits for nothing to a graph of the hierarchy.
    pub(crate) fn add_alone(&self, graph: CUgraph, params: &mut CUgraphNodeParams) -> Result<CUgraphNode> {
        let mut raw = core::ptr::null_mut();
        // SAFETY: the graph is live and locked, and the parameters are complete for their type.
        let result =
            unsafe { self.driver().cuGraphAddNode(&raw mut raw, graph, core::ptr::null(), 0, params) };
        self.answer(Call::cuGraphAddNode, result)?;
        Ok(raw)
    }

    /// The node in a graph that gives a condition its default there.
    pub(crate) fn default_node(&self, condition: u64, subgraph: SubgraphId) -> Option<NodeId> {
        let node = self.record(self.conditions.find(condition)?.node?)?;
        match &node.node_params {
            NodeParams::Conditional(Conditional { default, .. }) if node.within == subgraph => {
                default.filter(|id| self.record(*id).is_some())
            }
            _ => None,
        }
    }

    /// Takes out a node that sets a default. The row's owners go with the lock.
    pub(crate) fn remove_default(&mut self, default: Option<NodeId>) -> Result<()> {
        if let Some(id) = default.filter(|id| self.record(*id).is_some()) {
            self.destroy_raw(id)?;
            self.remove_deferred(id);
        }
        Ok(())
    }

    /// Takes out the node that sets a default after the conditional node could not be added.
    #[cold]
    pub(crate) fn take_default_back(&mut self, default: Option<NodeId>, cause: Error) -> Error {
        if self.ensure_usable().is_err() {
            return cause;
        }
        match self.remove_default(default) {
            Ok(()) => cause,
            Err(undo) => self.broken(cause, undo, Owners::new()),
        }
    }
}

/// Adds the node that gives a condition its default each time a body begins: before all kernels
/// there that have the condition.
pub(crate) fn add_default(
    graph: &Graph,
    guard: &mut GraphGuard<'_>,
    condition: u64,
    setter: SetKernel,
) -> Result<NodeId> {
    let subgraph = graph.subgraph();
    let here = |id: &NodeId| guard.record(*id).is_some_and(|record| record.within == subgraph);
    let kernels: Vec<(NodeId, EdgeKind)> =
        guard.setters(condition).filter(here).map(|id| (id, EdgeKind::Full)).collect();
    let frontier = Frontier::before_ids(graph, kernels);
    let config = per(1, 1);
    let node_params = NodeParams::Kernel {
        kernel: setter.kernel.clone(),
        config: config.into(),
        accesses: SetKernel::accesses(),
    };
    let new = PlainNode { subgraph, node_params, owners: Owners::from_iter([setter.own.owner()]) };
    let id = setter.with_pointers(|pointers| {
        let mut params = kernel_params(&setter.kernel, config, pointers);
        frontier.insert(guard, new, &mut params)
    })?;
    if let Some(record) = guard.record_mut(id) {
        record.name = Some(format!("default of condition {condition}").into());
    }
    guard.conditions.set_handles(id.index, [condition].into());
    Ok(id)
}
