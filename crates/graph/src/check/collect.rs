//! Reads a graph into a model, in one go under its lock.

use std::collections::HashMap;
use std::sync::Arc;

use cuda_handles::{Allocation, Owner};
use cuda_launch::internal::AccessRanges;
use cuda_sys::{CUgraphNode, CUgraphNodeType};

use super::accesses::AccessCollector;
use super::model::{
    AllocationInfo, Lifetimes, Model, ModelNode, NodeFault, Opaqueness, Subgraph, UnusedCondition,
};
use crate::error::Result;
use crate::node_kind::NodeKind;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::nodes::NodeRecord;
use crate::state::params::{Conditional, NodeParams};

/// How much the model contains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Depth {
    /// Nodes, edges and conditions.
    Structure,
    /// Also the memory accesses of nodes.
    Accesses,
}

/// The model of the locked graph with all graphs in its nodes.
pub(crate) fn collect(guard: &mut GraphGuard<'_>, depth: Depth) -> Result<Model> {
    let subgraph = guard.subgraph();
    let is_body = guard.enclosing_conditional(subgraph).is_some();
    let mut collector = Collector { depth, model: Model::default(), allocations: HashMap::new() };
    collector.model.graphs.push(graph(subgraph, None, None, 0));
    let mut in_body = vec![is_body];
    let mut done = 0;
    while done < collector.model.graphs.len() {
        collector.fill(guard, done, &mut in_body)?;
        done += 1;
    }
    if subgraph.is_root() {
        collector.model.conditions = unused_conditions(guard);
    }
    let mut model = collector.model;
    if depth == Depth::Accesses {
        model.lifetimes = Lifetimes::of(guard, &model)?;
    }
    Ok(model)
}

fn graph(subgraph: SubgraphId, outer: Option<u32>, body: Option<String>, depth: u32) -> Subgraph {
    Subgraph { subgraph, outer, body, depth, nodes: 0..0, edges: Vec::new() }
}

/// The conditions that no conditional node uses.
fn unused_conditions(guard: &GraphGuard<'_>) -> Vec<UnusedCondition> {
    let unused = guard.conditions.iter().filter(|entry| guard.node_of(entry).is_none());
    let unused = unused.map(|entry| {
        let setters = guard.setters(entry.number).map(|id| guard.name(id).into_string());
        let mut setters: Vec<String> = setters.collect();
        setters.sort_unstable();
        UnusedCondition { number: entry.number, default: entry.default, setters }
    });
    unused.collect()
}

struct Collector {
    depth: Depth,
    model: Model,
    /// The number of each allocation.
    allocations: HashMap<*const Allocation, u32>,
}

impl Collector {
    /// Adds the nodes and edges of a graph, and the graphs in it, which are filled later.
    fn fill(&mut self, guard: &mut GraphGuard<'_>, graph: usize, in_body: &mut Vec<bool>) -> Result<()> {
        let subgraph = self.model.graphs[graph].subgraph;
        let raw = guard.graph_at(subgraph)?;
        let raws = guard.raw_nodes_of(raw)?;
        let first = self.model.nodes.len() as u32;
        let mut numbers = HashMap::with_capacity(raws.len());
        for raw in raws {
            let index = guard.index_in(subgraph, raw)?;
            let Some(id) = guard.id(index) else { continue };
            numbers.insert(raw, self.model.nodes.len() as u32);
            self.node(guard, graph, id, raw, in_body)?;
        }
        self.model.graphs[graph].nodes = first..self.model.nodes.len() as u32;
        let edges = guard.raw_edges_of(raw)?.into_iter();
        let edges = edges
            .filter_map(|(from, to, kind)| Some((*numbers.get(&from)?, *numbers.get(&to)?, kind.into())));
        self.model.graphs[graph].edges = edges.collect();
        Ok(())
    }

    fn node(
        &mut self,
        guard: &GraphGuard<'_>,
        graph: usize,
        id: NodeId,
        raw: CUgraphNode,
        in_body: &mut Vec<bool>,
    ) -> Result<()> {
        let Some(record) = guard.record(id) else { return Ok(()) };
        let number = self.model.nodes.len() as u32;
        let fault = match in_body[graph] {
            true => fault_in_body(guard, &record.node_params, raw)?,
            false => None,
        };
        let first = self.model.graphs.len() as u32;
        for (body, inner) in record.node_params.subgraphs().iter().enumerate() {
            let name = body_name(&record.node_params, body);
            in_body.push(in_body[graph] || name.is_some());
            let depth = self.model.graphs[graph].depth + 1;
            self.model.graphs.push(self::graph(*inner, Some(number), name, depth));
        }
        let mut node = ModelNode {
            graph: graph as u32,
            id,
            name: record.display_name(id).into(),
            kind: record.node_params.kind(),
            inside: first..self.model.graphs.len() as u32,
            opaque: None,
            fault,
        };
        if self.depth == Depth::Accesses {
            node.opaque = self.access(guard, number, id, raw)?;
        }
        self.model.nodes.push(node);
        Ok(())
    }

