//! The neighbours of a node, as sets to change.

use std::collections::HashMap;

use super::change::Link;
use super::query::Way;
use crate::edge_kind::EdgeKind;
use crate::error::{Error, Result};
use crate::graph::node::Node;
use crate::state::ids::NodeId;

impl Node {
    /// Makes these the nodes that this one waits for, instead of those that it waits for now. A
    /// node given twice counts once.
    ///
    /// Edges that are there and stay are left as they are, kind and all; new ones are full ones.
    /// Whatever changes, one driver call takes edges away and one adds others, after queries; all
    /// is checked before.
    ///
    /// ```no_run
    /// # fn example(graph: &cuda_graph::Graph) -> cuda_graph::Result<()> {
    /// let [a, b, c] = [graph.root().empty()?, graph.root().empty()?, graph.root().empty()?];
    /// c.set_predecessors(&[&a, &b])?;
    /// c.set_predecessors(&[])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Stands on `cuGraphRemoveDependencies` and `cuGraphAddDependencies`, CUDA 10.0.
    ///
    /// # Errors
    /// As for [`Graph::add_edges`](crate::Graph::add_edges) and
    /// [`Graph::remove_edges`](crate::Graph::remove_edges). The graph is unchanged then, but for
    /// [`Error::HalfDone`]. (If edges had to be taken away and added again meanwhile, their order
    /// may be another.)
    pub fn set_predecessors(&self, nodes: &[&Node]) -> Result<()> {
        self.set_around(Way::In, nodes.iter().map(|node| (*node, None)))
    }

    /// Makes these the nodes that wait for this one; see
    /// [`set_predecessors`](Self::set_predecessors).
    ///
    /// # Errors
    /// As for [`set_predecessors`](Self::set_predecessors).
    pub fn set_successors(&self, nodes: &[&Node]) -> Result<()> {
        self.set_around(Way::Out, nodes.iter().map(|node| (*node, None)))
    }

    /// Makes these the edges that enter the node: those from other nodes go, and an edge of another
    /// kind is given this one.
    ///
    /// Otherwise as [`set_predecessors`](Self::set_predecessors), but for one driver call to add
    /// for each kind of edge that is new; CUDA 12.3 for other edges than full ones.
    ///
    /// # Errors
    /// A node given with two kinds of edges; otherwise as for
    /// [`set_predecessors`](Self::set_predecessors).
    pub fn set_in_edges(&self, edges: &[(&Node, EdgeKind)]) -> Result<()> {
        self.set_around(Way::In, edges.iter().map(|(node, kind)| (*node, Some(kind.plain()))))
    }

    /// Makes these the edges that leave the node; see [`set_in_edges`](Self::set_in_edges).
    ///
    /// # Errors
    /// As for [`set_in_edges`](Self::set_in_edges).
    pub fn set_out_edges(&self, edges: &[(&Node, EdgeKind)]) -> Result<()> {
        self.set_around(Way::Out, edges.iter().map(|(node, kind)| (*node, Some(kind.plain()))))
    }

    /// Makes this node wait for these, too: full edges, added by one driver call.
    ///
    /// # Errors
    /// As for [`Graph::add_edges`](crate::Graph::add_edges).
    pub fn add_predecessors(&self, nodes: &[&Node]) -> Result<()> {
        let edges: Vec<_> = nodes.iter().map(|node| (*node, self, EdgeKind::Full)).collect();
        self.graph().add_edges(&edges)
    }

    /// Makes these nodes wait for this one, too: full edges, added by one driver call.
    ///
    /// # Errors
    /// As for [`Graph::add_edges`](crate::Graph::add_edges).
    pub fn add_successors(&self, nodes: &[&Node]) -> Result<()> {
        let edges: Vec<_> = nodes.iter().map(|node| (self, *node, EdgeKind::Full)).collect();
        self.graph().add_edges(&edges)
    }

    /// Lets this node no longer wait for these: the edges are removed by one driver call.
    ///
    /// # Errors
    /// As for [`Graph::remove_edges`](crate::Graph::remove_edges).
    pub fn remove_predecessors(&self, nodes: &[&Node]) -> Result<()> {
        let edges: Vec<_> = nodes.iter().map(|node| (*node, self)).collect();
        self.graph().remove_edges(&edges)
    }

    /// Lets these nodes no longer wait for this one: the edges are removed by one driver call.
    ///
    /// # Errors
    /// As for [`Graph::remove_edges`](crate::Graph::remove_edges).
    pub fn remove_successors(&self, nodes: &[&Node]) -> Result<()> {
        let edges: Vec<_> = nodes.iter().map(|node| (self, *node)).collect();
        self.graph().remove_edges(&edges)
    }

    /// Makes these the neighbours. Without a kind, an edge that is there keeps its own.
    fn set_around<'n>(
        &self,
        way: Way,
        nodes: impl Iterator<Item = (&'n Node, Option<EdgeKind>)> + Clone,
    ) -> Result<()> {
        for (node, _) in nodes.clone() {
            self.graph().own(node)?;
            if node == self {
                return Err(Error::SelfEdge { node: self.name().into() });
            }
        }
        let mut guard = self.graph().enter()?;
        let own = guard.there(self)?;
        let ends = |other: NodeId| if way == Way::In { (other, own) } else { (own, other) };
        let mut wanted: Vec<(NodeId, Option<EdgeKind>)> = Vec::new();
        let mut kinds = HashMap::new();
        for (node, kind) in nodes {
            let id = guard.there(node)?;
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
                Some(wanted) if wanted.is_none_or(|wanted| wanted == kind) => drop(there.insert(id, kind)),
                _ => remove.push(link(id, kind)),
            }
        }
        let new = wanted.into_iter().filter(|(id, _)| !there.contains_key(id));
        let add: Vec<Link> = new.map(|(id, kind)| link(id, kind.unwrap_or_default())).collect();
        guard.change(&remove, &add)
    }
}
