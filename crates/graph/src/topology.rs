//! Nodes and edges of a graph: asking for them, adding and removing edges.

use cuda_sys::{CUgraph, CUgraphNode, CUresult, Call, Driver};

use crate::error::{Error, Result};
use crate::graph::{Graph, Locked};
use crate::node::Node;
use crate::order::{self, Index, Neighbours, Verdict};
use crate::table::NodeId;

/// An edge: `to` starts when `from` has ended.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Edge {
    /// The node that the edge leaves.
    pub from: Node,
    /// The node that the edge enters.
    pub to: Node,
}

impl Graph {
    /// All nodes, in the order of their creation.
    ///
    /// Stands on `cuGraphGetNodes`, CUDA 10.0.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuGraphGetNodes")]
    pub fn nodes(&self) -> Result<Vec<Node>> {
        self.neighbours(|locked| locked.raw_nodes())
    }

    /// All edges.
    ///
    /// Stands on `cuGraphGetEdges`, CUDA 10.0.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuGraphGetEdges")]
    pub fn edges(&self) -> Result<Vec<Edge>> {
        let pairs = {
            let mut locked = self.enter()?;
            let raws = locked.raw_edges()?;
            raws.into_iter()
                .map(|(from, to)| Ok((locked.known(from)?, locked.known(to)?)))
                .collect::<Result<Vec<_>>>()?
        };
        let edge = |(from, to)| Edge { from: self.node(from), to: self.node(to) };
        Ok(pairs.into_iter().map(edge).collect())
    }

    /// Adds an edge: from now on `to` starts when `from` has ended.
    ///
    /// An edge to a node that was made later costs no search; another one is checked for a cycle among the nodes made between the two.
    ///
    /// Stands on `cuGraphAddDependencies`, CUDA 10.0, after queries of the neighbours.
    ///
    /// # Errors
    /// A node of another graph or a removed one, twice the same node, an edge that is there, or one that closes a cycle. The graph is
    /// unchanged then.
    #[doc(alias = "cuGraphAddDependencies")]
    pub fn add_edge(&self, from: &Node, to: &Node) -> Result<()> {
        self.own(from)?;
        self.own(to)?;
        if from == to {
            return Err(Error::SelfEdge { node: from.name().into() });
        }
        let mut locked = self.enter()?;
        let ends = [locked.raw_of(from)?, locked.raw_of(to)?];
        if locked.has_edge(ends)? {
            return Err(Error::DuplicateEdge { from: locked.name(from.id()), to: locked.name(to.id()) });
        }
        let labels = match order::admit(&mut locked, from.id().index, to.id().index)? {
            Verdict::Fits(labels) => labels,
            Verdict::Cycle(path) => {
                let name = |index: Index| locked.id(index).map(|id| locked.name(id).into_string());
                return Err(Error::Cycle { path: path.into_iter().filter_map(name).collect() });
            }
        };
        // SAFETY: both nodes are live and of this graph, as the table says, and its lock is held.
        let result = unsafe {
            locked.driver().cuGraphAddDependencies(locked.raw(), &raw const ends[0], &raw const ends[1], 1)
        };
        locked.answer(Call::cuGraphAddDependencies, result)?;
        locked.relabel(labels);
        Ok(())
    }

    /// Removes the edge from `from` to `to`.
    ///
    /// Stands on `cuGraphRemoveDependencies`, CUDA 10.0, after queries of the neighbours.
    ///
    /// # Errors
    /// A node of another graph or a removed one, or no such edge. The graph is unchanged then.
    #[doc(alias = "cuGraphRemoveDependencies")]
    pub fn remove_edge(&self, from: &Node, to: &Node) -> Result<()> {
        self.own(from)?;
        self.own(to)?;
        let locked = self.enter()?;
        let ends = [locked.raw_of(from)?, locked.raw_of(to)?];
        if !locked.has_edge(ends)? {
            return Err(Error::NoEdge { from: locked.name(from.id()), to: locked.name(to.id()) });
        }
        // SAFETY: as for adding.
        let result = unsafe {
            locked.driver().cuGraphRemoveDependencies(locked.raw(), &raw const ends[0], &raw const ends[1], 1)
        };
        locked.answer(Call::cuGraphRemoveDependencies, result)
    }

    fn own(&self, node: &Node) -> Result<()> {
        if node.graph() == self { Ok(()) } else { Err(Error::Foreign { node: node.name().into() }) }
    }

    /// Nodes for the raw ones that `ask` answers.
    fn neighbours(&self, ask: impl FnOnce(&Locked<'_>) -> Result<Vec<CUgraphNode>>) -> Result<Vec<Node>> {
        let known = {
            let mut locked = self.enter()?;
            let raws = ask(&locked)?;
            raws.into_iter().map(|raw| locked.known(raw)).collect::<Result<Vec<_>>>()?
        };
        Ok(known.into_iter().map(|known| self.node(known)).collect())
    }

    fn node(&self, (id, kind): Known) -> Node {
        Node::new(self.clone(), id, kind)
    }
}

impl Node {
    /// The nodes that this one waits for, in the order in which the edges were added.
    ///
    /// Stands on `cuGraphNodeGetDependencies`, CUDA 10.0.
    ///
    /// # Errors
    /// The node was removed, or what the driver answers.
    #[doc(alias = "cuGraphNodeGetDependencies")]
    pub fn predecessors(&self) -> Result<Vec<Node>> {
        self.graph().neighbours(|locked| locked.raw_predecessors(locked.raw_of(self)?))
    }

