//! Adding nodes to graphs.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::edge;
use super::edge_data::Edge;
use super::generic::Wanted;
use super::memory_node::{self, Reservation, Slot};
use super::payload::Payload;
use super::read::NewMemory;
use super::store::{Graphs, Owner};
use super::task::{AllocNode, Task};
use crate::code::{Answer, INVALID_VALUE, NOT_SUPPORTED};

/// Where a node goes: its graph and what it depends on.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) graph: u64,
    pub(crate) dependencies: Vec<(u64, Edge)>,
}

impl Graphs {
    /// Adds a node of any type. A refused one changes nothing.
    pub(crate) fn add(&mut self, place: &Place, wanted: Wanted) -> Answer<u64> {
        let Place { graph, dependencies } = place;
        self.check_dependencies(*graph, dependencies)?;
        let kind = wanted.kind();
        for (node, edge) in dependencies {
            edge::check_kinds(*edge, self.node(*node)?.payload.kind(), kind)?;
        }
        match wanted {
            Wanted::Task(task) => self.add_task(*graph, dependencies, task),
            Wanted::Alloc(memory) => self.add_alloc(*graph, dependencies, memory),
            Wanted::Child { graph: child, by_move } => self.add_child(*graph, dependencies, child, by_move),
            Wanted::Free(address) => self.add_free(*graph, dependencies, address),
            Wanted::Conditional(raw) => self.add_conditional(*graph, dependencies, &raw),
        }
    }

    /// Adds a node that needs nothing of the graph. All has been checked but the graph.
    pub(crate) fn add_task(&mut self, graph: u64, dependencies: &[(u64, Edge)], task: Task) -> Answer<u64> {
        self.insert(graph, dependencies, Payload::Task(task))
    }

    /// Adds an allocation node. One that comes after the free of memory of the same size gets its address.
    pub(crate) fn add_alloc(
        &mut self,
        graph: u64,
        dependencies: &[(u64, Edge)],
        wanted: NewMemory,
    ) -> Answer<u64> {
        // Graphs in child nodes take none, bodies do, but cannot be instantiated with them.
        let own = self.graph(graph)?;
        if matches!(own.owner, Owner::Child { .. }) {
            return Err(NOT_SUPPORTED);
        }
        let home = (graph, own.uid);
        let slot = match self.freed_before(graph, dependencies, wanted) {
            Some(index) => self.graph_mut(graph)?.freed.swap_remove(index).1,
            None => Slot::new(wanted.len, wanted.device),
        };
        let memory = memory_node::reserve(slot, home);
        let alloc = AllocNode { memory: Arc::clone(&memory), max: wanted.max };
        let node = self.insert(graph, dependencies, Payload::Task(Task::Alloc(alloc)))?;
        memory.set_node(node);
        Ok(node)
    }

    /// The number of an address of this size whose free lies before what is to depend on `dependencies`.
    fn freed_before(&self, graph: u64, dependencies: &[(u64, Edge)], wanted: NewMemory) -> Option<usize> {
        let fits = |slot: &Slot| slot.len == wanted.len && slot.device == wanted.device;
        let freed = &self.graph(graph).ok()?.freed;
        let candidates: HashMap<u64, usize> = freed
            .iter()
            .enumerate()
            .filter(|(_, (_, slot))| fits(slot))
            .map(|(index, (node, _))| (*node, index))
            .collect();
        if candidates.is_empty() {
            return None;
        }
        // The nearest one, breadth first.
        let mut open: VecDeque<u64> = dependencies.iter().map(|(node, _)| *node).collect();
        let mut seen: HashSet<u64> = open.iter().copied().collect();
        while let Some(node) = open.pop_front() {
            if let Some(index) = candidates.get(&node) {
                return Some(*index);
            }
            let before = self.node(node).ok()?.dependencies.keys();
            open.extend(before.filter(|node| seen.insert(*node)));
        }
        None
    }

    /// The address of an allocation node.
    pub(crate) fn address_of(&self, node: u64) -> Answer<u64> {
        match &self.node(node)?.payload {
            Payload::Task(Task::Alloc(alloc)) => Ok(alloc.memory.start),
            _ => Err(INVALID_VALUE),
        }
    }

    /// Adds a free node. A graph has at most one for an allocation, and only its own if it has one there.
    pub(crate) fn add_free(&mut self, graph: u64, dependencies: &[(u64, Edge)], address: u64) -> Answer<u64> {
        let memory = memory_node::find(address).ok_or(INVALID_VALUE)?;
        let frees = self.frees_besides(graph, &memory)?;
        let is_own = memory.home == (graph, self.graph(graph)?.uid);
        let node = self.insert(graph, dependencies, Payload::Task(Task::Free(Arc::clone(&memory))))?;
        let own = (node, self.node(node)?.uid);
        memory.set_frees(frees.into_iter().chain([own]).collect());
        if is_own {
            self.graph_mut(graph)?.freed.push((node, Arc::clone(&memory.slot)));
        }
        Ok(node)
    }

    /// The free nodes that memory has, none of which forbids one in this graph.
    fn frees_besides(&self, graph: u64, memory: &Reservation) -> Answer<Vec<(u64, u64)>> {
        let root_uid = |graph: u64| self.graph(self.root(graph)).map(|root| root.uid);
        let root = root_uid(graph)?;
        // The graph that allocates may lie in another by now, or be gone.
        let home = match self.graph(memory.home.0) {
            Ok(own) if own.uid == memory.home.1 => root_uid(memory.home.0).ok(),
            _ => None,
        };
        let alive = |(node, uid): &(u64, u64)| self.node(*node).is_ok_and(|node| node.uid == *uid);
        let frees: Vec<(u64, u64)> = memory.frees().into_iter().filter(alive).collect();
        let in_roots: Vec<u64> =
            frees.iter().filter_map(|(node, _)| root_uid(self.node(*node).ok()?.graph).ok()).collect();
        let freed_by_own = home.is_some_and(|home| in_roots.contains(&home));
        if in_roots.contains(&root) || freed_by_own || (home == Some(root) && !in_roots.is_empty()) {
            return Err(INVALID_VALUE);
        }
        Ok(frees)
    }
}
