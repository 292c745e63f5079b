//! How a shaped graph is made, so that another one can be made alike.

use core::fmt;
use std::collections::HashMap;
use std::sync::Arc;

use cuda_handles::{GraphHandle, Kernel, Owner};
use cuda_launch::LaunchConfig;
use cuda_sys::{CUgraph, CUgraphNode, Feature};

use crate::clone::flattened::Action;
use crate::clone::node_copy::{NodeCopy, add_after};
use crate::edge_kind::EdgeKind;
use crate::error::{Error, InteropError, NodeError, Result};
use crate::own_kernels::Own;
use crate::shape::levels::Level;
use crate::shape::planning::drawn::Overlap;
use crate::shape::planning::plan::{PlannedEdge, PlannedNode, ShapePlan};
use crate::shape::reliance::Reliance;
use crate::shape::substitute::Substitutes;
use crate::shape::substitute::launch::SubstituteKernels;
use crate::shape::substitute::work::MemoryWork;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::params::{ConditionSource, Conditional, NodeParams};
use crate::state::raw_params::{conditional_params, kernel_params, raw_bodies};

/// All that a shaped graph is made of.
#[derive(Debug)]
pub(super) struct Made {
    /// The graph itself, then the bodies in it, outer ones before inner ones. In each, a node comes
    /// after those that it waits for.
    graphs: Vec<Vec<MadeNode>>,
    /// The kernel that does nothing, if there is one.
    nothing: Option<Kernel>,
    substitutes: Substitutes,
    own: Arc<Own>,
}

/// The nodes of the shaped graph, by the user's.
#[derive(Debug)]
pub(super) struct RawNodes(pub(super) HashMap<NodeId, CUgraphNode>);

// SAFETY: the handles are only passed to the driver, with exclusive access to the executable.
unsafe impl Send for RawNodes {}
// SAFETY: as above.
unsafe impl Sync for RawNodes {}

/// A node of a shaped graph, and what it waits for.
#[derive(Clone, Debug)]
pub(crate) struct MadeNode {
    pub(crate) item: Item,
    /// The nodes that it waits for, by their places.
    pub(crate) after: Vec<(u32, EdgeKind)>,
    /// The programmatic edges that shaping made at it.
    overlap: Overlap,
}

/// The node of a graph, for a node of the graph that was shaped.
pub(super) type OfKey<'f> = &'f dyn Fn(NodeId) -> Option<NodeId>;

/// A node of a shaped graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Item {
    /// A copy of a node.
    Copy(NodeId),
    /// A kernel of the library in place of a node.
    Substitute(NodeId),
    /// A conditional node like another one, with empty bodies at first: `count` graphs from place
    /// `first` on.
    Conditional { id: NodeId, first: usize, count: usize },
    /// An empty node.
    Empty,
    /// A kernel that does nothing.
    Nothing,
}

/// Why a shaped graph was not made.
pub(crate) enum NotMade {
    /// A step failed.
    Step(Error),
    /// Kernels know conditions by numbers that the driver gives, and in the shaped graph it gives
    /// others.
    OtherNumbers,
}

impl From<Error> for NotMade {
    fn from(error: Error) -> Self {
        Self::Step(error)
    }
}

impl From<cuda_handles::Error> for NotMade {
    fn from(error: cuda_handles::Error) -> Self {
        Self::Step(error.into())
    }
}

impl fmt::Display for NotMade {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(error) => write!(formatter, "a step of shaping failed: {error}"),
            Self::OtherNumbers => {
                formatter.write_str("the driver gives its conditions other numbers in another graph")
            }
        }
    }
}

impl Item {
    fn of(node: &PlannedNode, Level { flat, bodies, .. }: &Level) -> Self {
        let node_of = |number: &u32| flat.nodes.get(*number as usize);
        match node {
            PlannedNode::NoOp => Self::Nothing,
            PlannedNode::Substitute(number) => {
                node_of(number).map_or(Self::Empty, |node| Self::Substitute(node.id))
            }
            PlannedNode::Drawn(number) => match (node_of(number), bodies.get(number)) {
                (Some(node), Some(bodies)) => {
                    Self::Conditional { id: node.id, first: bodies.start, count: bodies.len() }
                }
                (Some(node), None) if matches!(node.action, Action::Run(_)) => Self::Copy(node.id),
                _ => Self::Empty,
            },
        }
    }
}