    /// Adds the accesses of a node, or returns why they are unknown.
    fn access(
        &mut self,
        guard: &GraphGuard<'_>,
        node: u32,
        id: NodeId,
        raw: CUgraphNode,
    ) -> Result<Option<Opaqueness>> {
        let Some(record) = guard.record(id) else { return Ok(None) };
        let (mut used, ranges) = guard.used_memory(record);
        // An empty node at which the host decides accesses the memory of the decision.
        let ready = record.owners.decision().map(|decision| &*decision.control);
        let ready = ready.filter(|_| matches!(record.node_params, NodeParams::Empty));
        if let Some(ready) = ready {
            used.push(ready.tested().allocation);
            used.extend(ready.counted().map(|counted| counted.allocation));
        }
        let conditions = guard.conditions.of_kernel(id.index);
        let mut collector =
            AccessCollector { node, used, ranges, accesses: &mut self.model.accesses, found: Vec::new() };
        let opaque =
            collector.node(|| Ok(guard.kernel_params(raw)?.into()), &record.node_params, conditions)?;
        if let Some(ready) = ready {
            collector.decision(ready);
        }
        let found = core::mem::take(&mut collector.found);
        for (access, allocation) in found {
            self.model.accesses[access].memory =
                Some(number_of(&mut self.allocations, &mut self.model.allocations, allocation));
        }
        Ok(opaque)
    }
}

/// The memory that a node uses, and the ranges of its arguments if these are kept apart.
pub(crate) type UsedMemory<'o> = (Vec<&'o Arc<Allocation>>, Option<&'o AccessRanges>);

/// The memory among owners, and the ranges of arguments.
pub(crate) fn memory_among<'o>(owners: impl Iterator<Item = &'o Owner>) -> UsedMemory<'o> {
    let (mut used, mut ranges) = (Vec::new(), None);
    for owner in owners {
        match owner {
            Owner::Allocation(allocation) => used.push(allocation),
            Owner::Other(other) => ranges = other.downcast_ref::<AccessRanges>().or(ranges),
            _ => {}
        }
    }
    (used, ranges)
}

impl GraphGuard<'_> {
    /// The memory that a node keeps alive, and the ranges of its arguments.
    pub(crate) fn used_memory<'s>(&'s self, record: &'s NodeRecord) -> UsedMemory<'s> {
        let (mut used, ranges) = memory_among(record.owners.kept().iter().chain(self.used_by(record)));
        // Memory that was allocated in a capture belongs to the graph as a whole.
        let of_graph = self.facts(record.within).map_or(&[][..], |facts| &facts.kept);
        used.extend(of_graph.iter().filter_map(Owner::memory));
        (used, ranges)
    }
}

/// The name of a graph in a node, if it is a body.
fn body_name(node_params: &NodeParams, index: usize) -> Option<String> {
    if let NodeParams::Conditional(Conditional { kind, .. }) = node_params {
        Some(kind.body_name(index))
    } else {
        None
    }
}

/// The number of an allocation.
fn number_of(
    numbers: &mut HashMap<*const Allocation, u32>,
    allocations: &mut Vec<AllocationInfo>,
    allocation: &Arc<Allocation>,
) -> u32 {
    *numbers.entry(Arc::as_ptr(allocation)).or_insert_with(|| {
        let (address, bytes) = (allocation.address(), allocation.bytes() as u64);
        allocations.push(AllocationInfo { address, bytes, kind: allocation.kind() });
        (allocations.len() - 1) as u32
    })
}

/// The fault of a node in a body, if it has one.
fn fault_in_body(
    guard: &GraphGuard<'_>,
    node_params: &NodeParams,
    raw: CUgraphNode,
) -> Result<Option<NodeFault>> {
    Ok(match node_params {
        NodeParams::Other { kind } => return foreign_fault_in_body(guard, NodeKind::of(*kind), raw),
        fits if fits.may_be_in_body() => None,
        NodeParams::Memcpy(_) => Some(NodeFault::PageableInBody),
        NodeParams::Empty
        | NodeParams::Kernel { .. }
        | NodeParams::Memset(_)
        | NodeParams::Host(_)
        | NodeParams::EventRecord(_)
        | NodeParams::EventWait(_)
        | NodeParams::Batch(_)
        | NodeParams::Alloc { .. }
        | NodeParams::Free { .. }
        | NodeParams::SignalSemaphores(_)
        | NodeParams::WaitSemaphores(_)
        | NodeParams::Child { .. }
        | NodeParams::Conditional(_) => Some(NodeFault::NotInBody),
    })
}

/// The same for a node of other code, of which nothing but the type is known.
fn foreign_fault_in_body(
    guard: &GraphGuard<'_>,
    kind: NodeKind,
    raw: CUgraphNode,
) -> Result<Option<NodeFault>> {
    match kind {
        NodeKind::Kernel => {
            let context = guard.kernel_params(raw)?.ctx;
            let is_other = !context.is_null() && context != guard.context().as_raw();
            Ok(is_other.then_some(NodeFault::OtherContext))
        }
        // The driver reports too little about these.
        NodeKind::Memcpy | NodeKind::Memset | NodeKind::ChildGraph => Ok(None),
        NodeKind::Other(CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL) => Ok(None),
        NodeKind::If | NodeKind::IfElse | NodeKind::While | NodeKind::Switch => Ok(None),
        NodeKind::Empty
        | NodeKind::HostCallback
        | NodeKind::EventRecord
        | NodeKind::EventWait
        | NodeKind::Batch
        | NodeKind::Alloc
        | NodeKind::Free
        | NodeKind::SemaphoreSignal
        | NodeKind::SemaphoreWait
        | NodeKind::Other(_) => Ok(Some(NodeFault::NotInBody)),
    }
}
