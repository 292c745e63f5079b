//! A graph together with the driver's view of it.

use core::ops::Deref;

use cuda_graph::{ContextExt, Graph};
use cuda_handles::Context;
use cuda_sys::CUgraph;
use cuda_tests::{last_graph, raw};

/// A graph and its raw value, found without the library's help.
pub(crate) struct Drawn {
    pub(crate) graph: Graph,
    pub(crate) raw: CUgraph,
}

impl Deref for Drawn {
    type Target = Graph;

    fn deref(&self) -> &Graph {
        &self.graph
    }
}

/// The driver's view of a graph: its raw nodes in creation order, and its edges by position.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) struct View {
    pub(crate) nodes: Vec<usize>,
    pub(crate) edges: Vec<(usize, usize)>,
}

impl Drawn {
    pub(crate) fn new(context: &Context) -> Self {
        let graph = context.graph().unwrap();
        Self { graph, raw: last_graph() }
    }

    pub(crate) fn view(&self) -> View {
        let nodes = raw::nodes(self.raw).into_iter().map(|node| node as usize).collect();
        View { nodes, edges: raw::edges(self.raw) }
    }
}
