//! The frontier: the position in a graph at which nodes are added.

use std::collections::hash_map::Entry;

use cuda_sys::{CUgraphEdgeData, CUgraphNode, CUgraphNodeParams, Call};
use smallvec::SmallVec;

use crate::build::insertion::{Before, BoundPlainNode, PlainNode};
use crate::edge_kind::EdgeKind;
use crate::error::{EdgeError, Error, NodeError, Result};
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::node_kind::NodeKind;
use crate::param::bind::NewBinding;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::owners::Owners;
use crate::state::params::NodeParams;

/// A position in a graph at which nodes are added: each new node starts once all nodes of the
/// frontier have completed, or as far as the [kind of edge](EdgeKind) requires.
///
/// Any number of nodes can be added at one frontier; they do not wait for each other. Each add is
/// one driver call.
///
/// A frontier can also lie [before](Self::before) existing nodes, which then wait for each new
/// node; that takes one more driver call. [`Graph::between`] makes a frontier in place of an edge.
#[derive(Clone, Debug)]
#[must_use = "a frontier does nothing by itself; add nodes at it"]
pub struct Frontier<'g> {
    graph: &'g Graph,
    after: SmallVec<[(NodeId, EdgeKind); 4]>,
    /// Whether all edges from `after` are full edges.
    full: bool,
    before: Option<Box<Before>>,
    /// Whether it belongs to a dataflow: nodes also wait for earlier ones that their accesses need.
    by_data: bool,
}

impl Graph {
    /// The frontier without predecessors: nodes added here wait for nothing.
    #[inline]
    pub fn root(&self) -> Frontier<'_> {
        Frontier { graph: self, after: SmallVec::new(), full: true, before: None, by_data: false }
    }

    /// The frontier after `nodes`: nodes added here wait for all of them. A node given twice counts
    /// once.
    ///
    /// ```no_run
    /// # fn example(graph: &cuda_graph::Graph) -> cuda_graph::Result<()> {
    /// let (left, right) = (graph.root().empty()?, graph.root().empty()?);
    /// let join = graph.after([&left, &right])?.empty()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`NodeError::Foreign`], if a node is in another graph; [`NodeError::Removed`], if a node was
    /// removed.
    pub fn after<const N: usize>(&self, nodes: [&Node; N]) -> Result<Frontier<'_>> {
        self.after_all(nodes)
    }

    /// [`after`](Self::after) for any number of nodes. Each is given alone or with the [kind of
    /// edge](EdgeKind) that says how far the new nodes wait for it. A node given twice with the
    /// same kind counts once.
    ///
    /// ```no_run
    /// # use cuda_graph::{EdgeKind, Graph, Node, Result};
    /// # fn example(graph: &Graph, nodes: &[Node]) -> Result<()> {
    /// let join = graph.after_all(nodes)?.empty()?;
    /// let edges = nodes.iter().map(|node| (node, EdgeKind::Full));
    /// let same = graph.after_all(edges)?.empty()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`NodeError::Foreign`], if a node is in another graph; [`NodeError::Removed`], if a node
    ///   was removed.
    /// - [`EdgeError::DuplicateEdge`], if a node is given with two kinds of edges.
    /// - [`EdgeError::EdgeKind`], if a kind that only kernels can have is given with another node.
    pub fn after_all<'n, E: Into<(&'n Node, EdgeKind)>>(
        &self,
        nodes: impl IntoIterator<Item = E>,
    ) -> Result<Frontier<'_>> {
        let mut frontier = self.root();
        let mut seen = Seen::default();
        for (node, kind) in nodes.into_iter().map(Into::into) {
            frontier.wait_for(&mut seen, node, kind)?;
        }
        Ok(frontier)
    }

    /// The frontier in the edge from `from` to `to`: a node added here waits for `from`, and `to`
    /// waits for it. The edge itself is removed, since the new edges imply its order. Both new
    /// edges are full edges, whatever the kind of the old one.
    ///
    /// The first node added replaces the edge; later ones stand beside it. Each add is one driver
    /// call for the node and one for the edge to `to`; the first add also queries the old edge and
    /// removes it.
    ///
    /// ```no_run
    /// # fn example(graph: &cuda_graph::Graph) -> cuda_graph::Result<()> {
    /// let first = graph.root().empty()?;
    /// let last = first.then().empty()?;
    /// let middle = graph.between(&first, &last)?.empty()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphRemoveDependencies` and `cuGraphAddDependencies` (CUDA 10.0), besides the call
    /// that adds the node.
    ///
    /// # Errors
    /// - [`NodeError::Foreign`], if a node is in another graph; [`NodeError::Removed`], if a node
    ///   was removed.
    /// - [`EdgeError::NoEdge`], if there is no such edge.
    /// - The driver's error.
    ///
    /// Adding a node fails as for [`before`](Frontier::before), and with
    /// [`MemoryError::KeepsAll`](crate::MemoryError::KeepsAll) in a graph with memory nodes, from
    /// which the driver removes no edges.
    #[doc(alias = "cudaGraphRemoveDependencies")]
    pub fn between(&self, from: &Node, to: &Node) -> Result<Frontier<'_>> {
        if self.edge_kind(from, to)?.is_none() {
            return Err(Error::Edge(EdgeError::NoEdge { from: from.name().into(), to: to.name().into() }));
        }
        let before = Before { nodes: vec![(to.id(), EdgeKind::Full)], cut: Some((from.id(), to.id())) };
        let after = SmallVec::from_slice(&[(from.id(), EdgeKind::Full)]);
        Ok(Frontier { graph: self, after, full: true, before: Some(Box::new(before)), by_data: false })
    }

    /// Refuses a node that cannot be an end of an edge of this kind.
    fn usable_end(&self, node: &Node, kind: EdgeKind) -> Result<()> {
        if node.graph() != self {
            return Err(Error::Node(NodeError::Foreign { node: node.name().into() }));
        }
        if node.is_removed() {
            return Err(node.removed());
        }
        if kind == EdgeKind::Full || node.kind().is_kernel() {
            return Ok(());
        }
        Err(Error::Edge(EdgeError::EdgeKind { kind, from: node.name().into() }))
    }
}

