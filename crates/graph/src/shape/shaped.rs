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
use crate::shape::overlap::{is_on_device, overlap};
use crate::shape::planning::drawn::Overlap;
use crate::shape::planning::plan::{PlannedEdge, PlannedNode, ShapePlan};
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

/// Properties of a kernel that a shape relies on. An update cannot take them away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Reliance {
    /// It promises to wait for no other kernel.
    ends_alone: bool,
    /// For its place at programmatic edges that shaping made.
    overlap: Overlap,
}

/// How a shaped graph was made, so that another one can be made alike.
#[derive(Debug)]
struct Made {
    nodes: Vec<MadeNode>,
    /// The kernel that does nothing, if there is one.
    nothing: Option<(Arc<Own>, Kernel)>,
}

#[derive(Clone, Debug)]
struct MadeNode {
    item: Item,
    /// The nodes that it waits for, by their places.
    after: Vec<(u32, EdgeKind)>,
    /// The programmatic edges that shaping made at it.
    overlap: Overlap,
}

/// A node of a shaped graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Item {
    /// A copy of a node.
    Copy(NodeId),
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
        own: &Arc<Own>,
        assume_progress: bool,
    ) -> Result<Self> {
        let made = Made::of(flat, plan, own)?;
        let (graph, nodes) = made.build(guard)?;
        let mut reliances = made.overlaps();
        let is_promising = |id: &NodeId| {
            let record = guard.record(*id);
            !assume_progress && record.is_some_and(|record| ends_alone(&record.node_params) == Some(true))
        };
        for id in nodes.0.keys().copied().filter(is_promising) {
            reliances.entry(id).or_default().ends_alone = true;
        }
        Ok(Self { graph, nodes, made, reliances })
    }

    /// Why the shape does not permit new parameters and owners for a node, if it does not.
    pub(crate) fn refusal(
        &self,
        context: &Context,
        id: NodeId,
        params: &NodeParams,
        owners: &[Owner],
    ) -> Option<&'static str> {
        let reliance = self.reliances.get(&id)?;
        if reliance.ends_alone && ends_alone(params) == Some(false) {
            return Some(MAY_WAIT);
        }
        reliance.overlap.refusal(overlap(context, params, owners))
    }

    /// Why the shape does not permit memory that a graph parameter stands for, if it does not.
    pub(crate) fn refusal_of_memory(
        &self,
        context: &Context,
        id: NodeId,
        memory: &Arc<Allocation>,
    ) -> Option<&'static str> {
        let reliance = self.reliances.get(&id)?;
        let is_permitted = reliance.overlap != Overlap::Both || is_on_device(context, memory);
        (!is_permitted).then_some(OTHER_MEMORY)
    }

    /// Why the shape does not permit that a node is disabled, if it does not.
    pub(crate) fn refusal_of_disabling(&self, id: NodeId) -> Option<&'static str> {
        let is_at_edge = self.reliances.get(&id).is_some_and(|reliance| reliance.overlap != Overlap::Never);
        is_at_edge.then_some(NOT_DISABLED)
    }

    /// A node whose parameters in its graph the shape does not permit, and why.
    pub(crate) fn forbidden(&self, guard: &GraphGuard<'_>) -> Option<(NodeId, &'static str)> {
        self.reliances.iter().find_map(|(id, reliance)| {
            let record = guard.record(*id)?;
            let may_wait = reliance.ends_alone && ends_alone(&record.node_params) == Some(false);
            let why = may_wait.then_some(MAY_WAIT);
            Some((*id, why.or_else(|| reliance.overlap.refusal(guard.overlap_of(*id)))?))
        })
    }

    /// Another graph of the same shape, with the parameters that the nodes have now. The context is
    /// current.
    pub(crate) fn again(&self, guard: &GraphGuard<'_>) -> Result<GraphHandle> {
        self.made.build(guard).map(|(graph, _)| graph)
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
        self.made.nothing.as_ref().map(|(own, _)| own.owner())
    }
}

const MAY_WAIT: &str = "the kernel may wait for another one (it was not declared as `fn`), and the executable \
                        was shaped for one that does not; instantiate again, or with `assume_progress`";

const NO_WAIT: &str = "the node is at a programmatic edge that shaping made, and the kernel does not wait at its \
                       entry (`load_waiting`), or its launch has attributes; instantiate again, or without \
                       `programmatic_edges`";

