//! From a graph to what is checked, in one look at it.

use std::collections::HashMap;
use std::sync::Arc;

use cuda_handles::{Allocation, Owner};
use cuda_launch::AccessRanges;
use cuda_sys::{CUgraphNode, CUgraphNodeType};

use super::subject::{Inner, Item, Lives, Memory, Opaqueness, Subject, Unused, Wrong};
use super::touches::Touching;
use crate::error::Result;
use crate::graph::Locked;
use crate::node_kind::NodeKind;
use crate::state::ids::{NodeId, Place};
use crate::state::params::{Conditional, Detail};

/// How much is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Depth {
    /// Nodes, edges and conditions.
    Structure,
    /// Also what memory nodes touch.
    Accesses,
}

/// The locked graph with all that is in its nodes.
pub(crate) fn collect(locked: &mut Locked<'_>, depth: Depth) -> Result<Subject> {
    let place = locked.place();
    let is_body = locked.body_around(place).is_some();
    let mut collection = Collection { depth, subject: Subject::default(), memories: HashMap::new() };
    collection.subject.graphs.push(graph(place, None, None, 0));
    let mut in_body = vec![is_body];
    let mut done = 0;
    while done < collection.subject.graphs.len() {
        collection.fill(locked, done, &mut in_body)?;
        done += 1;
    }
    if place.is_root() {
        collection.subject.conditions = unused_conditions(locked);
    }
    let mut subject = collection.subject;
    if depth == Depth::Accesses {
        subject.lives = Lives::of(locked, &subject)?;
    }
    Ok(subject)
}

fn graph(place: Place, outer: Option<u32>, body: Option<String>, depth: u32) -> Inner {
    Inner { place, outer, body, depth, items: 0..0, edges: Vec::new() }
}

/// The conditions that no conditional node uses.
fn unused_conditions(locked: &Locked<'_>) -> Vec<Unused> {
    let unused = locked.conditions.iter().filter(|entry| locked.node_of(entry).is_none());
    let unused = unused.map(|entry| {
        let setters = locked.setters(entry.number).map(|id| locked.name(id).into_string());
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
    fn fill(&mut self, locked: &mut Locked<'_>, graph: usize, in_body: &mut Vec<bool>) -> Result<()> {
        let place = self.subject.graphs[graph].place;
        let raw = locked.graph_at(place)?;
        let raws = locked.raw_nodes_of(raw)?;
        let first = self.subject.items.len() as u32;
        let mut numbers = HashMap::with_capacity(raws.len());
        for raw in raws {
            let index = locked.index_in(place, raw)?;
            let Some(id) = locked.id(index) else { continue };
            locked.inside(id)?;
            numbers.insert(raw, self.subject.items.len() as u32);
            self.item(locked, graph, id, raw, in_body)?;
        }
        self.subject.graphs[graph].items = first..self.subject.items.len() as u32;
        let edges = locked.raw_edges_of(raw)?.into_iter();
        let edges = edges
            .filter_map(|(from, to, kind)| Some((*numbers.get(&from)?, *numbers.get(&to)?, kind.into())));
        self.subject.graphs[graph].edges = edges.collect();
        Ok(())
    }

    fn item(
        &mut self,
        locked: &Locked<'_>,
        graph: usize,
        id: NodeId,
        raw: CUgraphNode,
        in_body: &mut Vec<bool>,
    ) -> Result<()> {
        let Some(row) = locked.row(id) else { return Ok(()) };
        let number = self.subject.items.len() as u32;
        let wrong = match locked.incomplete.contains(&id.index) {
            true => Some(Wrong::Incomplete),
            false if in_body[graph] => wrong_in_body(locked, &row.detail, raw)?,
            false => None,
        };
        let first = self.subject.graphs.len() as u32;
        for (body, inner) in row.detail.inside().iter().enumerate() {
            let name = match &row.detail {
                Detail::Conditional(Conditional { class, .. }) => Some(class.body_name(body)),
                _ => None,
            };
            in_body.push(in_body[graph] || name.is_some());
            let depth = self.subject.graphs[graph].depth + 1;
            self.subject.graphs.push(self::graph(*inner, Some(number), name, depth));
        }
        let mut item = Item {
            graph: graph as u32,
            id,
            name: row.display_name(id).into(),
            kind: row.detail.kind(),
            inside: first..self.subject.graphs.len() as u32,
            opaque: None,
            wrong,
        };
        if self.depth == Depth::Accesses && wrong != Some(Wrong::Incomplete) {
            item.opaque = self.touch(locked, number, id, raw)?;
        }
        self.subject.items.push(item);
        Ok(())
    }

    /// Enters what a node touches, or says why that is not known.
    fn touch(
        &mut self,
        locked: &Locked<'_>,
        item: u32,
        id: NodeId,
        raw: CUgraphNode,
    ) -> Result<Option<Opaqueness>> {
        let Some(row) = locked.row(id) else { return Ok(None) };
        let known = [locked.kept_with(id.index)].into_iter().flatten().chain(locked.used_by(row));
        let (mut used, mut ranges) = (Vec::new(), None);
        for owner in known {
            match owner {
                Owner::Allocation(allocation) => used.push(allocation),
                Owner::Other(other) => ranges = other.downcast_ref::<AccessRanges>().or(ranges),
                _ => {}
            }
        }
        // A place holder for the host has no memory of its own.
        let ready = locked.deciding.get(&id.index).map(|decision| &*decision.ready);
        let ready = ready.filter(|_| matches!(row.detail, Detail::Empty));
        if let Some(ready) = ready {
            used.push(ready.tested().allocation);
            used.extend(ready.counted().map(|counted| counted.allocation));
        }
        let conditions = locked.conditions.of_kernel(id.index);
        let mut touching =
            Touching { item, used, ranges, touches: &mut self.subject.touches, found: Vec::new() };
        let opaque = touching.node(locked, raw, &row.detail, conditions)?;
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
fn wrong_in_body(locked: &Locked<'_>, detail: &Detail, raw: CUgraphNode) -> Result<Option<Wrong>> {
    let Detail::Other { kind } = detail else {
        return Ok(match detail {
            fits if fits.may_be_in_body() => None,
            Detail::Memcpy(_) => Some(Wrong::PageableInBody),
            _ => Some(Wrong::NotInBody),
        });
    };
    match NodeKind::of(*kind) {
        NodeKind::Kernel => {
            let context = locked.kernel_params(raw)?.ctx;
            let is_other = !context.is_null() && context != locked.context().as_raw();
            Ok(is_other.then_some(Wrong::OtherContext))
        }
        // Of these the driver does not tell enough.
        NodeKind::Memcpy | NodeKind::Memset | NodeKind::ChildGraph => Ok(None),
        NodeKind::Other(CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL) => Ok(None),
        _ => Ok(Some(Wrong::NotInBody)),
    }
}
