//! Nodes and edges of a graph: asking for them and changing them.

pub(crate) mod change;
pub(crate) mod kind_query;
pub(crate) mod list;
pub(crate) mod neighbours;
pub(crate) mod order;
pub(crate) mod query;
pub(crate) mod remove;

use crate::edge_kind::EdgeKind;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::node_kind::NodeKind;
use crate::node_name::NodeName;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;

pub(crate) use change::Link;

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
type IdAndKind = (NodeId, NodeKind);

impl Graph {
    fn ensure_own(&self, node: &Node) -> Result<()> {
        if node.graph() == self { Ok(()) } else { Err(Error::Foreign { node: node.name().into() }) }
    }

    fn node(&self, (id, kind): IdAndKind) -> Node {
        Node::new(self.clone(), id, kind)
    }
}

impl GraphGuard<'_> {
    /// Refuses a node that was removed.
    fn live_id(&self, node: &Node) -> Result<NodeId> {
        self.record(node.id()).map(|_| node.id()).ok_or_else(|| node.removed())
    }

    /// The error of using a node that is gone.
    pub(crate) fn removed(&self, id: NodeId) -> Error {
        let known = self.removed.find(id);
        Error::Removed { node: known.unwrap_or_else(|| format!("node#{}", id.number).into()) }
    }

    /// The name of a node that is there.
    pub(crate) fn name(&self, id: NodeId) -> NodeName {
        self.record(id).map(|record| record.display_name(id)).unwrap_or_default().into()
    }
}
