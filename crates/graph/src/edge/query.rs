//! Querying nodes and edges.
//!
//! Edges are queried together with their kind, if the driver has kinds (CUDA 12.3). Before, all
//! edges are full.

use std::collections::HashSet;

use cuda_sys::{CUgraph, CUgraphEdgeData, CUgraphNode, Call};
use smallvec::SmallVec;

use super::{Edge, IdAndKind};
use crate::edge_kind::EdgeKind;
use crate::error::{Error, InteropError, Result};
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::state::guard::GraphGuard;

/// One side of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// The edges that enter the node.
    In,
    /// The edges that leave the node.
    Out,
}

/// A node at the other end of an edge.
pub(crate) type Neighbour = (CUgraphNode, EdgeKind);

/// The number of neighbours that the first query has room for: if there are fewer, one call returns
/// all.
const FEW: usize = 8;

/// The most edges of a graph that are listed by one call. The time of that call grows with the
/// square of their number: drivers took 0.1 s for 90 000 edges and 15 s for 900 000, and asked for
/// the neighbours of each node 0.02 s and 0.2 s (seen on driver 580).
const MANY: usize = 32_768;

impl Graph {
    /// All nodes, in the order of their creation.
    ///
    /// Calls `cuGraphGetNodes` (CUDA 10.0).
    ///
    /// # Errors
    /// The driver's error, or [`InteropError::UnknownNode`], if other code added a node.
    #[doc(alias = "cuGraphGetNodes")]
    #[doc(alias = "cudaGraphGetNodes")]
    pub fn nodes(&self) -> Result<Vec<Node>> {
        let found = {
            let mut guard = self.enter()?;
            let raws = guard.raw_nodes()?;
            raws.into_iter().map(|raw| guard.node_of_raw(raw)).collect::<Result<Vec<_>>>()?
        };
        Ok(found.into_iter().map(|found| self.node(found)).collect())
    }

    /// All edges.
    ///
    /// Calls `cuGraphGetEdges` (CUDA 10.0; 12.3 for edges that are not full), and for more than
    /// 32 768 edges `cuGraphNodeGetDependencies` for each node.
    ///
    /// # Errors
    /// The driver's error, or [`InteropError::UnknownNode`], if other code added a node.
    #[doc(alias = "cuGraphGetEdges")]
    #[doc(alias = "cudaGraphGetEdges")]
    pub fn edges(&self) -> Result<Vec<Edge>> {
        let found = {
            let mut guard = self.enter()?;
            let raws = guard.raw_edges_of(guard.raw())?;
            raws.into_iter()
                .map(|(from, to, kind)| Ok((guard.node_of_raw(from)?, guard.node_of_raw(to)?, kind)))
                .collect::<Result<Vec<_>>>()?
        };
        let edge = |(from, to, kind)| Edge { from: self.node(from), to: self.node(to), kind };
        Ok(found.into_iter().map(edge).collect())
    }

    /// The nodes that no full edge leaves.
    pub(crate) fn loose_ends(&self) -> Result<Vec<Node>> {
        let found = {
            let mut guard = self.enter()?;
            let edges = guard.raw_edges_of(guard.raw())?;
            let full = edges.into_iter().filter(|(.., kind)| *kind == EdgeKind::Full);
            let awaited: HashSet<CUgraphNode> = full.map(|(from, ..)| from).collect();
            let loose = guard.raw_nodes()?.into_iter().filter(|raw| !awaited.contains(raw));
            loose.map(|raw| guard.node_of_raw(raw)).collect::<Result<Vec<_>>>()?
        };
        Ok(found.into_iter().map(|found| self.node(found)).collect())
    }

    /// The kind of the edge from `from` to `to`; `None` if there is no edge.
    ///
    /// Calls `cuGraphNodeGetDependencies` and `cuGraphNodeGetDependentNodes` (CUDA 10.0; 12.3 for
    /// edges that are not full).
    ///
    /// # Errors
    /// [`NodeError::Foreign`](crate::NodeError::Foreign), if a node is in another graph;
    /// [`NodeError::Removed`](crate::NodeError::Removed), if a node was removed; or the driver's
    /// error.
    pub fn edge_kind(&self, from: &Node, to: &Node) -> Result<Option<EdgeKind>> {
        self.ensure_own(from)?;
        self.ensure_own(to)?;
        let guard = self.enter()?;
        guard.kind_of(guard.live_id(from)?, guard.live_id(to)?)
    }
}

