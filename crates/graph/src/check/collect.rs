//! From a graph to what is checked, in one look at it.

use std::collections::HashMap;
use std::sync::Arc;

use cuda_handles::{Allocation, Owner};
use cuda_launch::AccessRanges;
use cuda_sys::{CUgraphNode, CUgraphNodeType};

use super::accesses::AccessCollector;
use super::model::{
    AllocationInfo, Lifetimes, Model, ModelNode, NodeFault, Opaqueness, Subgraph, UnusedCondition,
};
use crate::error::Result;
use crate::node_kind::NodeKind;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::params::{Conditional, NodeParams};

/// How much is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Depth {
    /// Nodes, edges and conditions.
    Structure,
    /// Also what memory nodes touch.
    Accesses,
}

/// The locked graph with all that is in its nodes.
pub(crate) fn collect(guard: &mut GraphGuard<'_>, depth: Depth) -> Result<Model> {
    let subgraph = guard.subgraph();
    let is_body = guard.body_around(subgraph).is_some();
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
    /// Enters the items and edges of a graph, and the graphs in them as such to be filled.
    fn fill(&mut self, guard: &mut GraphGuard<'_>, graph: usize, in_body: &mut Vec<bool>) -> Result<()> {
        let subgraph = self.model.graphs[graph].subgraph;
        let raw = guard.graph_at(subgraph)?;
        let raws = guard.raw_nodes_of(raw)?;
        let first = self.model.nodes.len() as u32;
        let mut numbers = HashMap::with_capacity(raws.len());
        for raw in raws {
            let index = guard.index_in(subgraph, raw)?;
            let Some(id) = guard.id(index) else { continue };
            guard.inside(id)?;
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
        let fault = match guard.incomplete.contains(&id.index) {
            true => Some(NodeFault::Incomplete),
            false if in_body[graph] => wrong_in_body(guard, &record.node_params, raw)?,
            false => None,
        };
        let first = self.model.graphs.len() as u32;
        for (body, inner) in record.node_params.inside().iter().enumerate() {
            let name = match &record.node_params {
                NodeParams::Conditional(Conditional { class, .. }) => Some(class.body_name(body)),
                _ => None,
            };
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
        if self.depth == Depth::Accesses && fault != Some(NodeFault::Incomplete) {
            node.opaque = self.access(guard, number, id, raw)?;
        }
        self.model.nodes.push(node);
        Ok(())
    }

    /// Enters what a node touches, or says why that is not known.
    fn access(
        &mut self,
        guard: &GraphGuard<'_>,
        node: u32,
        id: NodeId,
        raw: CUgraphNode,
    ) -> Result<Option<Opaqueness>> {
        let Some(record) = guard.record(id) else { return Ok(None) };
        let known = [guard.kept_with(id.index)].into_iter().flatten().chain(guard.used_by(record));
        let (mut used, mut ranges) = (Vec::new(), None);
        for owner in known {
            match owner {
                Owner::Allocation(allocation) => used.push(allocation),
                Owner::Other(other) => ranges = other.downcast_ref::<AccessRanges>().or(ranges),
                _ => {}
            }
        }
        // A place holder for the host has no memory of its own.
        let ready = guard.deciding.get(&id.index).map(|decision| &*decision.ready);
        let ready = ready.filter(|_| matches!(record.node_params, NodeParams::Empty));
        if let Some(ready) = ready {
            used.push(ready.tested().allocation);
            used.extend(ready.counted().map(|counted| counted.allocation));
        }
        let conditions = guard.conditions.of_kernel(id.index);
        let mut collector =
            AccessCollector { node, used, ranges, accesses: &mut self.model.accesses, found: Vec::new() };
        let opaque = collector.node(guard, raw, &record.node_params, conditions)?;
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

/// What is wrong with a node in a body.
fn wrong_in_body(
    guard: &GraphGuard<'_>,
    node_params: &NodeParams,
    raw: CUgraphNode,
) -> Result<Option<NodeFault>> {
    let NodeParams::Other { kind } = node_params else {
        return Ok(match node_params {
            fits if fits.may_be_in_body() => None,
            NodeParams::Memcpy(_) => Some(NodeFault::PageableInBody),
            _ => Some(NodeFault::NotInBody),
        });
    };
    match NodeKind::of(*kind) {
        NodeKind::Kernel => {
            let context = guard.kernel_params(raw)?.ctx;
            let is_other = !context.is_null() && context != guard.context().as_raw();
            Ok(is_other.then_some(NodeFault::OtherContext))
        }
        // Of these the driver does not tell enough.
        NodeKind::Memcpy | NodeKind::Memset | NodeKind::ChildGraph => Ok(None),
        NodeKind::Other(CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL) => Ok(None),
        _ => Ok(Some(NodeFault::NotInBody)),
    }
}
