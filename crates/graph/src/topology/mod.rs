//! Nodes and edges of a graph: asking for them and changing them.

mod change;
mod edges;
mod known;
mod neighbours;
mod order;
mod query;
mod remove;

use crate::edge::EdgeKind;
use crate::error::{Error, Result};
use crate::graph::{Graph, Locked};
use crate::kind::NodeKind;
use crate::name::NodeName;
use crate::node::Node;
use crate::place::NodeId;

pub(crate) use change::{Link, ensure_kinds};

/// An edge: `to` waits for `from`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Edge {
    /// The node that the edge leaves.
    pub from: Node,
    /// The node that the edge enters.
    pub to: Node,
    /// What of `from` is waited for.
    pub kind: EdgeKind,
}

/// What a handle of a node is made of.
type Known = (NodeId, NodeKind);

impl Graph {
    fn own(&self, node: &Node) -> Result<()> {
        if node.graph() == self { Ok(()) } else { Err(Error::Foreign { node: node.name().into() }) }
    }

    fn node(&self, (id, kind): Known) -> Node {
        Node::new(self.clone(), id, kind)
    }
}

impl Locked<'_> {
    /// Refuses a node that was removed.
    fn there(&self, node: &Node) -> Result<NodeId> {
        self.row(node.id()).map(|_| node.id()).ok_or_else(|| node.removed())
    }

    /// The error of using a node that is gone.
    pub(crate) fn removed(&self, id: NodeId) -> Error {
        let known = self.removed.find(id);
        Error::Removed { node: known.unwrap_or_else(|| format!("node#{}", id.number).into()) }
    }

    /// The name of a node that is there.
    pub(crate) fn name(&self, id: NodeId) -> NodeName {
        self.row(id).map(|row| row.display_name(id)).unwrap_or_default().into()
    }
}
