//! A graph with its child graphs expanded in place.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cuda_sys::CUgraphNode;

use crate::edge_kind::EdgeKind;
use crate::error::{Error, InteropError, LoopError, Result};
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::loop_control::{DecisionPoint, LoopControl};
use crate::state::params::{Conditional, ConditionalKind, NodeParams};

/// The number of a loop or branch, counted through the graph and all bodies.
pub(crate) type ConditionalNumber = usize;

/// The action that a node stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// None: the node only orders others.
    Nothing,
    /// The device runs it, as part of a segment.
    Run(CUgraphNode),
    /// The host decides about a loop or branch.
    Decide(ConditionalNumber, DecisionPoint),
    /// The host runs a loop or branch.
    Enter(ConditionalNumber),
}

impl Action {
    /// Whether it belongs to a segment, rather than to the host.
    pub(crate) fn is_of_device(self) -> bool {
        matches!(self, Self::Nothing | Self::Run(_))
    }
}

/// A node of the flattened graph.
#[derive(Debug)]
pub(crate) struct FlatNode {
    /// The node of the graph; for the two ends of a child graph, the child graph node.
    pub(crate) id: NodeId,
    pub(crate) action: Action,
}

/// A graph with its child graphs expanded in place. Bodies of loops and branches are not: each is a
/// flattened graph of its own.
#[derive(Debug, Default)]
pub(crate) struct FlatGraph {
    pub(crate) nodes: Vec<FlatNode>,
    pub(crate) edges: Vec<(usize, usize, EdgeKind)>,
}

/// A loop or branch that was found.
#[derive(Debug)]
pub(crate) struct FoundConditional {
    pub(crate) control: Arc<LoopControl>,
    /// `None` until its node is found: a deciding node may come first, or outlive it.
    pub(crate) node: Option<ConditionalFacts>,
}

/// The node of a loop or branch.
#[derive(Debug)]
pub(crate) struct ConditionalFacts {
    pub(crate) kind: ConditionalKind,
    pub(crate) name: String,
    pub(crate) bodies: Box<[SubgraphId]>,
}

/// All loops and branches found so far, by number.
#[derive(Debug, Default)]
pub(crate) struct FoundConditionals {
    pub(crate) all: Vec<FoundConditional>,
    /// The numbers, by the address of the `LoopControl`, which `all` keeps alive.
    by_control: HashMap<usize, ConditionalNumber>,
}

impl FoundConditionals {
    fn number(&mut self, control: &Arc<LoopControl>) -> ConditionalNumber {
        let all = &mut self.all;
        *self.by_control.entry(Arc::as_ptr(control).addr()).or_insert_with(|| {
            all.push(FoundConditional { control: Arc::clone(control), node: None });
            all.len() - 1
        })
    }
}

/// The two nodes that stand for a child graph: the first comes before everything in it, the second
/// after. Other nodes are both ends themselves.
type Ends = (usize, usize);

impl FlatGraph {
    /// Flattens a graph in which the host decides about loops and branches.
    pub(crate) fn of(
        guard: &mut GraphGuard<'_>,
        subgraph: SubgraphId,
        conditionals: &mut FoundConditionals,
    ) -> Result<Self> {
        Self::flatten(guard, subgraph, Some(conditionals))
    }

    /// Flattens a graph in which the device decides about loops and branches: it runs all nodes
    /// that are not empty, conditional ones as well.
    pub(crate) fn of_device(guard: &mut GraphGuard<'_>, subgraph: SubgraphId) -> Result<Self> {
        Self::flatten(guard, subgraph, None)
    }

    fn flatten(
        guard: &mut GraphGuard<'_>,
        subgraph: SubgraphId,
        mut conditionals: Option<&mut FoundConditionals>,
    ) -> Result<Self> {
        let mut flat = Self::default();
        let mut waiting: Vec<(SubgraphId, Option<Ends>)> = vec![(subgraph, None)];
        while let Some((subgraph, ends)) = waiting.pop() {
            flat.expand(guard, subgraph, ends, conditionals.as_deref_mut(), &mut waiting)?;
        }
        Ok(flat)
    }

