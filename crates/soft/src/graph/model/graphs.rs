//! The tables of graphs and nodes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use cuda_sys::CUgraphNodeType;

use super::graph::{Graph, Owner};
use super::node::Node;
use crate::driver::handle::{Kind, Slots};
use crate::driver::result_code::{Answer, INVALID_VALUE};

/// All graphs and their nodes, by handle.
#[derive(Debug)]
pub(crate) struct Graphs {
    graphs: Slots<Graph>,
    nodes: Slots<Node>,
    /// The types of destroyed nodes whose handles have not been given out again.
    destroyed: BTreeMap<u64, CUgraphNodeType>,
}

/// A new unique number for a graph, node or executable.
pub(crate) fn new_uid() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Graphs {
    pub(super) const fn new() -> Self {
        Self { graphs: Slots::new(Kind::Graph), nodes: Slots::new(Kind::Node), destroyed: BTreeMap::new() }
    }

    pub(crate) fn create(&mut self, owner: Owner) -> u64 {
        self.graphs.insert(Graph::new(new_uid(), owner))
    }

    pub(crate) fn graph(&self, handle: u64) -> Answer<&Graph> {
        self.graphs.get(handle).ok_or(INVALID_VALUE)
    }

    pub(crate) fn graph_mut(&mut self, handle: u64) -> Answer<&mut Graph> {
        self.graphs.get_mut(handle).ok_or(INVALID_VALUE)
    }

    pub(crate) fn node(&self, handle: u64) -> Answer<&Node> {
        self.nodes.get(handle).ok_or(INVALID_VALUE)
    }

    pub(crate) fn node_mut(&mut self, handle: u64) -> Answer<&mut Node> {
        self.nodes.get_mut(handle).ok_or(INVALID_VALUE)
    }

    /// The type of a node, even of a destroyed one.
    pub(crate) fn kind(&self, handle: u64) -> Answer<CUgraphNodeType> {
        match self.nodes.get(handle) {
            Some(node) => Ok(node.payload.kind()),
            None => self.destroyed.get(&handle).copied().ok_or(INVALID_VALUE),
        }
    }

    /// Whether this is the handle of a destroyed node.
    pub(crate) fn is_destroyed(&self, handle: u64) -> bool {
        self.destroyed.contains_key(&handle)
    }

    /// The nodes of a graph in the order of creation.
    pub(crate) fn nodes_of(&self, graph: u64) -> Answer<Vec<u64>> {
        Ok(self.graph(graph)?.order.values().copied().collect())
    }

    /// The number of graphs that the user owns; children and bodies do not count.
    pub(crate) fn count(&self) -> usize {
        self.graphs.values().filter(|graph| graph.owner == Owner::User).count()
    }

    /// Adds a node to the table. Its graph does not list it yet.
    pub(crate) fn insert_node(&mut self, node: Node) -> u64 {
        let handle = self.nodes.insert(node);
        self.destroyed.remove(&handle);
        handle
    }

    /// Removes a node from the table. Its type is remembered.
    pub(crate) fn take_node(&mut self, handle: u64) -> Option<Node> {
        let node = self.nodes.remove(handle)?;
        self.destroyed.insert(handle, node.payload.kind());
        Some(node)
    }

    /// Removes a graph from the table, but not its nodes.
    pub(crate) fn take_graph(&mut self, handle: u64) -> Option<Graph> {
        self.graphs.remove(handle)
    }
}