impl Node {
    /// The nodes that this node waits for, in the order in which their edges were added. After an
    /// edge was removed, the order is unspecified.
    ///
    /// Calls `cuGraphNodeGetDependencies` (CUDA 10.0; 12.3 for edges that are not full).
    ///
    /// # Errors
    /// [`NodeError::Removed`](crate::NodeError::Removed), if the node was removed; or the driver's
    /// error.
    #[doc(alias = "cuGraphNodeGetDependencies")]
    #[doc(alias = "cudaGraphNodeGetDependencies")]
    pub fn predecessors(&self) -> Result<Vec<Node>> {
        Ok(self.neighbour_nodes(Way::In)?.into_iter().map(|(node, _)| node).collect())
    }

    /// The nodes that wait for this node, in the order in which their edges were added. After an
    /// edge was removed, the order is unspecified.
    ///
    /// Calls `cuGraphNodeGetDependentNodes` (CUDA 10.0; 12.3 for edges that are not full).
    ///
    /// # Errors
    /// [`NodeError::Removed`](crate::NodeError::Removed), if the node was removed; or the driver's
    /// error.
    #[doc(alias = "cuGraphNodeGetDependentNodes")]
    #[doc(alias = "cudaGraphNodeGetDependentNodes")]
    pub fn successors(&self) -> Result<Vec<Node>> {
        Ok(self.neighbour_nodes(Way::Out)?.into_iter().map(|(node, _)| node).collect())
    }

    /// The edges that enter the node, in the order in which they were added. After an edge was
    /// removed, the order is unspecified.
    ///
    /// Calls `cuGraphNodeGetDependencies` (CUDA 10.0; 12.3 for edges that are not full).
    ///
    /// # Errors
    /// [`NodeError::Removed`](crate::NodeError::Removed), if the node was removed; or the driver's
    /// error.
    #[doc(alias = "cuGraphNodeGetDependencies")]
    #[doc(alias = "cudaGraphNodeGetDependencies")]
    pub fn in_edges(&self) -> Result<Vec<Edge>> {
        let edge = |(from, kind)| Edge { from, to: self.clone(), kind };
        Ok(self.neighbour_nodes(Way::In)?.into_iter().map(edge).collect())
    }

    /// The edges that leave the node, in the order in which they were added. After an edge was
    /// removed, the order is unspecified.
    ///
    /// Calls `cuGraphNodeGetDependentNodes` (CUDA 10.0; 12.3 for edges that are not full).
    ///
    /// # Errors
    /// [`NodeError::Removed`](crate::NodeError::Removed), if the node was removed; or the driver's
    /// error.
    #[doc(alias = "cuGraphNodeGetDependentNodes")]
    #[doc(alias = "cudaGraphNodeGetDependentNodes")]
    pub fn out_edges(&self) -> Result<Vec<Edge>> {
        let edge = |(to, kind)| Edge { from: self.clone(), to, kind };
        Ok(self.neighbour_nodes(Way::Out)?.into_iter().map(edge).collect())
    }

    fn neighbour_nodes(&self, way: Way) -> Result<Vec<(Node, EdgeKind)>> {
        let found = {
            let mut guard = self.graph().enter()?;
            let id = guard.live_id(self)?;
            let raws = guard.neighbours(guard.raw_of(id)?, way)?;
            raws.into_iter()
                .map(|(raw, kind)| Ok((guard.node_of_raw(raw)?, kind)))
                .collect::<Result<Vec<_>>>()?
        };
        Ok(found.into_iter().map(|(found, kind)| (self.graph().node(found), kind)).collect())
    }
}