/// Finds duplicates without comparing every node with every other.
#[derive(Default)]
struct Seen(std::collections::HashMap<NodeId, EdgeKind>);

impl Seen {
    const FEW: usize = 16;

    /// The kind that a node was given with before. If it was not, notes it with this kind.
    fn replace(&mut self, before: &[(NodeId, EdgeKind)], id: NodeId, kind: EdgeKind) -> Option<EdgeKind> {
        if before.len() < Self::FEW {
            return before.iter().find(|(known, _)| *known == id).map(|(_, kind)| *kind);
        }
        if self.0.is_empty() {
            self.0.extend(before.iter().copied());
        }
        match self.0.entry(id) {
            Entry::Occupied(known) => Some(*known.get()),
            Entry::Vacant(free) => {
                free.insert(kind);
                None
            }
        }
    }
}

/// A node with the default kind of edge, [`EdgeKind::Full`].
impl<'n> From<&'n Node> for (&'n Node, EdgeKind) {
    fn from(node: &'n Node) -> Self {
        (node, EdgeKind::Full)
    }
}

impl Node {
    /// The frontier after this node: nodes added here wait for it.
    ///
    /// If the node was removed, adding a node fails with [`NodeError::Removed`].
    #[inline]
    pub fn then(&self) -> Frontier<'_> {
        let after = SmallVec::from_slice(&[(self.id(), EdgeKind::Full)]);
        Frontier { graph: self.graph(), after, full: true, before: None, by_data: false }
    }

    /// The frontier after this node with a kind of edge, which says how far the new nodes wait for
    /// it.
    ///
    /// Adding a node that cannot have such an edge fails with [`EdgeError::EdgeKind`]. Kinds other
    /// than [`EdgeKind::Full`] need CUDA 12.3.
    pub fn then_with(&self, kind: EdgeKind) -> Frontier<'_> {
        let kind = kind.plain();
        let after = SmallVec::from_slice(&[(self.id(), kind)]);
        Frontier { graph: self.graph(), after, full: kind == EdgeKind::Full, before: None, by_data: false }
    }
}

