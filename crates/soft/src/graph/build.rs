//! Adding nodes to graphs.

use super::edge;
use super::edge_data::Edge;
use super::generic::Wanted;
use super::memory_node;
use super::payload::Payload;
use super::store::{Graphs, Owner};
use super::task::Task;
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
            Wanted::Child { graph: child, by_move } => self.add_child(*graph, dependencies, child, by_move),
            Wanted::Free(address) => self.add_free(*graph, dependencies, address),
            Wanted::Conditional(raw) => self.add_conditional(*graph, dependencies, &raw),
        }
    }

    /// Adds a node that needs nothing of the graph. All has been checked but the graph.
    pub(crate) fn add_task(&mut self, graph: u64, dependencies: &[(u64, Edge)], task: Task) -> Answer<u64> {
        if let Task::Alloc(alloc) = &task {
            // Graphs in child nodes take none, bodies do, but cannot be instantiated with them.
            let own = self.graph(graph)?;
            if matches!(own.owner, Owner::Child { .. }) {
                return Err(NOT_SUPPORTED);
            }
            alloc.memory.set_home((graph, own.uid));
        }
        self.insert(graph, dependencies, Payload::Task(task))
    }

    /// Adds a free node.
    pub(crate) fn add_free(&mut self, graph: u64, dependencies: &[(u64, Edge)], address: u64) -> Answer<u64> {
        let reservation = memory_node::find(address).ok_or(INVALID_VALUE)?;
        let root = self.graph(self.root(graph))?.uid;
        let (home, uid) = reservation.home();
        // The graph that allocates may lie in another by now, or be gone.
        let home = match self.graph(home) {
            Ok(own) if own.uid == uid => self.graph(self.root(home)).map_or(0, |root| root.uid),
            _ => 0,
        };
        reservation.add_free(root, home)?;
        self.insert(graph, dependencies, Payload::Task(Task::Free(reservation)))
    }
}