    /// Adds the nodes of one graph; the child graphs in it go to `waiting`.
    fn expand(
        &mut self,
        guard: &mut GraphGuard<'_>,
        subgraph: SubgraphId,
        ends: Option<Ends>,
        mut conditionals: Option<&mut FoundConditionals>,
        waiting: &mut Vec<(SubgraphId, Option<Ends>)>,
    ) -> Result<()> {
        let graph = guard.graph_at(subgraph)?;
        let mut found: HashMap<usize, Ends> = HashMap::new();
        for raw in guard.raw_nodes_of(graph)? {
            let index = guard.index_in(subgraph, raw)?;
            let Some(id) = guard.id(index) else {
                return Err(Error::Interop(InteropError::UnknownNode { raw: raw.addr() }));
            };
            let inside = guard.record(id).and_then(|record| record.node_params.embedded());
            let action = match &mut conditionals {
                _ if inside.is_some() => Action::Nothing,
                Some(conditionals) => action(guard, id, raw, conditionals)?,
                None => action_of_device(guard, id, raw),
            };
            let begin = self.push(FlatNode { id, action });
            let end = match inside {
                None => begin,
                Some(inner) => {
                    let end = self.push(FlatNode { id, action: Action::Nothing });
                    // Orders the ends of an empty child graph, too.
                    self.edges.push((begin, end, EdgeKind::Full));
                    waiting.push((inner, Some((begin, end))));
                    end
                }
            };
            found.insert(raw.addr(), (begin, end));
        }
        let edges = self.edges.len();
        for (from, to, kind) in guard.raw_edges_of(graph)? {
            if let (Some(&(_, from)), Some(&(to, _))) = (found.get(&from.addr()), found.get(&to.addr())) {
                self.edges.push((from, to, kind));
            }
        }
        if let Some(ends) = ends {
            self.enclose(found.into_values(), edges, ends);
        }
        Ok(())
    }

    /// Puts the nodes of a child graph between its two ends. The child graph's edges are those from
    /// position `edges` on.
    fn enclose(&mut self, nodes: impl Iterator<Item = Ends>, edges: usize, (begin, end): Ends) {
        let edges = self.edges.get(edges..).unwrap_or_default();
        let waiting: HashSet<usize> = edges.iter().map(|edge| edge.1).collect();
        // A node entered by another edge than a full one may end before its predecessor: that
        // predecessor still needs an edge to the end.
        let full = edges.iter().filter(|edge| edge.2 == EdgeKind::Full);
        let awaited: HashSet<usize> = full.map(|edge| edge.0).collect();
        let mut nodes: Vec<Ends> = nodes.collect();
        nodes.sort_unstable();
        for (first, last) in nodes {
            if !waiting.contains(&first) {
                self.edges.push((begin, first, EdgeKind::Full));
            }
            if !awaited.contains(&last) {
                self.edges.push((last, end, EdgeKind::Full));
            }
        }
    }

    fn push(&mut self, node: FlatNode) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }
}

/// The action for a node other than a child graph, if the device decides.
fn action_of_device(guard: &GraphGuard<'_>, id: NodeId, raw: CUgraphNode) -> Action {
    match guard.record(id).map(|record| &record.node_params) {
        Some(NodeParams::Empty) => Action::Nothing,
        Some(_) | None => Action::Run(raw),
    }
}

/// The action for a node other than a child graph, if the host decides.
fn action(
    guard: &GraphGuard<'_>,
    id: NodeId,
    raw: CUgraphNode,
    conditionals: &mut FoundConditionals,
) -> Result<Action> {
    let refused = |why| Err(Error::Loop(LoopError::NotOnHost { node: guard.name(id), why }));
    if let Some(decision) = guard.record(id).and_then(|record| record.owners.decision()) {
        return Ok(Action::Decide(conditionals.number(&decision.control), decision.point));
    }
    if !guard.conditions.of_kernel(id.index).is_empty() {
        return refused("it sets a condition, which only the driver's own conditional nodes can go by");
    }
    let Some(record) = guard.record(id) else {
        return Err(Error::Interop(InteropError::UnknownNode { raw: raw.addr() }));
    };
    Ok(match &record.node_params {
        NodeParams::Empty => Action::Nothing,
        NodeParams::Conditional(Conditional { control: None, .. }) => {
            return refused("it goes by a condition that kernels set, and the host cannot see that");
        }
        NodeParams::Conditional(Conditional { control: Some(control), kind, bodies, .. }) => {
            let number = conditionals.number(control);
            let facts =
                ConditionalFacts { kind: *kind, name: record.display_name(id), bodies: bodies.clone() };
            if let Some(conditional) = conditionals.all.get_mut(number) {
                conditional.node = Some(facts);
            }
            Action::Enter(number)
        }
        NodeParams::Kernel { .. }
        | NodeParams::Memcpy(_)
        | NodeParams::Memset(_)
        | NodeParams::Host(_)
        | NodeParams::EventRecord(_)
        | NodeParams::EventWait(_)
        | NodeParams::Batch(_)
        | NodeParams::SignalSemaphores(_)
        | NodeParams::WaitSemaphores(_)
        | NodeParams::Alloc { .. }
        | NodeParams::Free { .. }
        | NodeParams::Child { .. }
        | NodeParams::Other { .. } => Action::Run(raw),
    })
}
