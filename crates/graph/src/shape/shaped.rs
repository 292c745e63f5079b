//! The graph of its own that an executable is made of.

use std::collections::HashMap;
use std::sync::Arc;

use cuda_handles::{Allocation, Context, GraphHandle, Owner};
use cuda_sys::{CUgraph, CUgraphNode};

use crate::graph::Graph;
use crate::own_kernels::Own;
use crate::shape::levels::Level;
use crate::shape::made::{Made, MadeNode, NotMade, OfKey, RawNodes};
use crate::shape::overlap::overlap_of_kernel;
use crate::shape::planning::drawn::Overlap;
use crate::shape::planning::plan::ShapePlan;
use crate::shape::planning::report::Action as PlanAction;
use crate::shape::reliance::{Reliance, ends_alone};
use crate::shape::substitute::Substitutes;
use crate::shape::substitute::launch::SubstituteKernels;
use crate::shape::substitute::work::MemoryWork;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::params::NodeParams;

/// A graph that does the same as the one that the user has drawn, with a map from its nodes.
///
/// An executable that is made of it is updated by its nodes, so it lives as long.
#[derive(Debug)]
pub(crate) struct ShapedGraph {
    graph: GraphHandle,
    nodes: RawNodes,
    made: Made,
    /// The graph of the last whole update, if it has conditions. It lives on, since it is not known
    /// whether the driver's executable goes on without it.
    latest: Option<GraphHandle>,
    /// The nodes whose parameters the shape relies on.
    reliances: HashMap<NodeId, Reliance>,
    /// The kernels, events and semaphores of the nodes, as they were made. The driver is given
    /// these nodes in each update, also once the executable and the user's graph have others.
    /// Declared after the graph, which is destroyed first.
    _used: Vec<Owner>,
}

impl ShapedGraph {
    /// Makes the graph of the plans of a graph and the bodies in it. The context is current.
    ///
    /// With `assume_progress` it relies on no promise of a kernel.
    pub(super) fn make(
        guard: &GraphGuard<'_>,
        levels: &[(Level, ShapePlan)],
        (own, substitutes): (&Arc<Own>, SubstituteKernels),
        assume_progress: bool,
    ) -> Result<Self, NotMade> {
        let made = Made::of(guard, levels, (own, substitutes))?;
        let (graph, nodes) = made.build(guard, &Some)?;
        let mut reliances = made.overlaps();
        let is_promising = |id: &NodeId| {
            let record = guard.record(*id);
            record.is_some_and(|record| ends_alone(&record.node_params) == Some(true))
        };
        let actions = || levels.iter().flat_map(|(_, plan)| &plan.report.actions);
        let relies = !assume_progress && actions().any(PlanAction::relies_on_progress);
        for id in nodes.0.keys().copied().filter(|id| relies && is_promising(id)) {
            reliances.entry(id).or_default().ends_alone = true;
        }
        let used = nodes.0.keys().flat_map(|id| objects_of(guard, *id)).collect();
        Ok(Self { graph, nodes, made, latest: None, reliances, _used: used })
    }

    /// The nodes of the graph itself, then those of the bodies in it.
    pub(crate) fn graphs(&self) -> &[Vec<MadeNode>] {
        self.made.graphs()
    }

