//! From a graph to what is checked, in one look at it.

use std::collections::HashMap;
use std::sync::Arc;

use cuda_handles::{Allocation, Owner};
use cuda_launch::AccessRanges;
use cuda_sys::{CUgraphNode, CUgraphNodeType};

use super::subject::{Inner, Item, Lives, Memory, Opaqueness, Subject, Unused, Wrong};
use super::touches::Touching;
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
pub(crate) fn collect(guard: &mut GraphGuard<'_>, depth: Depth) -> Result<Subject> {
    let subgraph = guard.subgraph();
    let is_body = guard.enclosing_conditional(subgraph).is_some();
    let mut collection = Collection { depth, subject: Subject::default(), memories: HashMap::new() };
    collection.subject.graphs.push(graph(subgraph, None, None, 0));
    let mut in_body = vec![is_body];
    let mut done = 0;
    while done < collection.subject.graphs.len() {
        collection.fill(guard, done, &mut in_body)?;
        done += 1;
    }
    if subgraph.is_root() {
        collection.subject.conditions = unused_conditions(guard);
    }
    let mut subject = collection.subject;
    if depth == Depth::Accesses {
        subject.lives = Lives::of(guard, &subject)?;
    }
    Ok(subject)
}

fn graph(subgraph: SubgraphId, outer: Option<u32>, body: Option<String>, depth: u32) -> Inner {
    Inner { subgraph, outer, body, depth, items: 0..0, edges: Vec::new() }
}

/// The conditions that no conditional node uses.
fn unused_conditions(guard: &GraphGuard<'_>) -> Vec<Unused> {
    let unused = guard.conditions.iter().filter(|entry| guard.node_of(entry).is_none());
    let unused = unused.map(|entry| {
        let setters = guard.setters(entry.number).map(|id| guard.name(id).into_string());
        let mut setters: Vec<String> = setters.collect();
        setters.sort_unstable();
        Unused { number: entry.number, default: entry.default, setters }
    });
    unused.collect()
}

struct Collection {
    depth: Depth,
    subject: Subject,
    /// The number of each allocation.
    memories: HashMap<*const Allocation, u32>,
}

impl Collection {
    /// Enters the items and edges of a graph, and the graphs in them as such to be filled.
    fn fill(&mut self, guard: &mut GraphGuard<'_>, graph: usize, in_body: &mut Vec<bool>) -> Result<()> {
        let subgraph = self.subject.graphs[graph].subgraph;
        let raw = guard.graph_at(subgraph)?;
        let raws = guard.raw_nodes_of(raw)?;
        let first = self.subject.items.len() as u32;
        let mut numbers = HashMap::with_capacity(raws.len());
        for raw in raws {
            let index = guard.index_in(subgraph, raw)?;
            let Some(id) = guard.id(index) else { continue };
            numbers.insert(raw, self.subject.items.len() as u32);
            self.item(guard, graph, id, raw, in_body)?;
        }
        self.subject.graphs[graph].items = first..self.subject.items.len() as u32;
        let edges = guard.raw_edges_of(raw)?.into_iter();
        let edges = edges
            .filter_map(|(from, to, kind)| Some((*numbers.get(&from)?, *numbers.get(&to)?, kind.into())));
        self.subject.graphs[graph].edges = edges.collect();
        Ok(())
    }

