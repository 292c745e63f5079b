//! The neighbours of a node, as sets to change.

use std::collections::HashMap;

use super::change::Link;
use super::query::Way;
use crate::edge_kind::EdgeKind;
use crate::error::{Error, Result};
use crate::graph::node::Node;
use crate::state::ids::NodeId;

impl Node {
    /// Replaces the edges that enter the node. Edges from other nodes go, and an edge of another
    /// kind gets this kind. A node given twice with one kind counts once.
    ///
    /// All is checked first. Then one driver call removes edges, and one for each kind of edge that
    /// is new adds others, after queries.
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
    /// Calls `cuGraphRemoveDependencies` and `cuGraphAddDependencies` (CUDA 10.0; 12.3 for other
    /// edges than full ones).
    ///
    /// # Errors
    /// A node given with two kinds of edges; otherwise as for
    /// [`Graph::add_edges`](crate::Graph::add_edges) and
    /// [`Graph::remove_edges`](crate::Graph::remove_edges). The graph is unchanged then, or
    /// [broken](Error::Broken). (If edges had to be removed and added again meanwhile, their order
    /// may be another.)
    #[doc(alias = "cuGraphAddDependencies")]
    #[doc(alias = "cuGraphRemoveDependencies")]
    #[doc(alias = "set_predecessors")]
    pub fn set_in_edges(&self, edges: &[(&Node, EdgeKind)]) -> Result<()> {
        self.set_around(Way::In, edges)
    }

    /// Replaces the edges that leave the node; see [`set_in_edges`](Self::set_in_edges).
    ///
    /// # Errors
    /// As for [`set_in_edges`](Self::set_in_edges).
    #[doc(alias = "cuGraphAddDependencies")]
    #[doc(alias = "cuGraphRemoveDependencies")]
    #[doc(alias = "set_successors")]
    pub fn set_out_edges(&self, edges: &[(&Node, EdgeKind)]) -> Result<()> {
        self.set_around(Way::Out, edges)
    }

    fn set_around(&self, way: Way, edges: &[(&Node, EdgeKind)]) -> Result<()> {
        for &(node, _) in edges {
            self.graph().own(node)?;
            if node == self {
                return Err(Error::SelfEdge { node: self.name().into() });
            }
        }
        let mut guard = self.graph().enter()?;
        let own = guard.there(self)?;
        let ends = |other: NodeId| if way == Way::In { (other, own) } else { (own, other) };
        let mut wanted: Vec<(NodeId, EdgeKind)> = Vec::new();
        let mut kinds = HashMap::new();
        for (node, kind) in edges {
            let (id, kind) = (guard.there(node)?, kind.plain());
            match kinds.insert(id, kind) {
                None => wanted.push((id, kind)),
                Some(before) if before == kind => {}
                Some(_) => {
                    let (from, to) = ends(id);
                    return Err(Error::EdgeTwice { from: guard.name(from), to: guard.name(to) });
                }
            }
        }
        let link = |other: NodeId, kind: EdgeKind| {
            let (from, to) = ends(other);
            Link { from, to, kind }
        };
        let (mut remove, mut there) = (Vec::new(), HashMap::new());
        for (raw, kind) in guard.neighbours(guard.raw_of(own)?, way)? {
            let (id, _) = guard.known(raw)?;
            match kinds.get(&id) {
                Some(wanted) if *wanted == kind => drop(there.insert(id, kind)),
                _ => remove.push(link(id, kind)),
            }
        }
        let new = wanted.into_iter().filter(|(id, _)| !there.contains_key(id));
        let add: Vec<Link> = new.map(|(id, kind)| link(id, kind)).collect();
        guard.change(&remove, &add)
    }
}
