//! How many nodes of the kinds that forbid something a graph has, counted with all graphs in it.
//! Conditional nodes, which are nested deep, are counted for the outermost graph alone.

use super::payload::Payload;
use super::store::{Graphs, Owner};
use super::task::Task;
use crate::graph::model::node_limits::Census;

impl Graphs {
    /// The counts of a graph, with all in it.
    pub(crate) fn census(&self, graph: u64) -> Census {
        self.graph(graph).map(|graph| graph.census).unwrap_or_default()
    }

    /// What a node adds to the counts of its graph.
    pub(crate) fn census_of(&self, payload: &Payload) -> Census {
        let mut census = Census::default();
        match payload {
            Payload::Task(Task::Kernel(spec)) => census = Census::of_kernel(spec),
            Payload::Task(Task::Alloc(_) | Task::Free(_)) => census.memory = 1,
            Payload::Task(_) => {}
            Payload::Child(child) => census = self.whole_census(*child),
            Payload::Conditional(conditional) => {
                census.conditional = 1;
                conditional.bodies.iter().for_each(|body| census.plus(self.whole_census(*body)));
            }
        }
        census
    }

    /// The counts of a graph in a node, its conditional nodes among them.
    fn whole_census(&self, graph: u64) -> Census {
        Census { conditional: self.conditionals_in(graph), ..self.census(graph) }
    }

    /// How many conditional nodes there are in a graph, with all in it.
    fn conditionals_in(&self, graph: u64) -> usize {
        let root = self.root(graph);
        let all = self.census(root).conditional;
        if root == graph || all == 0 {
            return all;
        }
        let is_one =
            |node: &u64| self.node(*node).is_ok_and(|node| matches!(node.payload, Payload::Conditional(_)));
        let own = |graph| self.nodes_of(graph).unwrap_or_default().iter().filter(|node| is_one(node)).count();
        self.tree(graph).into_iter().map(own).sum()
    }

    /// Counts a node of a graph, there and in all graphs that it lies in.
    pub(crate) fn count_in(&mut self, graph: u64, census: Census) {
        self.each_around(graph, census, Census::plus);
    }

    /// Counts a node of a graph no more.
    pub(crate) fn count_out(&mut self, graph: u64, census: Census) {
        self.each_around(graph, census, Census::minus);
    }

    fn each_around(&mut self, mut graph: u64, census: Census, change: fn(&mut Census, Census)) {
        if census == Census::default() {
            return;
        }
        let root = self.root(graph);
        if let Ok(root) = self.graph_mut(root) {
            change(&mut root.census, Census { conditional: census.conditional, ..Census::default() });
        }
        let census = Census { conditional: 0, ..census };
        if census == Census::default() {
            return;
        }
        while let Ok(own) = self.graph_mut(graph) {
            change(&mut own.census, census);
            match own.owner {
                Owner::User => return,
                Owner::Child { node, .. } | Owner::Body { node } => match self.node(node) {
                    Ok(node) => graph = node.graph,
                    Err(_) => return,
                },
            }
        }
    }

    /// Whether the graph or anything in it allocates or frees memory.
    pub(crate) fn holds_memory_nodes(&self, graph: u64) -> bool {
        self.census(graph).memory > 0
    }

    /// Whether the graph has a conditional node in it or a condition that no node uses.
    pub(crate) fn holds_conditionals(&self, graph: u64) -> bool {
        self.conditionals_in(graph) > 0 || self.graph(graph).is_ok_and(|graph| !graph.conditions.is_empty())
    }

    /// Whether a kernel in the graph may be updated by the device.
    pub(crate) fn holds_updatable(&self, graph: u64) -> bool {
        self.census(graph).updatable > 0
    }
}