impl Made {
    /// The graph itself, then the bodies in it.
    pub(super) fn graphs(&self) -> &[Vec<MadeNode>] {
        &self.graphs
    }

    /// Of the plans of a graph and the bodies in it.
    pub(super) fn of(
        guard: &GraphGuard<'_>,
        levels: &[(Level, ShapePlan)],
        (own, substitutes): (&Arc<Own>, SubstituteKernels),
    ) -> Result<Self> {
        let fills = !guard.driver().version().has(Feature::EmptyBody);
        let mut graphs: Vec<Vec<MadeNode>> =
            levels.iter().map(|(level, plan)| nodes_of(level, plan)).collect();
        // A driver that hangs with an empty body gets no empty body.
        for body in graphs.iter_mut().skip(1).filter(|body| fills && body.is_empty()) {
            body.push(MadeNode::new(Item::Empty));
        }
        let mut substitutes = Substitutes::new(substitutes);
        let mut has_nothing = false;
        for node in graphs.iter().flatten() {
            match node.item {
                Item::Substitute(id) => substitutes.add(guard, id),
                Item::Nothing => has_nothing = true,
                Item::Copy(_) | Item::Conditional { .. } | Item::Empty => {}
            }
        }
        let nothing = has_nothing.then(|| own.kernel("nothing")).transpose()?;
        Ok(Self { graphs, nothing, substitutes, own: Arc::clone(own) })
    }

    /// Whether there are conditional nodes.
    pub(super) fn has_bodies(&self) -> bool {
        self.graphs.len() > 1
    }

    /// The nodes in whose place a kernel of the library runs.
    pub(super) fn substitutes(&self) -> &Substitutes {
        &self.substitutes
    }

    /// The owner of the library's own kernels in it.
    pub(super) fn owner(&self) -> Option<Owner> {
        (self.nothing.is_some() || !self.substitutes.is_empty()).then(|| self.own.owner())
    }

    /// What the shape relies on at programmatic edges that shaping made.
    pub(super) fn overlaps(&self) -> HashMap<NodeId, Reliance> {
        let overlapping = |node: &MadeNode| match node.item {
            Item::Copy(id) | Item::Substitute(id) if node.overlap != Overlap::Never => {
                Some((id, Reliance { overlap: node.overlap, ..Reliance::default() }))
            }
            _ => None,
        };
        self.graphs.iter().flatten().filter_map(overlapping).collect()
    }

    /// Makes the graph, with the parameters that the nodes of a graph have now. The context is
    /// current.
    pub(super) fn build(
        &self,
        guard: &GraphGuard<'_>,
        of_key: OfKey<'_>,
    ) -> Result<(GraphHandle, RawNodes), NotMade> {
        let graph = GraphHandle::create(guard.context())?;
        // Also without conditional nodes: then there are no conditions.
        if !guard.repeat_conditions(graph.as_raw())? {
            return Err(NotMade::OtherNumbers);
        }
        let mut building = Building {
            made: self,
            guard,
            of_key,
            bodies: HashMap::new(),
            nodes: HashMap::with_capacity(self.graphs.iter().map(Vec::len).sum()),
        };
        for (at, nodes) in self.graphs.iter().enumerate() {
            let body = building.bodies.get(&at).copied();
            building.fill(if at == 0 { graph.as_raw() } else { known(body)? }, nodes)?;
        }
        Ok((graph, RawNodes(building.nodes)))
    }
}

/// A graph while it is made.
struct Building<'b> {
    made: &'b Made,
    guard: &'b GraphGuard<'b>,
    of_key: OfKey<'b>,
    /// The bodies that are to be filled, by their places.
    bodies: HashMap<usize, CUgraph>,
    nodes: HashMap<NodeId, CUgraphNode>,
}

