//! From numbers in the model to nodes with names.

use super::model::Model;
use super::report::FoundNode;
use crate::graph::Graph;
use crate::graph::node::Node;

/// How many of the nodes around a node are named.
const DEEPEST: usize = 16;

/// Names the nodes of a model.
pub(crate) struct Namer<'n> {
    pub(crate) graph: &'n Graph,
    pub(crate) model: &'n Model,
    /// The conditional node around the whole model, if its body is being checked.
    pub(crate) around: Option<FoundNode>,
}

impl Namer<'_> {
    /// A node, for a report.
    pub(crate) fn found(&self, node: u32) -> FoundNode {
        let facts = &self.model.nodes[node as usize];
        let subgraph = self.model.graphs[facts.graph as usize].subgraph;
        let handle = Node::new(self.graph.at(subgraph), facts.id, facts.kind);
        FoundNode { node: handle, name: facts.name.to_string(), within: self.within(node) }
    }

    /// The names of the nodes around a node, from the outside in; of very many only the innermost.
    fn within(&self, node: u32) -> Vec<String> {
        let mut outwards = self.outwards(node);
        let near = outwards.by_ref().take(DEEPEST).map(|(outer, body)| {
            let name = &self.model.nodes[outer as usize].name;
            body.map_or_else(|| format!("`{name}`"), |body| format!("{body} of `{name}`"))
        });
        let mut within: Vec<String> = near.collect();
        if outwards.next().is_some() {
            within.push("...".to_owned());
        }
        within.reverse();
        within
    }

    /// The nodes around a node, from the inside out, each with the name of the body.
    fn outwards(&self, node: u32) -> impl Iterator<Item = (u32, Option<&str>)> {
        let outer = |node: u32| {
            let graph = &self.model.graphs[self.model.nodes[node as usize].graph as usize];
            graph.outer.map(|outer| (outer, graph.body.as_deref()))
        };
        core::iter::successors(outer(node), move |(node, _)| outer(*node))
    }

    /// The conditional node whose body holds a node.
    pub(crate) fn body_around(&self, node: u32) -> Option<FoundNode> {
        let inside = self.outwards(node).find(|(_, body)| body.is_some());
        inside.map(|(outer, _)| self.found(outer)).or_else(|| self.around.clone())
    }
}
