//! Child nodes: graphs cloned or moved into others.

use crate::device::loss::crash;
use crate::driver::result_code::{Answer, INVALID_VALUE, NOT_SUPPORTED};
use crate::graph::model::edge::Edge;
use crate::graph::model::payload::Payload;
use crate::graph::model::store::{Graphs, Leftovers, Owner};

impl Graphs {
    /// Adds a child node.
    pub(crate) fn add_child(
        &mut self,
        graph: u64,
        dependencies: &[(u64, Edge)],
        child: u64,
        by_move: bool,
    ) -> Answer<u64> {
        let embedded = self.embed(graph, child, by_move)?;
        let node = self.insert(graph, dependencies, Payload::Child(embedded))?;
        self.graph_mut(embedded)?.owner = Owner::Child { node, moved: by_move };
        Ok(node)
    }

    /// Another graph for a child node; the old embedded graph ends.
    pub(crate) fn replace_child(&mut self, node: u64, child: u64, by_move: bool) -> Answer<Leftovers> {
        let own = self.node(node)?;
        if !matches!(own.payload, Payload::Child(_)) {
            return Err(INVALID_VALUE);
        }
        let graph = own.graph;
        // As nodes of such graphs are not destroyed either.
        if self.holds_memory_nodes(graph) {
            return Err(NOT_SUPPORTED);
        }
        let embedded = self.embed(graph, child, by_move)?;
        let leftovers = self.replace(node, Payload::Child(embedded))?;
        self.graph_mut(embedded)?.owner = Owner::Child { node, moved: by_move };
        Ok(leftovers)
    }

    /// The graph to be part of a child node in `graph`: a clone, or the child itself.
    fn embed(&mut self, graph: u64, child: u64, by_move: bool) -> Answer<u64> {
        self.graph(graph)?;
        let owner = self.graph(child)?.owner;
        if self.is_inside(graph, child) {
            if !by_move {
                crash("a graph is embedded in itself or in a part of itself");
            }
            if owner != Owner::User {
                return Err(NOT_SUPPORTED);
            }
            // The driver takes it, and the graph is lost. An empty graph stands for it in the node,
            // lest it go round.
            self.graph_mut(child)?.is_lost = true;
            return Ok(self.create(Owner::User));
        }
        match owner {
            Owner::Body { .. } | Owner::Child { .. } => return Err(NOT_SUPPORTED),
            Owner::User => {}
        }
        if self.holds_conditionals(child) {
            return Err(NOT_SUPPORTED);
        }
        if !by_move {
            return if self.is_unique(child) {
                Err(NOT_SUPPORTED)
            } else {
                self.duplicate(child, Owner::User)
            };
        }
        if self.graph(child)?.live_execs > 0 && self.is_unique(child) {
            return Err(NOT_SUPPORTED);
        }
        Ok(child)
    }

    /// Whether the graph has nodes of which there cannot be two: it has no clone and one executable
    /// at a time.
    pub(crate) fn is_unique(&self, graph: u64) -> bool {
        self.holds_memory_nodes(graph) || self.holds_updatable(graph)
    }
}
