//! Adding edges, removing them, and changing their kind.

use std::collections::HashSet;

use cuda_sys::CUresult;
use smallvec::SmallVec;

use super::change::Link;
use crate::edge::kind_query::Ends;
use crate::edge_kind::EdgeKind;
use crate::error::{EdgeError, Error, Result};
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::state::guard::GraphGuard;

impl Graph {
    /// Adds an edge: from now on `to` starts when `from` has completed. One driver call, if the
    /// edge goes along the topological order.
    ///
    /// An edge to a node that was added later costs no search. Any other edge is checked for a
    /// cycle, by queries among the nodes whose order is affected.
    ///
    /// Calls `cuGraphAddDependencies` (CUDA 10.0).
    ///
    /// # Errors
    /// - [`NodeError::Foreign`](crate::NodeError::Foreign), if a node is in another graph;
    ///   [`NodeError::Removed`](crate::NodeError::Removed), if a node was removed.
    /// - [`EdgeError::SelfEdge`], if both nodes are the same.
    /// - [`EdgeError::DuplicateEdge`], if the edge exists.
    /// - [`EdgeError::Cycle`], if the edge closes a cycle.
    /// - The driver's error.
    ///
    /// The graph is unchanged then.
    #[doc(alias = "cuGraphAddDependencies")]
    #[doc(alias = "cudaGraphAddDependencies")]
    pub fn add_edge(&self, from: &Node, to: &Node) -> Result<()> {
        self.add_edges(&[(from, to, EdgeKind::Full)])
    }

    /// Adds edges: each second node waits for the first as far as the kind of edge says.
    ///
    /// Everything is checked before anything is changed. Then the edges are added by one driver
    /// call for each kind, in the order in which the kinds first occur. The check of more than one
    /// edge queries the edges of each node that one of them enters. The search for cycles runs once
    /// for all edges: even if they reverse the order of the whole graph, it costs no more than its
    /// nodes and edges.
    ///
    /// ```no_run
    /// # use cuda_graph::EdgeKind;
    /// # fn example(graph: &cuda_graph::Graph) -> cuda_graph::Result<()> {
    /// let [a, b, c] = [graph.root().empty()?, graph.root().empty()?, graph.root().empty()?];
    /// graph.add_edges(&[(&c, &b, EdgeKind::Full), (&b, &a, EdgeKind::Full)])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphAddDependencies` (CUDA 10.0; 12.3 for edges that are not full).
    ///
    /// # Errors
    /// - [`NodeError::Foreign`](crate::NodeError::Foreign), if a node is in another graph;
    ///   [`NodeError::Removed`](crate::NodeError::Removed), if a node was removed.
    /// - [`EdgeError::SelfEdge`], if an edge leads from a node to itself.
    /// - [`EdgeError::DuplicateEdge`], if an edge exists; [`EdgeError::EdgeTwice`], if it is given
    ///   twice.
    /// - [`EdgeError::Cycle`], if the edges close a cycle.
    /// - [`EdgeError::EdgeKind`], if a kind that only kernels can have is given with another node.
    /// - The driver's error, also for a kind of edge that it is too old for.
    ///
    /// The graph is unchanged then, or [broken](Error::Broken).
    #[doc(alias = "cuGraphAddDependencies")]
    #[doc(alias = "cudaGraphAddDependencies")]
    pub fn add_edges(&self, edges: &[(&Node, &Node, EdgeKind)]) -> Result<()> {
        edges.iter().try_for_each(|(from, to, _)| self.ensure_ends(from, to))?;
        let mut guard = self.enter()?;
        let mut links = SmallVec::<[Link; 1]>::with_capacity(edges.len());
        for (from, to, kind) in edges {
            links.push(Link { from: guard.live_id(from)?, to: guard.live_id(to)?, kind: kind.plain() });
        }
        guard.add_links(&links)
    }

    /// Removes edges of any kind. Everything is checked before anything is changed; then one driver
    /// call removes all edges. The check of more than one edge queries the edges of each node that
    /// one of them enters.
    ///
    /// Calls `cuGraphRemoveDependencies` (CUDA 10.0).
    ///
    /// # Errors
    /// - [`NodeError::Foreign`](crate::NodeError::Foreign), if a node is in another graph;
    ///   [`NodeError::Removed`](crate::NodeError::Removed), if a node was removed.
    /// - [`EdgeError::NoEdge`], if an edge does not exist; [`EdgeError::EdgeTwice`], if it is given
    ///   twice.
    /// - [`MemoryError::KeepsAll`](crate::MemoryError::KeepsAll), if the graph has memory nodes:
    ///   the driver removes no edges then.
    /// - The driver's error.
    ///
    /// The graph is unchanged then, or [broken](Error::Broken).
    #[doc(alias = "cuGraphRemoveDependencies")]
    #[doc(alias = "cudaGraphRemoveDependencies")]
    pub fn remove_edges(&self, edges: &[(&Node, &Node)]) -> Result<()> {
        for (from, to) in edges {
            self.ensure_own(from)?;
            self.ensure_own(to)?;
        }
        let mut guard = self.enter()?;
        let mut ends = SmallVec::<[Ends; 1]>::with_capacity(edges.len());
        for (from, to) in edges {
            ends.push((guard.live_id(from)?, guard.live_id(to)?));
        }
        guard.remove_links(&ends)
    }

