//! Replacing all edges on one side of a node.

use std::collections::HashMap;

use super::change::Link;
use super::query::Way;
use crate::edge_kind::EdgeKind;
use crate::error::{EdgeError, Error, Result};
use crate::graph::node::Node;
use crate::state::ids::NodeId;

impl Node {
    /// Replaces the edges that enter the node. Edges from other nodes are removed, and an edge of
    /// another kind gets the given kind. A node given twice with the same kind counts once.
    ///
    /// Everything is checked before anything is changed. Then one driver call removes edges, and
    /// one for each kind of new edge adds others, after queries.
    ///
    /// ```no_run
    /// # use cuda_graph::EdgeKind::Full;
    /// # fn example(graph: &cuda_graph::Graph) -> cuda_graph::Result<()> {
    /// let [a, b, c] = [graph.root().empty()?, graph.root().empty()?, graph.root().empty()?];
    /// c.set_in_edges(&[(&a, Full), (&b, Full)])?;
    /// c.set_in_edges(&[])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphRemoveDependencies` and `cuGraphAddDependencies` (CUDA 10.0; 12.3 for edges
    /// that are not full).
    ///
    /// # Errors
    /// [`EdgeError::EdgeTwice`], if a node is given with two kinds of edges; otherwise as for
    /// [`Graph::add_edges`](crate::Graph::add_edges) and
    /// [`Graph::remove_edges`](crate::Graph::remove_edges). The graph is unchanged then, or
    /// [broken](Error::Broken). (If edges had to be removed and added again meanwhile, their order
    /// may differ.)
    #[doc(alias = "cuGraphAddDependencies")]
    #[doc(alias = "cuGraphRemoveDependencies")]
    #[doc(alias = "set_predecessors")]
    pub fn set_in_edges(&self, edges: &[(&Node, EdgeKind)]) -> Result<()> {
        self.set_edges(Way::In, edges)
    }

    /// Replaces the edges that leave the node; see [`set_in_edges`](Self::set_in_edges).
    ///
    /// # Errors
    /// As for [`set_in_edges`](Self::set_in_edges).
    #[doc(alias = "cuGraphAddDependencies")]
    #[doc(alias = "cuGraphRemoveDependencies")]
    #[doc(alias = "set_successors")]
    pub fn set_out_edges(&self, edges: &[(&Node, EdgeKind)]) -> Result<()> {
        self.set_edges(Way::Out, edges)
    }

    fn set_edges(&self, way: Way, edges: &[(&Node, EdgeKind)]) -> Result<()> {
        for &(node, _) in edges {
            self.graph().ensure_own(node)?;
            if node == self {
                return Err(Error::Edge(EdgeError::SelfEdge { node: self.name().into() }));
            }
        }
        let mut guard = self.graph().enter()?;
        let own = guard.live_id(self)?;
        let ends = |other: NodeId| if way == Way::In { (other, own) } else { (own, other) };
        let mut wanted: Vec<(NodeId, EdgeKind)> = Vec::new();
        let mut kinds = HashMap::new();
        for (node, kind) in edges {
            let (id, kind) = (guard.live_id(node)?, kind.plain());
            match kinds.insert(id, kind) {
                None => wanted.push((id, kind)),
                Some(before) if before == kind => {}
                Some(_) => {
                    let (from, to) = ends(id);
                    return Err(Error::Edge(EdgeError::EdgeTwice {
                        from: guard.name(from),
                        to: guard.name(to),
                    }));
                }
            }
        }
        let link = |other: NodeId, kind: EdgeKind| {
            let (from, to) = ends(other);
            Link { from, to, kind }
        };
        let (mut remove, mut kept) = (Vec::new(), HashMap::new());
        for (raw, kind) in guard.neighbours(guard.raw_of(own)?, way)? {
            let (id, _) = guard.node_of_raw(raw)?;
            match kinds.get(&id) {
                Some(wanted) if *wanted == kind => drop(kept.insert(id, kind)),
                _ => remove.push(link(id, kind)),
            }
        }
        let new = wanted.into_iter().filter(|(id, _)| !kept.contains_key(id));
        let add: Vec<Link> = new.map(|(id, kind)| link(id, kind)).collect();
        guard.change(&remove, &add)
    }
}
