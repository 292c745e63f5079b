//! The graph of its own that an executable is made of.

use std::collections::HashMap;
use std::sync::Arc;

use cuda_handles::{Allocation, Context, GraphHandle, Kernel, Owner};
use cuda_launch::LaunchConfig;
use cuda_sys::{CUgraph, CUgraphNode};

use crate::clone::flattened::{Action, FlatGraph};
use crate::clone::node_copy::{NodeCopy, add_after};
use crate::edge_kind::EdgeKind;
use crate::error::{Error, InteropError, NodeError, Result};
use crate::own_kernels::Own;
use crate::shape::overlap::overlap_of_kernel;
use crate::shape::planning::drawn::Overlap;
use crate::shape::planning::plan::{PlannedEdge, PlannedNode, ShapePlan};
use crate::shape::planning::report::Action as PlanAction;
use crate::shape::reliance::{Reliance, ends_alone};
use crate::shape::substitute::Substitutes;
use crate::shape::substitute::launch::SubstituteKernels;
use crate::shape::substitute::work::MemoryWork;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::params::NodeParams;
use crate::state::raw_params::kernel_params;

/// A graph that does the same as the one that the user has drawn, with a map from its nodes.
///
/// An executable that is made of it is updated by its nodes, so it lives as long.
#[derive(Debug)]
pub(crate) struct ShapedGraph {
    graph: GraphHandle,
    nodes: RawNodes,
    made: Made,
    /// The nodes whose parameters the shape relies on.
    reliances: HashMap<NodeId, Reliance>,
}

/// How a shaped graph was made, so that another one can be made alike.
#[derive(Debug)]
struct Made {
    nodes: Vec<MadeNode>,
    /// The kernel that does nothing, if there is one.
    nothing: Option<Kernel>,
    substitutes: Substitutes,
    own: Arc<Own>,
}

#[derive(Clone, Debug)]
struct MadeNode {
    item: Item,
    /// The nodes that it waits for, by their places.
    after: Vec<(u32, EdgeKind)>,
    /// The programmatic edges that shaping made at it.
    overlap: Overlap,
}

/// The node of a graph, for a node of the graph that was shaped.
type OfKey<'f> = &'f dyn Fn(NodeId) -> Option<NodeId>;

/// A node of a shaped graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Item {
    /// A copy of a node.
    Copy(NodeId),
    /// A kernel of the library in place of a node.
    Substitute(NodeId),
    /// An empty node.
    Empty,
    /// A kernel that does nothing.
    Nothing,
}

/// The nodes of the shaped graph, by the user's.
#[derive(Debug)]
struct RawNodes(HashMap<NodeId, CUgraphNode>);

// SAFETY: the handles are only passed to the driver, with exclusive access to the executable.
unsafe impl Send for RawNodes {}
// SAFETY: as above.
unsafe impl Sync for RawNodes {}

