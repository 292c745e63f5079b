//! Taking edges away and adding others, as one change that is made or not.
//!
//! The driver goes through a list of edges one by one and stops at the first bad one, so that all
//! are checked before. It closes cycles without a word; what it does check here is left to it where
//! only one edge is concerned. Edges are taken away first, since a graph with memory nodes refuses
//! that: so nothing has changed then.

use cuda_sys::{CUgraphNode, Call, Driver};
use smallvec::SmallVec;

use crate::edge::kind_query::Ends;
use crate::edge_kind::EdgeKind;
use crate::error::{Error, Result};
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::owners::Owners;

/// An edge between nodes that are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) kind: EdgeKind,
}

impl Link {
    pub(crate) fn ends(&self) -> Ends {
        (self.from, self.to)
    }
}

/// Edges of one kind in the driver's form.
struct OfOneKind {
    kind: EdgeKind,
    from: SmallVec<[CUgraphNode; 4]>,
    to: SmallVec<[CUgraphNode; 4]>,
}

/// One group for each kind that occurs, in the order in which the kinds come.
fn by_kind(edges: impl Iterator<Item = (CUgraphNode, CUgraphNode, EdgeKind)>) -> SmallVec<[OfOneKind; 1]> {
    let mut groups: SmallVec<[OfOneKind; 1]> = SmallVec::new();
    for (from, to, kind) in edges {
        let kind = kind.plain();
        match groups.iter_mut().find(|group| group.kind == kind) {
            Some(group) => {
                group.from.push(from);
                group.to.push(to);
            }
            None => groups.push(OfOneKind {
                kind,
                from: SmallVec::from_slice(&[from]),
                to: SmallVec::from_slice(&[to]),
            }),
        }
    }
    groups
}