impl<'g> Frontier<'g> {
    /// The graph that nodes are added to.
    #[inline]
    #[must_use]
    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// The same frontier before `nodes`: each of them waits for the nodes added here. A node given
    /// twice counts once.
    ///
    /// ```no_run
    /// # fn example(graph: &cuda_graph::Graph) -> cuda_graph::Result<()> {
    /// let (first, last) = (graph.root().empty()?, graph.root().empty()?);
    /// let middle = first.then().before([&last])?.empty()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Each add then also calls `cuGraphAddDependencies` (CUDA 10.0) once for each kind of edge,
    /// after queries among the nodes whose order is affected.
    ///
    /// # Errors
    /// [`NodeError::Foreign`], if a node is in another graph; [`NodeError::Removed`], if a node was
    /// removed; [`EdgeError::Dataflow`], for the frontier of a [dataflow](Graph::dataflow).
    ///
    /// Adding a node fails with [`EdgeError::Cycle`] if the new edges close a cycle, and with
    /// [`EdgeError::MovesBefore`] if a graph is to be moved into the node. After a failure the
    /// graph is as it was; if undoing the add fails as well, it is [broken](Error::Broken).
    #[doc(alias = "cuGraphAddDependencies")]
    #[doc(alias = "cudaGraphAddDependencies")]
    pub fn before<const N: usize>(self, nodes: [&Node; N]) -> Result<Self> {
        self.before_all(nodes)
    }

