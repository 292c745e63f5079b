//! From numbers in a subject to nodes with names.

use super::found::FoundNode;
use super::subject::Subject;
use crate::graph::Graph;
use crate::graph::node::Node;

/// How many of the nodes that a node is in are named.
const DEEPEST: usize = 16;

/// Names the items of a subject.
pub(crate) struct Namer<'n> {
    pub(crate) graph: &'n Graph,
    pub(crate) subject: &'n Subject,
    /// The conditional node in whose body the whole subject is.
    pub(crate) around: Option<FoundNode>,
}

impl Namer<'_> {
    /// The node that an item is.
    pub(crate) fn found(&self, item: u32) -> FoundNode {
        let about = &self.subject.items[item as usize];
        let subgraph = self.subject.graphs[about.graph as usize].subgraph;
        let node = Node::new(self.graph.at(subgraph), about.id, about.kind);
        FoundNode { node, name: about.name.to_string(), within: self.within(item) }
    }

    /// The names of what an item is in, from the outside in, as far as they are near.
    fn within(&self, item: u32) -> Vec<String> {
        let mut outwards = self.outwards(item);
        let near = outwards.by_ref().take(DEEPEST).map(|(outer, body)| {
            let name = &self.subject.items[outer as usize].name;
            body.map_or_else(|| format!("`{name}`"), |body| format!("{body} of `{name}`"))
        });
        let mut within: Vec<String> = near.collect();
        if outwards.next().is_some() {
            within.push("...".to_owned());
        }
        within.reverse();
        within
    }

    /// The items that an item is in, from the inside out, each with what the graph is called there.
    fn outwards(&self, item: u32) -> impl Iterator<Item = (u32, Option<&str>)> {
        let outer = |item: u32| {
            let graph = &self.subject.graphs[self.subject.items[item as usize].graph as usize];
            graph.outer.map(|outer| (outer, graph.body.as_deref()))
        };
        core::iter::successors(outer(item), move |(item, _)| outer(*item))
    }

    /// The conditional node in whose body an item is.
    pub(crate) fn enclosing_conditional(&self, item: u32) -> Option<FoundNode> {
        let inside = self.outwards(item).find(|(_, body)| body.is_some());
        inside.map(|(outer, _)| self.found(outer)).or_else(|| self.around.clone())
    }
}