    fn item(
        &mut self,
        guard: &GraphGuard<'_>,
        graph: usize,
        id: NodeId,
        raw: CUgraphNode,
        in_body: &mut Vec<bool>,
    ) -> Result<()> {
        let Some(record) = guard.record(id) else { return Ok(()) };
        let number = self.subject.items.len() as u32;
        let wrong = match in_body[graph] {
            true => wrong_in_body(guard, &record.node_params, raw)?,
            false => None,
        };
        let first = self.subject.graphs.len() as u32;
        for (body, inner) in record.node_params.subgraphs().iter().enumerate() {
            let name = match &record.node_params {
                NodeParams::Conditional(Conditional { kind, .. }) => Some(kind.body_name(body)),
                _ => None,
            };
            in_body.push(in_body[graph] || name.is_some());
            let depth = self.subject.graphs[graph].depth + 1;
            self.subject.graphs.push(self::graph(*inner, Some(number), name, depth));
        }
        let mut item = Item {
            graph: graph as u32,
            id,
            name: record.display_name(id).into(),
            kind: record.node_params.kind(),
            inside: first..self.subject.graphs.len() as u32,
            opaque: None,
            wrong,
        };
        if self.depth == Depth::Accesses {
            item.opaque = self.touch(guard, number, id, raw)?;
        }
        self.subject.items.push(item);
        Ok(())
    }

    /// Enters what a node touches, or says why that is not known.
    fn touch(
        &mut self,
        guard: &GraphGuard<'_>,
        item: u32,
        id: NodeId,
        raw: CUgraphNode,
    ) -> Result<Option<Opaqueness>> {
        let Some(record) = guard.record(id) else { return Ok(None) };
        let known = record.owners.kept().iter().chain(guard.used_by(record));
        let (mut used, mut ranges) = (Vec::new(), None);
        for owner in known {
            match owner {
                Owner::Allocation(allocation) => used.push(allocation),
                Owner::Other(other) => ranges = other.downcast_ref::<AccessRanges>().or(ranges),
                _ => {}
            }
        }
        // A place holder for the host has no memory of its own.
        let ready = record.owners.decision().map(|decision| &*decision.control);
        let ready = ready.filter(|_| matches!(record.node_params, NodeParams::Empty));
        if let Some(ready) = ready {
            used.push(ready.tested().allocation);
            used.extend(ready.counted().map(|counted| counted.allocation));
        }
        let conditions = guard.conditions.of_kernel(id.index);
        let mut touching =
            Touching { item, used, ranges, touches: &mut self.subject.touches, found: Vec::new() };
        let opaque = touching.node(guard, raw, &record.node_params, conditions)?;
        if let Some(ready) = ready {
            touching.decision(ready);
        }
        let found = core::mem::take(&mut touching.found);
        for (touch, allocation) in found {
            self.subject.touches[touch].memory =
                Some(number_of(&mut self.memories, &mut self.subject.memories, allocation));
        }
        Ok(opaque)
    }
}

/// The number of an allocation.
fn number_of(
    numbers: &mut HashMap<*const Allocation, u32>,
    memories: &mut Vec<Memory>,
    allocation: &Arc<Allocation>,
) -> u32 {
    *numbers.entry(Arc::as_ptr(allocation)).or_insert_with(|| {
        let (address, bytes) = (allocation.address(), allocation.bytes() as u64);
        memories.push(Memory { address, bytes, kind: allocation.kind() });
        (memories.len() - 1) as u32
    })
}

/// What is wrong with a node in a body.
fn wrong_in_body(
    guard: &GraphGuard<'_>,
    node_params: &NodeParams,
    raw: CUgraphNode,
) -> Result<Option<Wrong>> {
    let NodeParams::Other { kind } = node_params else {
        return Ok(match node_params {
            fits if fits.may_be_in_body() => None,
            NodeParams::Memcpy(_) => Some(Wrong::PageableInBody),
            _ => Some(Wrong::NotInBody),
        });
    };
    match NodeKind::of(*kind) {
        NodeKind::Kernel => {
            let context = guard.kernel_params(raw)?.ctx;
            let is_other = !context.is_null() && context != guard.context().as_raw();
            Ok(is_other.then_some(Wrong::OtherContext))
        }
        // Of these the driver does not tell enough.
        NodeKind::Memcpy | NodeKind::Memset | NodeKind::ChildGraph => Ok(None),
        NodeKind::Other(CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL) => Ok(None),
        _ => Ok(Some(Wrong::NotInBody)),
    }
}