impl ShapedGraph {
    /// Makes the graph of a plan. The context is current.
    ///
    /// With `assume_progress` it relies on no promise of a kernel.
    pub(super) fn make(
        guard: &GraphGuard<'_>,
        flat: &FlatGraph,
        plan: &ShapePlan,
        (own, substitutes): (&Arc<Own>, SubstituteKernels),
        assume_progress: bool,
    ) -> Result<Self> {
        let made = Made::of(guard, flat, plan, (own, substitutes))?;
        let (graph, nodes) = made.build(guard, &Some)?;
        let mut reliances = made.overlaps();
        let is_promising = |id: &NodeId| {
            let record = guard.record(*id);
            record.is_some_and(|record| ends_alone(&record.node_params) == Some(true))
        };
        let relies = !assume_progress && plan.report.actions.iter().any(PlanAction::relies_on_progress);
        for id in nodes.0.keys().copied().filter(|id| relies && is_promising(id)) {
            reliances.entry(id).or_default().ends_alone = true;
        }
        Ok(Self { graph, nodes, made, reliances })
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
        let substitutes = &self.made.substitutes;
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
            let disabled = guard.may_be_disabled(id).then_some(Overlap::Never);
            let at_edges = disabled.and_then(|never| self.reliances.get(&key)?.refusal_of_overlap(never));
            let params = || Some(&guard.record(id)?.node_params);
            at_edges.or_else(|| self.refusal(guard.context(), key, params()?, &guard.memory_of(id)))
        };
        let mut keys: Vec<NodeId> =
            self.reliances.keys().chain(self.made.substitutes.nodes()).copied().collect();
        // So that the same node is named each time.
        keys.sort_unstable_by_key(|key| key.number);
        keys.into_iter().find_map(|key| {
            let id = of_key(key)?;
            Some((id, refusal(key, id)?))
        })
    }

    /// The nodes in whose place a kernel of the library runs.
    pub(crate) fn substitutes(&self) -> &Substitutes {
        &self.made.substitutes
    }

    /// Another graph of the same shape, with the parameters that the nodes of a graph have now.
    /// `of_key` gives the node for one of the graph that was shaped. The context is current.
    pub(crate) fn again(&self, guard: &GraphGuard<'_>, of_key: OfKey<'_>) -> Result<GraphHandle> {
        self.made.build(guard, of_key).map(|(graph, _)| graph)
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

    /// The owner of the library's own kernels in it.
    pub(crate) fn owner(&self) -> Option<Owner> {
        let Made { nothing, substitutes, own, .. } = &self.made;
        (nothing.is_some() || !substitutes.is_empty()).then(|| own.owner())
    }
}

impl Item {
    fn of(node: &PlannedNode, flat: &FlatGraph) -> Self {
        match node {
            PlannedNode::NoOp => Self::Nothing,
            PlannedNode::Substitute(number) => {
                flat.nodes.get(*number as usize).map_or(Self::Empty, |node| Self::Substitute(node.id))
            }
            PlannedNode::Drawn(number) => match flat.nodes.get(*number as usize) {
                Some(node) if matches!(node.action, Action::Run(_)) => Self::Copy(node.id),
                _ => Self::Empty,
            },
        }
    }
}

impl Made {
    fn of(
        guard: &GraphGuard<'_>,
        flat: &FlatGraph,
        plan: &ShapePlan,
        (own, substitutes): (&Arc<Own>, SubstituteKernels),
    ) -> Result<Self> {
        let mut kinds: HashMap<(u32, u32), EdgeKind> = HashMap::new();
        for &(from, to, kind) in flat.edges.iter().filter(|edge| edge.2 != EdgeKind::Full) {
            kinds.insert((from as u32, to as u32), kind);
        }
        let number = |item: u32| match plan.nodes.get(item as usize) {
            Some(PlannedNode::Drawn(number)) => Some(*number),
            _ => None,
        };
        let mut nodes: Vec<MadeNode> = plan
            .nodes
            .iter()
            .map(|node| MadeNode { item: Item::of(node, flat), after: Vec::new(), overlap: Overlap::Never })
            .collect();
        for &(from, to, kind) in &plan.edges {
            let drawn = || kinds.get(&(number(from)?, number(to)?)).copied();
            let kind = match kind {
                PlannedEdge::Full => EdgeKind::Full,
                PlannedEdge::AsDrawn => drawn().unwrap_or_default(),
                PlannedEdge::Programmatic => {
                    note_overlap(&mut nodes, from, to);
                    EdgeKind::Programmatic
                }
            };
            if let Some(node) = nodes.get_mut(to as usize) {
                node.after.push((from, kind));
            }
        }
        let has_nothing = nodes.iter().any(|node| node.item == Item::Nothing);
        let nothing = has_nothing.then(|| own.kernel("nothing")).transpose()?;
        let mut substitutes = Substitutes::new(substitutes);
        for node in &nodes {
            if let Item::Substitute(id) = node.item {
                substitutes.add(guard, id);
            }
        }
        Ok(Self { nodes, nothing, substitutes, own: Arc::clone(own) })
    }

