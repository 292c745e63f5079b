//! The graph that an executable was made of.

use std::sync::{Arc, Weak};

use crate::graph::Graph;
use crate::state::hierarchy::Hierarchy;
use crate::state::ids::SubgraphId;

/// A root graph that an executable was made of, or updated from.
pub(crate) enum Source {
    /// Kept alive: keys of later updates are the nodes of this graph, which must exist then.
    Own(Graph),
    /// Not kept alive. Other code destroys its graph when no handle is left; if it were kept here,
    /// the graph would be known at an address that may be another graph's by then.
    Adopted(Weak<Hierarchy>),
}

impl Source {
    pub(crate) fn of(graph: &Graph) -> Self {
        match graph.handle().is_owned() {
            true => Self::Own(graph.clone()),
            false => Self::Adopted(Arc::downgrade(graph.hierarchy())),
        }
    }

    pub(crate) fn graph(&self) -> Option<Graph> {
        match self {
            Self::Own(graph) => Some(graph.clone()),
            Self::Adopted(root) => Some(Graph::from_hierarchy(root.upgrade()?, SubgraphId::ROOT)),
        }
    }

    /// Calls a function with the graph, without counting a reference to a graph that is kept alive.
    #[inline]
    pub(crate) fn with_graph<R>(&self, call: impl FnOnce(Option<&Graph>) -> R) -> R {
        match self {
            Self::Own(graph) => call(Some(graph)),
            Self::Adopted(_) => call(self.graph().as_ref()),
        }
    }

    /// Whether it is a graph of this hierarchy.
    pub(crate) fn is_of(&self, hierarchy: &Arc<Hierarchy>) -> bool {
        match self {
            Self::Own(graph) => Arc::ptr_eq(graph.hierarchy(), hierarchy),
            Self::Adopted(root) => core::ptr::eq(root.as_ptr(), Arc::as_ptr(hierarchy)),
        }
    }
}
