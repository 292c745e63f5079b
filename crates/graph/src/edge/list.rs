//! Adding edges, taking them away, and giving them another kind.

use std::collections::HashSet;

use cuda_sys::CUresult;

use super::change::Link;
use crate::edge::kind_query::Ends;
use crate::edge_kind::EdgeKind;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::state::guard::GraphGuard;

impl Graph {
    /// Adds an edge: from now on `to` starts when `from` has ended. One driver call, if it goes
    /// along the order of the nodes.
    ///
    /// An edge to a node that was made later costs no search. Another one is checked for a cycle,
    /// by queries among the nodes whose order it concerns.
    ///
    /// Stands on `cuGraphAddDependencies`, CUDA 10.0.
    ///
    /// # Errors
    /// A node of another graph or a removed one, twice the same node, an edge that is there, or one
    /// that closes a cycle; or what the driver answers. The graph is unchanged then.
    #[doc(alias = "cuGraphAddDependencies")]
    pub fn add_edge(&self, from: &Node, to: &Node) -> Result<()> {
        self.add_edges(&[(from, to, EdgeKind::Full)])
    }

    /// Adds edges: each second node waits for the first as far as the kind says.
    ///
    /// All are checked before anything is done, then added by one driver call for each kind of edge
    /// that occurs, kind by kind in the order in which these come. Checks of more than one edge ask
    /// for the edges of each node that one of them enters. Cycles are looked for once for all:
    /// edges in any number and order, the whole graph in reverse, too, cost no more than the nodes
    /// and edges there are.
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
    /// Stands on `cuGraphAddDependencies`, CUDA 10.0 (12.3 for other edges than full ones).
    ///
    /// # Errors
    /// A node of another graph or a removed one, twice the same node, an edge that is there or is
    /// given twice, edges that close a cycle, a kind of edge that leads from a kernel to a kernel
    /// only, or that the driver is too old for; or what the driver answers. The graph is unchanged
    /// then, or [broken](Error::Broken).
    #[doc(alias = "cuGraphAddDependencies")]
    pub fn add_edges(&self, edges: &[(&Node, &Node, EdgeKind)]) -> Result<()> {
        edges.iter().try_for_each(|(from, to, _)| self.own_ends(from, to))?;
        let mut guard = self.enter()?;
        let mut links = Vec::with_capacity(edges.len());
        for (from, to, kind) in edges {
            links.push(Link { from: guard.there(from)?, to: guard.there(to)?, kind: kind.plain() });
        }
        guard.add_links(&links)
    }

    /// Removes edges, of whatever kind. All are checked before anything is done, then removed by
    /// one driver call. The checks of more than one edge ask for the edges of each node that one of
    /// them enters.
    ///
    /// Stands on `cuGraphRemoveDependencies`, CUDA 10.0.
    ///
    /// # Errors
    /// A node of another graph ([`Error::Foreign`]) or a removed one ([`Error::Removed`]), no such
    /// edge ([`Error::NoEdge`]), an edge given twice ([`Error::EdgeTwice`]); or the driver's error,
    /// which removes no edges of a graph with memory nodes. The graph is unchanged then, or
    /// [broken](Error::Broken).
    #[doc(alias = "cuGraphRemoveDependencies")]
    pub fn remove_edges(&self, edges: &[(&Node, &Node)]) -> Result<()> {
        for (from, to) in edges {
            self.own(from)?;
            self.own(to)?;
        }
        let mut guard = self.enter()?;
        let mut ends = Vec::with_capacity(edges.len());
        for (from, to) in edges {
            ends.push((guard.there(from)?, guard.there(to)?));
        }
        guard.remove_links(&ends)
    }

    /// Gives an edge another kind. It is taken away and added again, so that it comes last in the
    /// order of the edges of both nodes; if it has the kind already, nothing is done.
    ///
    /// Stands on `cuGraphRemoveDependencies` and `cuGraphAddDependencies`, CUDA 10.0 (12.3 for
    /// other edges than full ones), each called once, after a query.
    ///
    /// # Errors
    /// No such edge; otherwise as for [`add_edges`](Self::add_edges) and
    /// [`remove_edges`](Self::remove_edges).
    pub fn set_edge_kind(&self, from: &Node, to: &Node, kind: EdgeKind) -> Result<()> {
        self.own(from)?;
        self.own(to)?;
        let mut guard = self.enter()?;
        let (from, to) = (guard.there(from)?, guard.there(to)?);
        let Some(before) = guard.kind_of(from, to)? else { return Err(guard.no_edge((from, to))) };
        let kind = kind.plain();
        match before == kind {
            true => Ok(()),
            false => guard.change(&[Link { from, to, kind: before }], &[Link { from, to, kind }]),
        }
    }

    fn own_ends(&self, from: &Node, to: &Node) -> Result<()> {
        self.own(from)?;
        self.own(to)?;
        if from == to { Err(Error::SelfEdge { node: from.name().into() }) } else { Ok(()) }
    }
}

impl GraphGuard<'_> {
    /// Adds edges between nodes that are there, none of them from a node to itself.
    fn add_links(&mut self, links: &[Link]) -> Result<()> {
        if let [link] = links {
            // The driver looks for one that is there, and if it does not like what it sees, nothing
            // has been done.
            let done = self.change(&[], links);
            let refused = done.as_ref().is_err_and(is_invalid_value);
            return match refused && matches!(self.kind_of(link.from, link.to), Ok(Some(_))) {
                true => Err(self.duplicate(link.ends())),
                false => done,
            };
        }
        let ends: Vec<Ends> = links.iter().map(Link::ends).collect();
        self.ensure_once(&ends)?;
        let there = self.kinds_of(&ends)?;
        if let Some(place) = there.iter().position(Option::is_some) {
            return Err(self.duplicate(ends[place]));
        }
        self.change(&[], links)
    }

    /// Takes edges away between nodes that are there.
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
            Some((from, to)) => Err(Error::EdgeTwice { from: self.name(*from), to: self.name(*to) }),
            None => Ok(()),
        }
    }

    fn duplicate(&self, (from, to): Ends) -> Error {
        Error::DuplicateEdge { from: self.name(from), to: self.name(to) }
    }

    pub(crate) fn no_edge(&self, (from, to): Ends) -> Error {
        Error::NoEdge { from: self.name(from), to: self.name(to) }
    }
}

/// Whether the driver did not like an argument.
fn is_invalid_value(error: &Error) -> bool {
    let code = CUresult::CUDA_ERROR_INVALID_VALUE;
    matches!(error, Error::Handles(cuda_handles::Error::Driver { code: answered, .. }) if *answered == code)
}