const OTHER_MEMORY: &str = "the node is in front of a programmatic edge that shaping made, and the kernel may use \
                            other memory than the device's own; instantiate again, or without \
                            `programmatic_edges`";

const NOT_DISABLED: &str = "the node is at a programmatic edge that shaping made: disabled, it would not wait; \
                            instantiate without `programmatic_edges`, or let a graph parameter enable it";

impl Overlap {
    /// Why a node that was made with this overlap cannot get parameters of another, if it cannot.
    fn refusal(self, new: Self) -> Option<&'static str> {
        match (self, new) {
            (Self::Never, _) | (Self::Behind, Self::Behind) | (_, Self::Both) => None,
            (Self::Behind | Self::Both, Self::Never) => Some(NO_WAIT),
            (Self::Both, Self::Behind) => Some(OTHER_MEMORY),
        }
    }
}

impl Item {
    fn of(node: &PlannedNode, flat: &FlatGraph) -> Self {
        match node {
            PlannedNode::NoOp => Self::Nothing,
            PlannedNode::Drawn(number) => match flat.nodes.get(*number as usize) {
                Some(node) if matches!(node.action, Action::Run(_)) => Self::Copy(node.id),
                _ => Self::Empty,
            },
        }
    }
}

impl Made {
    fn of(flat: &FlatGraph, plan: &ShapePlan, own: &Arc<Own>) -> Result<Self> {
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
        let mut nothing = None;
        if nodes.iter().any(|node| node.item == Item::Nothing) {
            nothing = Some((Arc::clone(own), own.kernel("nothing")?));
        }
        Ok(Self { nodes, nothing })
    }

    /// What the shape relies on at programmatic edges that shaping made.
    fn overlaps(&self) -> HashMap<NodeId, Reliance> {
        let overlapping = |node: &MadeNode| match node.item {
            Item::Copy(id) if node.overlap != Overlap::Never => {
                Some((id, Reliance { overlap: node.overlap, ..Reliance::default() }))
            }
            _ => None,
        };
        self.nodes.iter().filter_map(overlapping).collect()
    }

    fn build(&self, guard: &GraphGuard<'_>) -> Result<(GraphHandle, RawNodes)> {
        let graph = GraphHandle::create(guard.context())?;
        let mut raws: Vec<CUgraphNode> = Vec::with_capacity(self.nodes.len());
        let mut nodes = HashMap::with_capacity(self.nodes.len());
        for MadeNode { item, after, .. } in &self.nodes {
            let raw = |&(place, kind): &(u32, EdgeKind)| Some((*raws.get(place as usize)?, kind));
            let after: Option<Vec<(CUgraphNode, EdgeKind)>> = after.iter().map(raw).collect();
            // A plan is in a topological order.
            let after = after.ok_or(Error::Interop(InteropError::UnknownNode { raw: 0 }))?;
            let raw = match *item {
                Item::Copy(id) => {
                    let raw = copy_of(guard, id)?.add_to(guard, graph.as_raw(), &after)?;
                    nodes.insert(id, raw);
                    raw
                }
                Item::Empty => NodeCopy::empty().add_to(guard, graph.as_raw(), &after)?,
                Item::Nothing => self.add_nothing(guard, graph.as_raw(), &after)?,
            };
            raws.push(raw);
        }
        Ok((graph, RawNodes(nodes)))
    }

    fn add_nothing(
        &self,
        guard: &GraphGuard<'_>,
        graph: CUgraph,
        after: &[(CUgraphNode, EdgeKind)],
    ) -> Result<CUgraphNode> {
        match &self.nothing {
            Some((_, kernel)) => {
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

/// Whether a kernel waits for no other; `None` if it is another node.
fn ends_alone(params: &NodeParams) -> Option<bool> {
    match params {
        NodeParams::Kernel { accesses, .. } => Some(accesses.ends_alone()),
        _ => None,
    }
}

fn copy_of(guard: &GraphGuard<'_>, id: NodeId) -> Result<NodeCopy> {
    let copy = NodeCopy::of(guard, guard.raw_of(id)?, id)?;
    copy.ok_or_else(|| Error::Node(NodeError::NotCloned { node: guard.name(id) }))
}
