//! Adding nodes to graphs.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use super::edge;
use crate::driver::result_code::{Answer, INVALID_VALUE, NOT_SUPPORTED, OUT_OF_MEMORY};
use crate::graph::model::edge::Edge;
use crate::graph::model::node_memory::{self, Reservation};
use crate::graph::model::payload::Payload;
use crate::graph::model::store::{Graphs, Owner};
use crate::graph::model::task::{AllocNode, Task};
use crate::graph::params::generic::Wanted;
use crate::graph::params::parse::NewMemory;

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

    /// Adds a node that needs nothing of the graph. All has been checked but the graph. Memory for
    /// which there is a free node in the graph that allocates it is not copied or filled by any
    /// node that comes later, in whatever graph, and wherever it lies in the order; kernels only
    /// have numbers.
    pub(crate) fn add_task(&mut self, graph: u64, dependencies: &[(u64, Edge)], task: Task) -> Answer<u64> {
        let used = match &task {
            Task::Copy(node) => vec![node.copy.src.address, node.copy.dst.address],
            Task::Fill(node) => vec![node.fill.address],
            _ => Vec::new(),
        };
        if used.into_iter().any(node_memory::has_free_node) {
            return Err(INVALID_VALUE);
        }
        self.insert(graph, dependencies, Payload::Task(task))
    }

    /// Adds an allocation node. One that comes after frees of the graph's own memory gets an
    /// address there if it fits.
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
        let before = self.freed_before(dependencies, own.arena.free_nodes(wanted.device))?;
        let range = self.graph_mut(graph)?.arena.place(wanted.len, wanted.device, &before);
        let range = range.ok_or(OUT_OF_MEMORY)?;
        let memory = node_memory::reserve(range, wanted.len, wanted.device, home);
        let alloc = AllocNode { memory: Arc::clone(&memory), max: wanted.max };
        let node = self.insert(graph, dependencies, Payload::Task(Task::Alloc(alloc)))?;
        memory.set_node(node);
        Ok(node)
    }

    /// Those of some free nodes that lie before what is to depend on `dependencies`, but not by way
    /// of a child node, nor of an edge that was added later than the node that it leads to.
    fn freed_before(&self, dependencies: &[(u64, Edge)], mut frees: HashSet<u64>) -> Answer<HashSet<u64>> {
        let mut before = HashSet::new();
        let mut open: VecDeque<u64> = dependencies.iter().map(|(node, _)| *node).collect();
        let mut seen: HashSet<u64> = open.iter().copied().collect();
        while let Some(node) = open.pop_front().filter(|_| !frees.is_empty()) {
            if frees.remove(&node) {
                before.insert(node);
            }
            let own = self.node(node)?;
            if !matches!(own.payload, Payload::Child(_)) {
                let first = own.added_after.iter().copied().filter(|node| own.dependencies.contains(*node));
                open.extend(first.filter(|node| seen.insert(*node)));
            }
        }
        Ok(before)
    }

    /// The address of an allocation node.
    pub(crate) fn address_of(&self, node: u64) -> Answer<u64> {
        match &self.node(node)?.payload {
            Payload::Task(Task::Alloc(alloc)) => Ok(alloc.memory.start),
            _ => Err(INVALID_VALUE),
        }
    }

    /// Adds a free node. A graph has at most one for an allocation, and only its own if it has one
    /// there. Graphs in child nodes take none, and a graph none for what it allocated when an
    /// executable was made of it.
    pub(crate) fn add_free(&mut self, graph: u64, dependencies: &[(u64, Edge)], address: u64) -> Answer<u64> {
        if matches!(self.graph(graph)?.owner, Owner::Child { .. }) {
            return Err(NOT_SUPPORTED);
        }
        let memory = node_memory::find(address).ok_or(INVALID_VALUE)?;
        self.check_frees_besides(graph, &memory)?;
        let is_own = memory.home == (graph, self.graph(graph)?.uid);
        let node = self.insert(graph, dependencies, Payload::Task(Task::Free(Arc::clone(&memory))))?;
        let own = (node, self.node(node)?.uid);
        memory.add_free(own, is_own);
        if is_own {
            self.graph_mut(graph)?.arena.free(memory.range.clone(), node);
        }
        Ok(node)
    }

    /// Whether the free nodes that memory has, and executables of its graph, allow one in this
    /// graph.
    fn check_frees_besides(&self, graph: u64, memory: &Reservation) -> Answer {
        let root_uid = |graph: u64| self.graph(self.root(graph)).map(|root| root.uid);
        let root = root_uid(graph)?;
        // The graph that allocates may lie in another by now, or be gone.
        let home = match self.graph(memory.home.0) {
            Ok(own) if own.uid == memory.home.1 => root_uid(memory.home.0).ok(),
            _ => None,
        };
        let alive = |(node, uid): &(u64, u64)| self.node(*node).is_ok_and(|node| node.uid == *uid);
        let frees = memory.frees().into_iter().filter(alive);
        let in_roots: Vec<u64> =
            frees.filter_map(|(node, _)| root_uid(self.node(node).ok()?.graph).ok()).collect();
        let freed_by_own = home.is_some_and(|home| in_roots.contains(&home));
        let is_own = memory.home == (graph, self.graph(graph)?.uid);
        let is_late = is_own && memory.is_instantiated() || home == Some(root) && !in_roots.is_empty();
        if in_roots.contains(&root) || freed_by_own || is_late {
            return Err(INVALID_VALUE);
        }
        Ok(())
    }
}