impl GraphGuard<'_> {
    pub(crate) fn node_of_raw(&mut self, raw: CUgraphNode) -> Result<IdAndKind> {
        let index = self.index(raw)?;
        let found = self.at(index).and_then(|record| Some((self.id(index)?, record.node_params.kind())));
        found.ok_or(Error::Interop(InteropError::UnknownNode { raw: raw.addr() }))
    }

    /// The edges of a live graph: one of the hierarchy, or one that no other thread knows.
    pub(crate) fn raw_edges_of(&self, graph: CUgraph) -> Result<Vec<(CUgraphNode, CUgraphNode, EdgeKind)>> {
        use core::ptr::null_mut;
        let mut count = 0;
        self.ask_for_edges(graph, null_mut(), null_mut(), null_mut(), &mut count)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        if count > MANY {
            return self.edges_by_nodes(graph, count);
        }
        let mut from: Vec<CUgraphNode> = vec![null_mut(); count];
        let mut to = from.clone();
        let mut data = vec![CUgraphEdgeData::default(); count];
        self.ask_for_edges(graph, from.as_mut_ptr(), to.as_mut_ptr(), data.as_mut_ptr(), &mut count)?;
        let ends = from.into_iter().zip(to).zip(data).take(count);
        Ok(ends.map(|((from, to), data)| (from, to, EdgeKind::of(&data))).collect())
    }

    /// The edges of a large graph, by the nodes that they lead to.
    fn edges_by_nodes(
        &self,
        graph: CUgraph,
        count: usize,
    ) -> Result<Vec<(CUgraphNode, CUgraphNode, EdgeKind)>> {
        let mut edges = Vec::with_capacity(count);
        for to in self.raw_nodes_of(graph)? {
            edges.extend(self.neighbours(to, Way::In)?.into_iter().map(|(from, kind)| (from, to, kind)));
        }
        Ok(edges)
    }

    /// The buffers are null, or have room for `count` edges.
    fn ask_for_edges(
        &self,
        graph: CUgraph,
        from: *mut CUgraphNode,
        to: *mut CUgraphNode,
        data: *mut CUgraphEdgeData,
        count: &mut usize,
    ) -> Result<()> {
        let driver = self.driver();
        // SAFETY: the graph is live and locked. The buffers have room for `count` edges, or are
        // null: then the call counts.
        match unsafe { driver.cuGraphGetEdges_v12030(graph, from, to, data, count) } {
            Ok(result) => self.answer(Call::cuGraphGetEdges_v12030, result),
            Err(_) => {
                // SAFETY: as above.
                let result = unsafe { driver.cuGraphGetEdges(graph, from, to, count) };
                self.answer(Call::cuGraphGetEdges, result)
            }
        }
    }

    /// The nodes at the other ends of a live node's edges, in the order in which the edges were
    /// added.
    pub(crate) fn neighbours(&self, node: CUgraphNode, way: Way) -> Result<SmallVec<[Neighbour; FEW]>> {
        match self.few_neighbours(node, way)? {
            Some(neighbours) => Ok(neighbours),
            None => {
                let count = self.degree(node, way)?;
                Ok(SmallVec::from_vec(self.many_neighbours(node, way, count)?))
            }
        }
    }

    /// [`neighbours`](Self::neighbours) by one call, if these are few.
    pub(crate) fn few_neighbours(
        &self,
        node: CUgraphNode,
        way: Way,
    ) -> Result<Option<SmallVec<[Neighbour; FEW]>>> {
        let mut nodes = [core::ptr::null_mut(); FEW];
        let mut data = [CUgraphEdgeData::default(); FEW];
        let mut count = FEW;
        self.ask_for_neighbours(node, way, nodes.as_mut_ptr(), data.as_mut_ptr(), &mut count)?;
        if count >= FEW {
            return Ok(None);
        }
        Ok(Some(nodes.into_iter().zip(data.iter().map(EdgeKind::of)).take(count).collect()))
    }

    /// The number of a node's edges on one side.
    pub(crate) fn degree(&self, node: CUgraphNode, way: Way) -> Result<usize> {
        let mut count = 0;
        self.ask_for_neighbours(node, way, core::ptr::null_mut(), core::ptr::null_mut(), &mut count)?;
        Ok(count)
    }

    /// [`neighbours`](Self::neighbours) of a known number.
    pub(crate) fn many_neighbours(
        &self,
        node: CUgraphNode,
        way: Way,
        mut count: usize,
    ) -> Result<Vec<Neighbour>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut nodes: Vec<CUgraphNode> = vec![core::ptr::null_mut(); count];
        let mut data = vec![CUgraphEdgeData::default(); count];
        self.ask_for_neighbours(node, way, nodes.as_mut_ptr(), data.as_mut_ptr(), &mut count)?;
        Ok(nodes.into_iter().zip(data.iter().map(EdgeKind::of)).take(count).collect())
    }

    /// The buffers are null, or have room for `count` neighbours.
    fn ask_for_neighbours(
        &self,
        node: CUgraphNode,
        way: Way,
        nodes: *mut CUgraphNode,
        data: *mut CUgraphEdgeData,
        count: &mut usize,
    ) -> Result<()> {
        let driver = self.driver();
        match way {
            // SAFETY: the node is live and its graph locked; the buffers are as large as the count,
            // or null: then the call counts.
            Way::In => match unsafe { driver.cuGraphNodeGetDependencies_v12030(node, nodes, data, count) } {
                Ok(result) => self.answer(Call::cuGraphNodeGetDependencies_v12030, result),
                Err(_) => {
                    // SAFETY: as above.
                    let result = unsafe { driver.cuGraphNodeGetDependencies(node, nodes, count) };
                    self.answer(Call::cuGraphNodeGetDependencies, result)
                }
            },
            // SAFETY: as above.
            Way::Out => match unsafe { driver.cuGraphNodeGetDependentNodes_v12030(node, nodes, data, count) }
            {
                Ok(result) => self.answer(Call::cuGraphNodeGetDependentNodes_v12030, result),
                Err(_) => {
                    // SAFETY: as above.
                    let result = unsafe { driver.cuGraphNodeGetDependentNodes(node, nodes, count) };
                    self.answer(Call::cuGraphNodeGetDependentNodes, result)
                }
            },
        }
    }
}
