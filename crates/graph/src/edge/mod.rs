//! Edges: querying and changing them, and removing nodes with their edges.
//!
//! The driver holds the edges; the state holds none. The state only has a label for each node that
//! grows along all edges ([`crate::toposort`]), so that most changes need no search for cycles.
//!
//! Every change of edges goes through [`GraphGuard::change`], in five steps:
//!
//! 1. **Check.** Nodes, kinds and duplicates are checked ([`list`], [`neighbours`]), since the
//!    driver processes a list of edges one by one and stops at the first bad one.
//! 2. **Plan.** The labels for the new edges are found, or a cycle ([`order`]). The driver does not
//!    check for cycles.
//! 3. **Remove.** A graph with memory nodes refuses to remove edges. Nothing has changed then.
//! 4. **Add.** One driver call for each kind of edge.
//! 5. **Restore.** If step 3 or 4 fails, the edges are queried and restored ([`change`]). If that
//!    fails as well, the hierarchy is [broken](crate::Error::Broken).
//!
//! The new labels are entered last, so that a failed change leaves the state as it was.
//!
//! | file | holds |
//! | --- | --- |
//! | `query`, `kind_query` | queries of nodes, edges and kinds |
//! | `list`, `neighbours` | the public ways to add, remove and set edges |
//! | `change`, `order` | the change itself, and its search for cycles |
//! | `remove` | removing nodes |

pub(crate) mod change;
pub(crate) mod kind_query;
pub(crate) mod list;
pub(crate) mod neighbours;
pub(crate) mod order;
pub(crate) mod query;
pub(crate) mod remove;

use crate::edge_kind::EdgeKind;
use crate::error::{Error, NodeError, Result};
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
    /// How far `to` waits for `from`.
    pub kind: EdgeKind,
}

/// The parts of a node's handle.
type IdAndKind = (NodeId, NodeKind);

impl Graph {
    fn ensure_own(&self, node: &Node) -> Result<()> {
        if node.graph() == self {
            Ok(())
        } else {
            Err(Error::Node(NodeError::Foreign { node: node.name().into() }))
        }
    }

    fn node(&self, (id, kind): IdAndKind) -> Node {
        Node::new(self.clone(), id, kind)
    }
}

impl GraphGuard<'_> {
    /// The id of a node. Refuses a removed node.
    fn live_id(&self, node: &Node) -> Result<NodeId> {
        self.record(node.id()).map(|_| node.id()).ok_or_else(|| node.removed())
    }

    /// The error for a removed node.
    pub(crate) fn removed(&self, id: NodeId) -> Error {
        let known = self.removed.find(id);
        Error::Node(NodeError::Removed {
            node: known.unwrap_or_else(|| format!("node#{}", id.number).into()),
        })
    }

    /// The name of an existing node.
    pub(crate) fn name(&self, id: NodeId) -> NodeName {
        self.record(id).map(|record| record.display_name(id)).unwrap_or_default().into()
    }
}