impl Building<'_> {
    /// Adds the nodes of one graph.
    fn fill(&mut self, graph: CUgraph, nodes: &[MadeNode]) -> Result<()> {
        let mut raws: Vec<CUgraphNode> = Vec::with_capacity(nodes.len());
        for MadeNode { item, after, .. } in nodes {
            let raw = |&(place, kind): &(u32, EdgeKind)| Some((*raws.get(place as usize)?, kind));
            let after: Option<Vec<(CUgraphNode, EdgeKind)>> = after.iter().map(raw).collect();
            // A plan is in a topological order.
            raws.push(self.add(*item, graph, &known(after)?)?);
        }
        Ok(())
    }

    fn add(&mut self, item: Item, graph: CUgraph, after: &[(CUgraphNode, EdgeKind)]) -> Result<CUgraphNode> {
        let guard = self.guard;
        let (key, raw) = match item {
            Item::Copy(key) => (key, copy_of(guard, self.id(key)?)?.add_to(guard, graph, after)?),
            Item::Substitute(key) => (key, self.add_substitute(key, graph, after)?),
            Item::Conditional { id: key, first, count } => {
                let (raw, bodies) = self.add_conditional(self.id(key)?, count, graph, after)?;
                self.bodies.extend((first..).zip(bodies));
                (key, raw)
            }
            Item::Empty => return NodeCopy::empty().add_to(guard, graph, after),
            Item::Nothing => return self.add_nothing(graph, after),
        };
        self.nodes.insert(key, raw);
        Ok(raw)
    }

    fn id(&self, key: NodeId) -> Result<NodeId> {
        known((self.of_key)(key))
    }

    fn add_substitute(
        &self,
        key: NodeId,
        graph: CUgraph,
        after: &[(CUgraphNode, EdgeKind)],
    ) -> Result<CUgraphNode> {
        let (guard, id) = (self.guard, self.id(key)?);
        let work = guard.record(id).and_then(|record| MemoryWork::of(&record.node_params));
        match work.and_then(|work| self.made.substitutes.launch(key, &work)) {
            Some(launch) => launch.with_params(|params| add_after(guard, graph, after, params)),
            None => copy_of(guard, id)?.add_to(guard, graph, after),
        }
    }

    /// Adds a conditional node with as many bodies, and returns these.
    fn add_conditional(
        &self,
        id: NodeId,
        count: usize,
        graph: CUgraph,
        after: &[(CUgraphNode, EdgeKind)],
    ) -> Result<(CUgraphNode, impl Iterator<Item = CUgraph> + use<>)> {
        let guard = self.guard;
        let node = match guard.record(id).map(|record| &record.node_params) {
            Some(NodeParams::Conditional(node)) if node.bodies.len() == count => Some(node),
            Some(_) | None => None,
        };
        let Conditional { kind, source, .. } = known(node)?;
        let condition = match source {
            ConditionSource::Condition(number) => guard.conditions.find(*number),
            ConditionSource::Foreign(_) | ConditionSource::Host => None,
        };
        let mut params = conditional_params(guard.context(), *kind, known(condition)?.raw, count);
        let raw = add_after(guard, graph, after, &mut params)?;
        Ok((raw, raw_bodies(&params).into_iter()))
    }

    fn add_nothing(&self, graph: CUgraph, after: &[(CUgraphNode, EdgeKind)]) -> Result<CUgraphNode> {
        match &self.made.nothing {
            Some(kernel) => {
                let mut params = kernel_params(kernel, LaunchConfig::new(1, 1), core::ptr::null_mut());
                add_after(self.guard, graph, after, &mut params)
            }
            None => NodeCopy::empty().add_to(self.guard, graph, after),
        }
    }
}

/// The nodes of one planned graph.
fn nodes_of(level: &Level, plan: &ShapePlan) -> Vec<MadeNode> {
    let mut kinds: HashMap<(u32, u32), EdgeKind> = HashMap::new();
    for &(from, to, kind) in level.flat.edges.iter().filter(|edge| edge.2 != EdgeKind::Full) {
        kinds.insert((from as u32, to as u32), kind);
    }
    let number = |item: u32| match plan.nodes.get(item as usize) {
        Some(PlannedNode::Drawn(number)) => Some(*number),
        _ => None,
    };
    let mut nodes: Vec<MadeNode> =
        plan.nodes.iter().map(|node| MadeNode::new(Item::of(node, level))).collect();
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
    nodes
}

impl MadeNode {
    fn new(item: Item) -> Self {
        Self { item, after: Vec::new(), overlap: Overlap::Never }
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