    /// The nodes that wait for this one, in the order in which the edges were added.
    ///
    /// Stands on `cuGraphNodeGetDependentNodes`, CUDA 10.0.
    ///
    /// # Errors
    /// The node was removed, or what the driver answers.
    #[doc(alias = "cuGraphNodeGetDependentNodes")]
    pub fn successors(&self) -> Result<Vec<Node>> {
        self.graph().neighbours(|locked| locked.raw_successors(locked.raw_of(self)?))
    }
}

type Known = (NodeId, crate::kind::NodeKind);

impl Locked<'_> {
    fn raw_of(&self, node: &Node) -> Result<CUgraphNode> {
        self.row(node.id()).map(|row| row.raw.0).ok_or_else(|| node.removed())
    }

    /// The name of a node that is there.
    fn name(&self, id: NodeId) -> Box<str> {
        self.row(id).map(|row| row.display_name(id)).unwrap_or_default().into()
    }

    fn known(&mut self, raw: CUgraphNode) -> Result<Known> {
        let index = self.index(raw)?;
        let known = self.at(index).and_then(|row| Some((self.id(index)?, row.detail.kind())));
        known.ok_or(Error::UnknownNode { raw: raw.addr() })
    }

    fn raw_predecessors(&self, node: CUgraphNode) -> Result<Vec<CUgraphNode>> {
        self.list(Call::cuGraphNodeGetDependencies, dependencies_of(node))
    }

    fn raw_successors(&self, node: CUgraphNode) -> Result<Vec<CUgraphNode>> {
        self.list(Call::cuGraphNodeGetDependentNodes, dependents_of(node))
    }

    pub(crate) fn raw_edges(&self) -> Result<Vec<(CUgraphNode, CUgraphNode)>> {
        let mut count = 0;
        let null = core::ptr::null_mut();
        // SAFETY: the graph is live and locked; without buffers the call counts.
        let result = unsafe { self.driver().cuGraphGetEdges(self.raw(), null, null, &raw mut count) };
        self.answer(Call::cuGraphGetEdges, result)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut from: Vec<CUgraphNode> = vec![core::ptr::null_mut(); count];
        let mut to = from.clone();
        // SAFETY: as above; both buffers are as large as the count.
        let result = unsafe {
            self.driver().cuGraphGetEdges(self.raw(), from.as_mut_ptr(), to.as_mut_ptr(), &raw mut count)
        };
        self.answer(Call::cuGraphGetEdges, result)?;
        from.truncate(count);
        Ok(from.into_iter().zip(to).collect())
    }

    /// Whether there is an edge; looks through the neighbours of the end that has fewer.
    fn has_edge(&self, [from, to]: [CUgraphNode; 2]) -> Result<bool> {
        const ENTERING: Call = Call::cuGraphNodeGetDependencies;
        const LEAVING: Call = Call::cuGraphNodeGetDependentNodes;
        let (mut entering, mut leaving) = (0, 0);
        let (driver, graph, null) = (self.driver(), self.raw(), core::ptr::null_mut());
        self.answer(ENTERING, dependencies_of(to)(driver, graph, null, &raw mut entering))?;
        if entering == 0 {
            return Ok(false);
        }
        self.answer(LEAVING, dependents_of(from)(driver, graph, null, &raw mut leaving))?;
        if entering <= leaving {
            Ok(self.fetch(ENTERING, entering, dependencies_of(to))?.contains(&from))
        } else {
            Ok(self.fetch(LEAVING, leaving, dependents_of(from))?.contains(&to))
        }
    }

    fn raw_at(&self, index: Index) -> Result<CUgraphNode> {
        self.at(index).map(|row| row.raw.0).ok_or(Error::UnknownNode { raw: 0 })
    }
}

/// The query of a node's dependencies, for [`Locked::fetch`]. The node is live and its graph locked.
fn dependencies_of(node: CUgraphNode) -> impl Fn(&Driver, CUgraph, *mut CUgraphNode, *mut usize) -> CUresult {
    // SAFETY: the node is live and the lock held; the buffer is null or as large as the count.
    move |driver, _, nodes, count| unsafe { driver.cuGraphNodeGetDependencies(node, nodes, count) }
}

/// The query of a node's dependents, for [`Locked::fetch`]. The node is live and its graph locked.
fn dependents_of(node: CUgraphNode) -> impl Fn(&Driver, CUgraph, *mut CUgraphNode, *mut usize) -> CUresult {
    // SAFETY: as above.
    move |driver, _, nodes, count| unsafe { driver.cuGraphNodeGetDependentNodes(node, nodes, count) }
}

impl Neighbours for Locked<'_> {
    type Error = Error;

    fn label(&self, node: Index) -> u64 {
        self.at(node).map_or(0, |row| row.label)
    }

    fn successors(&mut self, node: Index) -> Result<Vec<Index>> {
        let raws = self.raw_successors(self.raw_at(node)?)?;
        self.indices(&raws)
    }

    fn predecessors(&mut self, node: Index) -> Result<Vec<Index>> {
        let raws = self.raw_predecessors(self.raw_at(node)?)?;
        self.indices(&raws)
    }
}