impl GraphGuard<'_> {
    /// Takes edges away that are there, and adds others that are not there otherwise. At most one
    /// driver call to take away and one for each kind of edge to add, and queries only where edges
    /// go against the order.
    ///
    /// # Errors
    /// Ends that an edge of its kind cannot have, a cycle, or what the driver answers. Nothing has
    /// changed then, or the hierarchy is broken.
    pub(crate) fn change(&mut self, remove: &[Link], add: &[Link]) -> Result<()> {
        add.iter().try_for_each(|link| self.ensure_possible(link))?;
        let labels = self.plan(remove, add)?;
        if let Err(error) = self.unlink(remove) {
            // One edge alone is there or not.
            return Err(if remove.len() > 1 { self.restore_edges(error, remove, &[]) } else { error });
        }
        if let Err(error) = self.link(add) {
            let as_before = remove.is_empty() && add.len() == 1;
            return Err(if as_before { error } else { self.restore_edges(error, remove, add) });
        }
        self.relabel(labels);
        Ok(())
    }

    /// Refuses an edge of a kind that its ends or the driver cannot have.
    fn ensure_possible(&self, link: &Link) -> Result<()> {
        if link.kind == EdgeKind::Full {
            return Ok(());
        }
        let is_kernel = |id| self.record(id).is_none_or(|record| record.node_params.kind().is_kernel());
        if !is_kernel(link.from) || !is_kernel(link.to) {
            return Err(Error::EdgeKind { kind: link.kind, from: self.name(link.from) });
        }
        ensure_kinds(self.driver())
    }

    /// Adds edges. One driver call for each kind of edge that occurs; those of the kinds before one
    /// that fails are there then.
    pub(crate) fn link(&self, links: &[Link]) -> Result<()> {
        let mut edges = SmallVec::<[_; 4]>::with_capacity(links.len());
        for link in links {
            edges.push((self.raw_of(link.from)?, self.raw_of(link.to)?, link.kind));
        }
        self.link_raw(edges.into_iter())
    }

    /// Adds edges between raw nodes, as [`link`](Self::link).
    pub(crate) fn link_raw(
        &self,
        edges: impl Iterator<Item = (CUgraphNode, CUgraphNode, EdgeKind)>,
    ) -> Result<()> {
        // A driver may give all edges of a call the kind of the first.
        by_kind(edges).iter().try_for_each(|group| self.call_link(group))
    }

    /// Adds edges of one kind. One driver call.
    fn call_link(&self, OfOneKind { kind, from, to }: &OfOneKind) -> Result<()> {
        let (driver, count) = (self.driver(), from.len());
        let (from, to) = (from.as_ptr(), to.as_ptr());
        if *kind == EdgeKind::Full {
            // SAFETY: the nodes are live and of this graph, as the table says, and its lock is
            // held.
            let result = unsafe { driver.cuGraphAddDependencies(self.raw(), from, to, count) };
            return self.answer(Call::cuGraphAddDependencies, result);
        }
        let data = vec![kind.data(); count];
        // SAFETY: as above; there are as many kinds.
        let result =
            unsafe { driver.cuGraphAddDependencies_v12030(self.raw(), from, to, data.as_ptr(), count) };
        self.answer(Call::cuGraphAddDependencies_v12030, result.map_err(cuda_handles::Error::from)?)
    }

    /// Takes edges away, of whatever kinds. One driver call, or none for no edges.
    pub(crate) fn unlink(&self, links: &[Link]) -> Result<()> {
        if links.is_empty() {
            return Ok(());
        }
        let mut from = SmallVec::<[CUgraphNode; 4]>::with_capacity(links.len());
        let mut to = SmallVec::<[CUgraphNode; 4]>::with_capacity(links.len());
        for link in links {
            self.ensure_may_lose(link.from, "edges")?;
            from.push(self.raw_of(link.from)?);
            to.push(self.raw_of(link.to)?);
        }
        // A driver may refuse edges of several kinds if it is told these; without, it takes away
        // any. SAFETY: as for adding.
        let result = unsafe {
            self.driver().cuGraphRemoveDependencies(self.raw(), from.as_ptr(), to.as_ptr(), links.len())
        };
        self.answer(Call::cuGraphRemoveDependencies, result)
    }

    /// Makes the edges what they were before a change that failed on its way. Without success the
    /// hierarchy is broken.
    #[cold]
    pub(crate) fn restore_edges(&mut self, cause: Error, removed: &[Link], added: &[Link]) -> Error {
        // A lost context has no graphs to put right.
        if self.context().ensure_usable().is_err() {
            return cause;
        }
        let right = self.compare_edges(removed, added).and_then(|(gone, there)| {
            self.unlink(&there)?;
            self.link(&gone)
        });
        match right {
            Ok(()) => cause,
            Err(undo) => self.broken(cause, undo, Owners::new()),
        }
    }

    /// Which of the edges taken away are gone, and which of those added are there.
    fn compare_edges(&self, removed: &[Link], added: &[Link]) -> Result<(Vec<Link>, Vec<Link>)> {
        let ends: Vec<Ends> = removed.iter().chain(added).map(Link::ends).collect();
        // An edge that gets another kind is both.
        let mut once = ends.clone();
        once.sort_unstable_by_key(|(from, to)| (from.number, to.number));
        once.dedup();
        let kinds: std::collections::HashMap<Ends, Option<EdgeKind>> =
            once.iter().copied().zip(self.kinds_of(&once)?).collect();
        let now = |link: &Link| kinds.get(&link.ends()).copied().flatten();
        let gone = removed.iter().filter(|link| now(link) != Some(link.kind));
        let there = added.iter().filter(|link| now(link) == Some(link.kind));
        Ok((gone.copied().collect(), there.copied().collect()))
    }
}

/// Refuses kinds of edges where the driver has none.
pub(crate) fn ensure_kinds(driver: &Driver) -> Result<()> {
    match driver.table().cuGraphAddDependencies_v12030 {
        Some(_) => Ok(()),
        None => Err(cuda_handles::Error::from(driver.missing(Call::cuGraphAddDependencies_v12030)).into()),
    }
}
