//! Changing edges: some are removed and others added, all or none.
//!
//! The driver processes a list of edges one by one and stops at the first bad one. Therefore
//! everything is checked first, except where a single edge is concerned and the driver checks it
//! itself. The driver never checks for cycles. Edges are removed before others are added: a graph
//! with memory nodes refuses that, and then nothing has changed.

use cuda_sys::{CUgraphNode, Call, Driver};
use smallvec::SmallVec;

use crate::edge::kind_query::Ends;
use crate::edge_kind::EdgeKind;
use crate::error::{EdgeError, Error, Result};
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::owners::Owners;

/// An edge between two existing nodes.
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

/// An edge between raw nodes.
type RawLink = (CUgraphNode, CUgraphNode, EdgeKind);

/// Groups edges by kind, in the order in which the kinds first occur.
fn by_kind(edges: impl Iterator<Item = Result<RawLink>>) -> Result<SmallVec<[OfOneKind; 1]>> {
    let mut groups: SmallVec<[OfOneKind; 1]> = SmallVec::new();
    for edge in edges {
        let (from, to, kind) = edge?;
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
    Ok(groups)
}

impl GraphGuard<'_> {
    /// Removes existing edges and adds others, which must not exist otherwise. At most one driver
    /// call to remove and one for each kind of edge to add; queries only if an edge goes against
    /// the topological order.
    ///
    /// # Errors
    /// [`EdgeError::EdgeKind`], [`EdgeError::Cycle`], or the driver's error. Nothing has changed
    /// then, or the hierarchy is [broken](Error::Broken).
    pub(crate) fn change(&mut self, remove: &[Link], add: &[Link]) -> Result<()> {
        add.iter().try_for_each(|link| self.ensure_possible(link))?;
        let labels = self.plan(remove, add)?;
        if let Err(error) = self.unlink(remove) {
            // A single edge is removed or not.
            return Err(if remove.len() > 1 { self.restore_edges(error, remove, &[]) } else { error });
        }
        if let Err(error) = self.link(add) {
            let as_before = remove.is_empty() && add.len() == 1;
            return Err(if as_before { error } else { self.restore_edges(error, remove, add) });
        }
        self.changes.note_structure();
        self.relabel(labels);
        Ok(())
    }

    /// Refuses a kind of edge that the nodes or the driver do not support.
    fn ensure_possible(&self, link: &Link) -> Result<()> {
        if link.kind == EdgeKind::Full {
            return Ok(());
        }
        let is_kernel = |id| self.record(id).is_none_or(|record| record.node_params.kind().is_kernel());
        if !is_kernel(link.from) || !is_kernel(link.to) {
            return Err(Error::Edge(EdgeError::EdgeKind { kind: link.kind, from: self.name(link.from) }));
        }
        ensure_kinds(self.driver())
    }

    /// Adds edges. One driver call for each kind of edge; if one fails, the edges of the kinds
    /// before it have been added.
    pub(crate) fn link(&self, links: &[Link]) -> Result<()> {
        let raw = |link: &Link| Ok((self.raw_of(link.from)?, self.raw_of(link.to)?, link.kind));
        self.link_raw(links.iter().map(raw))
    }

    /// [`link`](Self::link) for raw nodes. If one of them is an error, no edge is added.
    pub(crate) fn link_raw(&self, edges: impl Iterator<Item = Result<RawLink>>) -> Result<()> {
        // Some drivers give all edges of a call the kind of the first.
        by_kind(edges)?.iter().try_for_each(|group| self.call_link(group))
    }

    /// Adds edges of one kind. One driver call.
    fn call_link(&self, OfOneKind { kind, from, to }: &OfOneKind) -> Result<()> {
        let (driver, count) = (self.driver(), from.len());
        let (from, to) = (from.as_ptr(), to.as_ptr());
        if *kind == EdgeKind::Full {
            // SAFETY: the nodes are live and in this graph, as their records say, and the lock is
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

    /// Removes edges of any kind. One driver call, or none for no edges.
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
        // Without kinds the driver removes any edge; given kinds, it may refuse a mix of them.
        // SAFETY: as for adding.
        let result = unsafe {
            self.driver().cuGraphRemoveDependencies(self.raw(), from.as_ptr(), to.as_ptr(), links.len())
        };
        self.answer(Call::cuGraphRemoveDependencies, result)
    }

    /// Restores the edges after a change failed on its way. If that fails as well, the hierarchy is
    /// broken.
    #[cold]
    pub(crate) fn restore_edges(&mut self, cause: Error, removed: &[Link], added: &[Link]) -> Error {
        // If the context is lost, there is nothing to restore.
        if self.context().ensure_usable().is_err() {
            return cause;
        }
        // Restored edges may be in another order.
        self.changes.note_structure();
        let right = self.compare_edges(removed, added).and_then(|(missing, present)| {
            self.unlink(&present)?;
            self.link(&missing)
        });
        match right {
            Ok(()) => cause,
            Err(undo) => self.broken(cause, undo, Owners::new()),
        }
    }

    /// The removed edges that are missing, and the added edges that are present.
    fn compare_edges(&self, removed: &[Link], added: &[Link]) -> Result<(Vec<Link>, Vec<Link>)> {
        let ends: Vec<Ends> = removed.iter().chain(added).map(Link::ends).collect();
        // An edge whose kind changes is in both lists.
        let mut once = ends.clone();
        once.sort_unstable_by_key(|(from, to)| (from.number, to.number));
        once.dedup();
        let kinds: std::collections::HashMap<Ends, Option<EdgeKind>> =
            once.iter().copied().zip(self.kinds_of(&once)?).collect();
        let now = |link: &Link| kinds.get(&link.ends()).copied().flatten();
        let missing = removed.iter().filter(|link| now(link) != Some(link.kind));
        let present = added.iter().filter(|link| now(link) == Some(link.kind));
        Ok((missing.copied().collect(), present.copied().collect()))
    }
}

/// Refuses kinds of edges on drivers without them.
pub(crate) fn ensure_kinds(driver: &Driver) -> Result<()> {
    match driver.table().cuGraphAddDependencies_v12030 {
        Some(_) => Ok(()),
        None => Err(cuda_handles::Error::from(driver.missing(Call::cuGraphAddDependencies_v12030)).into()),
    }
}