    /// Why the shape does not permit new parameters for a node, if it does not. `memory` is all
    /// that they keep alive.
    pub(crate) fn refusal(
        &self,
        context: &Context,
        id: NodeId,
        params: &NodeParams,
        memory: &[&Arc<Allocation>],
    ) -> Option<&'static str> {
        if let Some(work) = MemoryWork::of(params) {
            return self.refusal_of_work(context, id, &work, memory);
        }
        let overlap = overlap_of_kernel(context, params, memory);
        self.reliances.get(&id)?.refusal(params, overlap)
    }

    /// Why the shape does not permit a fill or copy for a node, if it does not. `memory` is all
    /// that the new parameters keep alive.
    pub(crate) fn refusal_of_work(
        &self,
        context: &Context,
        id: NodeId,
        work: &MemoryWork,
        memory: &[&Arc<Allocation>],
    ) -> Option<&'static str> {
        let substitutes = self.made.substitutes();
        let overlap = || substitutes.overlap(context, id, work, memory);
        let at_edges = || self.reliances.get(&id)?.refusal_of_overlap(overlap()?);
        substitutes.refusal(context, id, work, memory).or_else(at_edges)
    }

    /// Why the shape does not permit memory that a graph parameter of a kernel stands for, if it
    /// does not.
    pub(crate) fn refusal_of_memory(
        &self,
        context: &Context,
        id: NodeId,
        memory: &Arc<Allocation>,
    ) -> Option<&'static str> {
        self.reliances.get(&id)?.refusal_of_memory(context, memory)
    }

    /// Why the shape does not permit that a node is disabled, if it does not.
    pub(crate) fn refusal_of_disabling(&self, id: NodeId) -> Option<&'static str> {
        self.reliances.get(&id)?.refusal_of_disabling()
    }

    /// A node of a graph whose parameters the shape does not permit, and why. `of_key` gives the
    /// node for one of the graph that was shaped.
    pub(crate) fn forbidden(
        &self,
        guard: &GraphGuard<'_>,
        of_key: OfKey<'_>,
    ) -> Option<(NodeId, &'static str)> {
        let refusal = |key: NodeId, id: NodeId| {
            let never = guard.overlaps_never(id).then_some(Overlap::Never);
            let at_edges = never.and_then(|never| self.reliances.get(&key)?.refusal_of_overlap(never));
            let params = || Some(&guard.record(id)?.node_params);
            at_edges.or_else(|| self.refusal(guard.context(), key, params()?, &guard.memory_of(id)))
        };
        let mut keys: Vec<NodeId> =
            self.reliances.keys().chain(self.made.substitutes().nodes()).copied().collect();
        // So that the same node is named each time.
        keys.sort_unstable_by_key(|key| key.number);
        keys.into_iter().find_map(|key| {
            let id = of_key(key)?;
            Some((id, refusal(key, id)?))
        })
    }

    /// The nodes in whose place a kernel of the library runs.
    pub(crate) fn substitutes(&self) -> &Substitutes {
        self.made.substitutes()
    }

    /// Another graph of the same shape, with the parameters that the nodes of a graph have now.
    /// `of_key` gives the node for one of the graph that was shaped. The context is current.
    pub(crate) fn again(&self, guard: &GraphGuard<'_>, of_key: OfKey<'_>) -> Result<GraphHandle, NotMade> {
        self.made.build(guard, of_key).map(|(graph, _)| graph)
    }

    /// Notes that the executable was updated from another graph of the same shape. Returns the
    /// graphs that are of no use any more, to be dropped without the lock.
    pub(crate) fn updated_from(&mut self, copy: Option<GraphHandle>) -> Option<GraphHandle> {
        if self.made.has_bodies() { core::mem::replace(&mut self.latest, copy) } else { copy }
    }

    pub(crate) fn as_raw(&self) -> CUgraph {
        self.graph.as_raw()
    }

    /// The node that stands for one of the user's, if one alone does.
    pub(crate) fn node(&self, id: NodeId) -> Option<CUgraphNode> {
        self.nodes.0.get(&id).copied()
    }

    /// The user's node that a node stands for.
    pub(crate) fn id_of(&self, raw: CUgraphNode) -> Option<NodeId> {
        self.nodes.0.iter().find(|(_, node)| **node == raw).map(|(id, _)| *id)
    }

    /// What its runs use besides what the nodes of the drawn graph do: the library's own kernels,
    /// and the drawn graph itself. Other code may have given that one user objects, in a capture,
    /// of which the driver's executable of another graph has no share.
    pub(crate) fn owners(&self, drawn: &Graph) -> impl Iterator<Item = Owner> {
        self.made.owner().into_iter().chain([Owner::other(drawn.clone())])
    }
}

/// The kernel, the event or the semaphores of a node.
fn objects_of(guard: &GraphGuard<'_>, id: NodeId) -> impl Iterator<Item = Owner> {
    let is_object =
        |owner: &&Owner| matches!(owner, Owner::Kernel(_) | Owner::Event(_) | Owner::ExternalSemaphore(_));
    guard.record(id).into_iter().flat_map(move |record| {
        let kept = record.owners.kept().iter().filter(is_object).cloned();
        kept.chain(record.node_params.owner())
    })
}
