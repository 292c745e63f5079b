//! Bodies of conditional nodes: which nodes they may hold, and the nodes that assign defaults in
//! them.

use cuda_handles::MemorySpace;
use cuda_launch::per;
use cuda_sys::{CUgraph, CUgraphNode, CUgraphNodeParams, Call, Feature};

use crate::build::frontier::Frontier;
use crate::build::insertion::PlainNode;
use crate::clone::snapshot::GraphSnapshot;
use crate::condition::set_kernel::SetKernel;
use crate::edge_kind::EdgeKind;
use crate::error::{ConditionError, Error, Result};
use crate::graph::Graph;
use crate::node_kind::NodeKind;
use crate::state::guard::GraphGuard;
use crate::state::host_function::Host;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::owners::Owners;
use crate::state::params::{Conditional, NodeParams};
use crate::state::raw_params::kernel_params;

impl NodeParams {
    /// Whether the driver runs such a node in a body. Others would fail at instantiation.
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

impl Graph {
    /// Refuses host functions, if the graph lies in a body.
    pub(crate) fn ensure_may_call_back(&self) -> Result<()> {
        let subgraph = self.subgraph();
        if subgraph.is_root() {
            return Ok(());
        }
        self.look()?.ensure_may_hold(subgraph, &NodeParams::Host(Host::Closure("")))
    }
}

impl GraphGuard<'_> {
    /// Refuses a node that cannot be in a body, if the subgraph lies in one.
    #[inline]
    pub(crate) fn ensure_may_hold(&self, subgraph: SubgraphId, node_params: &NodeParams) -> Result<()> {
        if subgraph.is_root() { Ok(()) } else { self.ensure_body_may_hold(subgraph, node_params) }
    }

    /// Refuses a graph to be embedded that has a node which cannot be in a body, if the subgraph
    /// lies in one.
    pub(crate) fn ensure_may_hold_all(&self, subgraph: SubgraphId, snapshot: &GraphSnapshot) -> Result<()> {
        snapshot.node_params().try_for_each(|node_params| self.ensure_may_hold(subgraph, node_params))?;
        if subgraph.is_root() { Ok(()) } else { self.ensure_not_mixed_up(subgraph) }
    }

    /// Refuses a child graph in one of two bodies, if the driver mixes these up.
    #[cold]
    fn ensure_not_mixed_up(&self, subgraph: SubgraphId) -> Result<()> {
        let version = self.driver().version();
        if !version.has(Feature::IfElse) || version.has(Feature::ChildGraphInIfElse) {
            return Ok(());
        }
        match self.enclosing_if_else(subgraph) {
            Some(node) => {
                Err(Error::Condition(ConditionError::ChildInTwoBodies { conditional: self.name(node) }))
            }
            None => Ok(()),
        }
    }

    #[cold]
    fn ensure_body_may_hold(&self, subgraph: SubgraphId, node_params: &NodeParams) -> Result<()> {
        match self.enclosing_conditional(subgraph) {
            Some(conditional) if !node_params.may_be_in_body() => {
                Err(Error::Condition(ConditionError::NotInBody {
                    kind: node_params.kind(),
                    conditional: self.name(conditional),
                }))
            }
            _ => Ok(()),
        }
    }

    /// Adds a node without dependencies to a graph of the hierarchy, and no record of it.
    pub(crate) fn add_alone(&self, graph: CUgraph, params: &mut CUgraphNodeParams) -> Result<CUgraphNode> {
        let mut raw = core::ptr::null_mut();
        // SAFETY: the graph is live and locked, and the parameters are complete for their type.
        let result =
            unsafe { self.driver().cuGraphAddNode(&raw mut raw, graph, core::ptr::null(), 0, params) };
        self.answer(Call::cuGraphAddNode, result)?;
        Ok(raw)
    }

    /// The node in a subgraph that assigns a condition its default there.
    pub(crate) fn default_node(&self, condition: u64, subgraph: SubgraphId) -> Option<NodeId> {
        let node = self.record(self.conditions.find(condition)?.node?)?;
        match &node.node_params {
            NodeParams::Conditional(Conditional { default, .. }) if node.within == subgraph => {
                default.filter(|id| self.record(*id).is_some())
            }
            _ => None,
        }
    }

    /// Removes a node that assigns a default. Its owners are dropped after the lock.
    pub(crate) fn remove_default(&mut self, default: Option<NodeId>) -> Result<()> {
        if let Some(id) = default.filter(|id| self.record(*id).is_some()) {
            self.destroy_raw(id)?;
            self.remove_deferred(id);
        }
        Ok(())
    }

    /// Removes the node that assigns a default after the driver refused the conditional node.
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

/// Adds the node that assigns a condition its default whenever a body starts. It runs before all
/// kernels of the body that have the condition.
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