    /// What the shape relies on at programmatic edges that shaping made.
    fn overlaps(&self) -> HashMap<NodeId, Reliance> {
        let overlapping = |node: &MadeNode| match node.item {
            Item::Copy(id) | Item::Substitute(id) if node.overlap != Overlap::Never => {
                Some((id, Reliance { overlap: node.overlap, ..Reliance::default() }))
            }
            _ => None,
        };
        self.nodes.iter().filter_map(overlapping).collect()
    }

    fn build(&self, guard: &GraphGuard<'_>, of_key: OfKey<'_>) -> Result<(GraphHandle, RawNodes)> {
        let graph = GraphHandle::create(guard.context())?;
        let mut raws: Vec<CUgraphNode> = Vec::with_capacity(self.nodes.len());
        let mut nodes = HashMap::with_capacity(self.nodes.len());
        for MadeNode { item, after, .. } in &self.nodes {
            let raw = |&(place, kind): &(u32, EdgeKind)| Some((*raws.get(place as usize)?, kind));
            let after: Option<Vec<(CUgraphNode, EdgeKind)>> = after.iter().map(raw).collect();
            // A plan is in a topological order.
            let after = known(after)?;
            let raw = match *item {
                Item::Copy(key) => {
                    let id = known(of_key(key))?;
                    let raw = copy_of(guard, id)?.add_to(guard, graph.as_raw(), &after)?;
                    nodes.insert(key, raw);
                    raw
                }
                Item::Substitute(key) => {
                    let id = known(of_key(key))?;
                    let raw = self.add_substitute(guard, (key, id), graph.as_raw(), &after)?;
                    nodes.insert(key, raw);
                    raw
                }
                Item::Empty => NodeCopy::empty().add_to(guard, graph.as_raw(), &after)?,
                Item::Nothing => self.add_nothing(guard, graph.as_raw(), &after)?,
            };
            raws.push(raw);
        }
        Ok((graph, RawNodes(nodes)))
    }

    fn add_substitute(
        &self,
        guard: &GraphGuard<'_>,
        (key, id): (NodeId, NodeId),
        graph: CUgraph,
        after: &[(CUgraphNode, EdgeKind)],
    ) -> Result<CUgraphNode> {
        let work = guard.record(id).and_then(|record| MemoryWork::of(&record.node_params));
        match work.and_then(|work| self.substitutes.launch(key, &work)) {
            Some(launch) => launch.with_params(|params| add_after(guard, graph, after, params)),
            None => copy_of(guard, id)?.add_to(guard, graph, after),
        }
    }

    fn add_nothing(
        &self,
        guard: &GraphGuard<'_>,
        graph: CUgraph,
        after: &[(CUgraphNode, EdgeKind)],
    ) -> Result<CUgraphNode> {
        match &self.nothing {
            Some(kernel) => {
                let mut params = kernel_params(kernel, LaunchConfig::new(1, 1), core::ptr::null_mut());
                add_after(guard, graph, after, &mut params)
            }
            None => NodeCopy::empty().add_to(guard, graph, after),
        }
    }
}

/// Notes a programmatic edge at both of its ends.
fn note_overlap(nodes: &mut [MadeNode], from: u32, to: u32) {
    if let Some(node) = nodes.get_mut(from as usize) {
        node.overlap = Overlap::Both;
    }
    if let Some(node) = nodes.get_mut(to as usize)
        && node.overlap == Overlap::Never
    {
        node.overlap = Overlap::Behind;
    }
}

/// What a shape was made with is there.
fn known<T>(found: Option<T>) -> Result<T> {
    found.ok_or(Error::Interop(InteropError::UnknownNode { raw: 0 }))
}

fn copy_of(guard: &GraphGuard<'_>, id: NodeId) -> Result<NodeCopy> {
    let copy = NodeCopy::of(guard, guard.raw_of(id)?, id)?;
    copy.ok_or_else(|| Error::Node(NodeError::NotCloned { node: guard.name(id) }))
}