    /// Changes the kind of an edge. The edge is removed and added again, so it becomes the last one
    /// of both nodes. If it has the kind already, nothing is done.
    ///
    /// Calls `cuGraphRemoveDependencies` and `cuGraphAddDependencies` (CUDA 10.0; 12.3 for edges
    /// that are not full) once each, after a query.
    ///
    /// # Errors
    /// [`EdgeError::NoEdge`], if there is no such edge; otherwise as for
    /// [`add_edges`](Self::add_edges) and [`remove_edges`](Self::remove_edges).
    pub fn set_edge_kind(&self, from: &Node, to: &Node, kind: EdgeKind) -> Result<()> {
        self.ensure_own(from)?;
        self.ensure_own(to)?;
        let mut guard = self.enter()?;
        let (from, to) = (guard.live_id(from)?, guard.live_id(to)?);
        let Some(before) = guard.kind_of(from, to)? else { return Err(guard.no_edge((from, to))) };
        let kind = kind.plain();
        match before == kind {
            true => Ok(()),
            false => guard.change(&[Link { from, to, kind: before }], &[Link { from, to, kind }]),
        }
    }

    fn ensure_ends(&self, from: &Node, to: &Node) -> Result<()> {
        self.ensure_own(from)?;
        self.ensure_own(to)?;
        if from == to { Err(Error::Edge(EdgeError::SelfEdge { node: from.name().into() })) } else { Ok(()) }
    }
}

impl GraphGuard<'_> {
    /// Adds edges between existing nodes, none of them from a node to itself.
    fn add_links(&mut self, links: &[Link]) -> Result<()> {
        if let [link] = links {
            // The driver checks whether a single edge exists, and changes nothing if it refuses.
            let done = self.change(&[], links);
            let refused = done.as_ref().is_err_and(is_invalid_value);
            return match refused && matches!(self.kind_of(link.from, link.to), Ok(Some(_))) {
                true => Err(self.duplicate(link.ends())),
                false => done,
            };
        }
        let ends: Vec<Ends> = links.iter().map(Link::ends).collect();
        self.ensure_once(&ends)?;
        let existing = self.kinds_of(&ends)?;
        if let Some(place) = existing.iter().position(Option::is_some) {
            return Err(self.duplicate(ends[place]));
        }
        self.change(&[], links)
    }

    /// Removes edges between existing nodes.
    fn remove_links(&mut self, ends: &[Ends]) -> Result<()> {
        if let &[(from, to)] = ends {
            let link = Link { from, to, kind: EdgeKind::Full };
            let done = self.change(&[link], &[]);
            if !done.as_ref().is_err_and(is_invalid_value) {
                return done;
            }
            return match self.kind_of(from, to) {
                Ok(None) => Err(self.no_edge((from, to))),
                _ => done,
            };
        }
        self.ensure_once(ends)?;
        let kinds = self.kinds_of(ends)?;
        let mut links = Vec::with_capacity(ends.len());
        for (&(from, to), kind) in ends.iter().zip(kinds) {
            links.push(Link { from, to, kind: kind.ok_or_else(|| self.no_edge((from, to)))? });
        }
        self.change(&links, &[])
    }

    fn ensure_once(&self, ends: &[Ends]) -> Result<()> {
        let mut seen = HashSet::with_capacity(ends.len());
        match ends.iter().find(|ends| !seen.insert(**ends)) {
            Some((from, to)) => {
                Err(Error::Edge(EdgeError::EdgeTwice { from: self.name(*from), to: self.name(*to) }))
            }
            None => Ok(()),
        }
    }

    fn duplicate(&self, (from, to): Ends) -> Error {
        Error::Edge(EdgeError::DuplicateEdge { from: self.name(from), to: self.name(to) })
    }

    pub(crate) fn no_edge(&self, (from, to): Ends) -> Error {
        Error::Edge(EdgeError::NoEdge { from: self.name(from), to: self.name(to) })
    }
}

/// Whether the driver refused an argument.
fn is_invalid_value(error: &Error) -> bool {
    let code = CUresult::CUDA_ERROR_INVALID_VALUE;
    matches!(error, Error::Handles(cuda_handles::Error::Driver { code: answered, .. }) if *answered == code)
}