    /// [`before`](Self::before) for any number of nodes. Each is given alone or with the [kind of
    /// edge](EdgeKind) that says how far it waits for the new nodes.
    ///
    /// # Errors
    /// As for [`before`](Self::before). Also [`EdgeError::DuplicateEdge`], if a node is given with
    /// two kinds of edges, and [`EdgeError::EdgeKind`], if a kind that only kernels can have is
    /// given with another node.
    pub fn before_all<'n, E: Into<(&'n Node, EdgeKind)>>(
        mut self,
        nodes: impl IntoIterator<Item = E>,
    ) -> Result<Self> {
        self.ensure_not_by_data("a frontier before other nodes")?;
        let mut before = self.before.take().unwrap_or_default();
        let mut seen = Seen::default();
        for (node, kind) in nodes.into_iter().map(Into::into) {
            let kind = kind.plain();
            self.graph.usable_end(node, kind)?;
            match seen.replace(&before.nodes, node.id(), kind) {
                None => before.nodes.push((node.id(), kind)),
                Some(known) if known == kind => {}
                Some(_) => {
                    return Err(Error::Edge(EdgeError::DuplicateEdge {
                        from: "the new node".into(),
                        to: node.name().into(),
                    }));
                }
            }
        }
        self.before = Some(before);
        Ok(self)
    }

    /// The frontier before some nodes and after none.
    pub(crate) fn before_ids(graph: &'g Graph, nodes: Vec<(NodeId, EdgeKind)>) -> Self {
        let before = Some(nodes).filter(|nodes| !nodes.is_empty());
        let before = before.map(|nodes| Box::new(Before { nodes, cut: None }));
        Frontier { graph, after: SmallVec::new(), full: true, before, by_data: false }
    }

    /// The frontier after some nodes, each given once, and before the nodes of `before`.
    pub(crate) fn at(
        graph: &'g Graph,
        after: SmallVec<[(NodeId, EdgeKind); 4]>,
        before: Option<&Before>,
    ) -> Self {
        let full = after.iter().all(|(_, kind)| *kind == EdgeKind::Full);
        let before = before.map(|before| Box::new(before.clone()));
        Frontier { graph, after, full, before, by_data: false }
    }

    /// The frontier of a dataflow.
    pub(crate) fn by_data(graph: &'g Graph) -> Self {
        Frontier { by_data: true, ..graph.root() }
    }

    /// Whether it is the frontier of a dataflow.
    #[inline]
    pub(crate) fn is_by_data(&self) -> bool {
        self.by_data
    }

    /// The nodes that nodes added here wait for, with the kinds of edges.
    pub(crate) fn after_edges(&self) -> &[(NodeId, EdgeKind)] {
        &self.after
    }

    /// The frontier after some nodes, each given once.
    pub(crate) fn after_ids(graph: &'g Graph, nodes: Vec<NodeId>) -> Self {
        let after = nodes.into_iter().map(|id| (id, EdgeKind::Full)).collect();
        Frontier { graph, after, full: true, before: None, by_data: false }
    }

    /// The same frontier, also after another node.
    pub(crate) fn and_id(mut self, id: NodeId) -> Self {
        if !self.after.iter().any(|(known, _)| *known == id) {
            self.after.push((id, EdgeKind::Full));
        }
        self
    }

    /// The same frontier without the nodes that it is before: for a node in front of another one
    /// added here.
    pub(crate) fn without_before(&self) -> Self {
        Frontier { before: None, ..self.clone() }
    }

    /// The frontier after a node that was added [in front](Self::without_before), before the same
    /// nodes as this one.
    pub(crate) fn moved_behind(&self, node: &Node) -> Self {
        let after = SmallVec::from_slice(&[(node.id(), EdgeKind::Full)]);
        let (before, by_data) = (self.before.clone(), self.by_data);
        Frontier { graph: self.graph, after, full: true, before, by_data }
    }

    /// Refuses a frontier with edges that are not full.
    pub(crate) fn ensure_full(&self) -> Result<()> {
        match self.after.iter().find(|(_, kind)| *kind != EdgeKind::Full) {
            Some(&(from, kind)) => {
                Err(Error::Edge(EdgeError::EdgeKind { kind, from: self.graph.enter()?.name(from) }))
            }
            None => Ok(()),
        }
    }

    /// The edge that the next node replaces, if it still exists.
    pub(crate) fn current_cut(&self) -> Result<Option<(Node, Node, EdgeKind)>> {
        let Some((from, to)) = self.before.as_ref().and_then(|before| before.cut) else { return Ok(None) };
        let guard = self.graph.enter()?;
        let kind_of = |id| guard.record(id).map(|record| record.node_params.kind());
        let (Some(first), Some(second)) = (kind_of(from), kind_of(to)) else { return Ok(None) };
        let Some(kind) = guard.kind_of(from, to)? else { return Ok(None) };
        drop(guard);
        let node = |id, kind| Node::new(self.graph.clone(), id, kind);
        Ok(Some((node(from, first), node(to, second), kind)))
    }

    fn wait_for(&mut self, seen: &mut Seen, node: &Node, kind: EdgeKind) -> Result<()> {
        let kind = kind.plain();
        self.graph.usable_end(node, kind)?;
        match seen.replace(&self.after, node.id(), kind) {
            None => {
                self.after.push((node.id(), kind));
                self.full &= kind == EdgeKind::Full;
            }
            Some(known) if known == kind => {}
            Some(_) => {
                return Err(Error::Edge(EdgeError::DuplicateEdge {
                    from: node.name().into(),
                    to: "the new node".into(),
                }));
            }
        }
        Ok(())
    }

    /// Adds a node that needs no driver call but the one that adds it.
    pub(crate) fn add(
        &self,
        node_params: NodeParams,
        owners: Owners,
        params: &mut CUgraphNodeParams,
    ) -> Result<Node> {
        let kind = node_params.kind();
        let subgraph = self.graph.subgraph();
        let mut guard = self.graph.enter()?;
        guard.ensure_may_hold(subgraph, &node_params)?;
        guard.ensure_own_memory(&owners, &node_params)?;
        guard.ensure_not_freed(&owners, &node_params)?;
        let id = self.insert(&mut guard, PlainNode { subgraph, node_params, owners }, params)?;
        drop(guard);
        Ok(Node::new(self.graph.clone(), id, kind))
    }

    /// [`add`](Self::add) for a node that uses graph parameters.
    pub(crate) fn add_bound(
        &self,
        node_params: NodeParams,
        owners: Owners,
        params: &mut CUgraphNodeParams,
        binding: NewBinding,
    ) -> Result<Node> {
        let (kind, subgraph) = (node_params.kind(), self.graph.subgraph());
        let mut guard = self.graph.enter()?;
        guard.ensure_own_params(&binding)?;
        guard.ensure_may_hold(subgraph, &node_params)?;
        guard.ensure_own_memory(&owners, &node_params)?;
        guard.ensure_not_freed(&owners, &node_params)?;
        let new = BoundPlainNode(PlainNode { subgraph, node_params, owners });
        let id = self.insert(&mut guard, new, params)?;
        guard.bindings.bind(id, binding.into_binding());
        drop(guard);
        Ok(Node::new(self.graph.clone(), id, kind))
    }

    /// The nodes that nodes added here wait for.
    pub(crate) fn comes_after(&self) -> impl Iterator<Item = NodeId> {
        self.after.iter().map(|(id, _)| *id)
    }

    /// The nodes that wait for nodes added here.
    #[inline]
    pub(crate) fn comes_before(&self) -> Option<&Before> {
        self.before.as_deref()
    }

    /// Whether existing nodes wait for nodes added here.
    #[inline]
    pub(crate) fn is_before_some(&self) -> bool {
        self.before.is_some()
    }

    /// The driver call that adds a node.
    #[inline]
    pub(crate) fn call_add(
        &self,
        guard: &GraphGuard<'_>,
        kind: NodeKind,
        params: &mut CUgraphNodeParams,
    ) -> Result<CUgraphNode> {
        let mut after = SmallVec::<[CUgraphNode; 8]>::with_capacity(self.after.len());
        for &(id, _) in &self.after {
            match guard.record(id) {
                Some(record) => after.push(record.raw.0),
                None => return Err(guard.removed(id)),
            }
        }
        if !self.full {
            return self.call_add_with_kinds(guard, kind, &after, params);
        }
        let mut raw = core::ptr::null_mut();
        let dependencies = if after.is_empty() { core::ptr::null() } else { after.as_ptr() };
        // SAFETY: graph and dependencies are live, as the records say; the lock is held; the
        // parameters are complete for their type, and what they point to outlives the call.
        let result = unsafe {
            guard.driver().cuGraphAddNode(&raw mut raw, guard.raw(), dependencies, after.len(), params)
        };
        guard.answer(Call::cuGraphAddNode, result)?;
        Ok(raw)
    }

    #[cold]
    fn call_add_with_kinds(
        &self,
        guard: &GraphGuard<'_>,
        kind: NodeKind,
        after: &[CUgraphNode],
        params: &mut CUgraphNodeParams,
    ) -> Result<CUgraphNode> {
        let is_kernel = |id| guard.record(id).is_some_and(|record| record.node_params.kind().is_kernel());
        let mut special = self.after.iter().filter(|(_, kind)| *kind != EdgeKind::Full);
        if let Some(&(from, kind)) = special.find(|(from, _)| kind != NodeKind::Kernel || !is_kernel(*from)) {
            return Err(Error::Edge(EdgeError::EdgeKind { kind, from: guard.name(from) }));
        }
        let kinds: SmallVec<[CUgraphEdgeData; 8]> = self.after.iter().map(|(_, kind)| kind.data()).collect();
        let mut raw = core::ptr::null_mut();
        // SAFETY: as in `call_add`; there are as many kinds as dependencies.
        let result = unsafe {
            guard.driver().cuGraphAddNode_v12030(
                &raw mut raw,
                guard.raw(),
                after.as_ptr(),
                kinds.as_ptr(),
                after.len(),
                params,
            )
        };
        guard.answer(Call::cuGraphAddNode_v12030, result.map_err(cuda_handles::Error::from)?)?;
        Ok(raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_given_twice_are_seen() {
        let id = |index: u32| NodeId { index, number: u64::from(index) };
        let mut seen = Seen::default();
        let mut kept: Vec<(NodeId, EdgeKind)> = Vec::new();
        for round in 0..2 {
            for index in 0..40 {
                let new = seen.replace(&kept, id(index), EdgeKind::Full).is_none();
                assert_eq!(new, round == 0);
                if new {
                    kept.push((id(index), EdgeKind::Full));
                }
            }
        }
        assert_eq!(kept.len(), 40);
    }
}
