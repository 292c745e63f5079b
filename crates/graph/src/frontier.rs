//! The frontier: where the next nodes are added, and the one way in which they are.

use std::sync::Arc;

use cuda_handles::{Allocation, Element, Owner, Slice};
use cuda_sys::{CUgraphEdgeData, CUgraphNode, CUgraphNodeParams, Call};
use smallvec::SmallVec;

use crate::detail::Detail;
use crate::edge::EdgeKind;
use crate::error::{Error, Result};
use crate::graph::{Graph, Locked};
use crate::kind::NodeKind;
use crate::node::Node;
use crate::table::{NodeId, Owners};

/// A point of a graph at which nodes are added: each starts when all nodes of the frontier have ended, or as far as the
/// [kind of edge](EdgeKind) says.
///
/// Any number of nodes can be added at one frontier; they do not wait for each other. Each add is one driver call.
#[derive(Clone, Debug)]
#[must_use = "a frontier does nothing by itself; add nodes at it"]
pub struct Frontier<'g> {
    graph: &'g Graph,
    after: SmallVec<[(NodeId, EdgeKind); 4]>,
    /// Whether all edges are full ones.
    full: bool,
}

impl Graph {
    /// The frontier of nodes that wait for nothing.
    pub fn root(&self) -> Frontier<'_> {
        Frontier { graph: self, after: SmallVec::new(), full: true }
    }

    /// The frontier of nodes that wait for all of `nodes`. One given twice counts once.
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
    /// A node of another graph, or one that was removed.
    pub fn after<const N: usize>(&self, nodes: [&Node; N]) -> Result<Frontier<'_>> {
        self.after_all(nodes)
    }

    /// The same as [`after`](Self::after) for any number of nodes.
    ///
    /// # Errors
    /// A node of another graph, or one that was removed.
    pub fn after_all<'n>(&self, nodes: impl IntoIterator<Item = &'n Node>) -> Result<Frontier<'_>> {
        self.after_edges(nodes.into_iter().map(|node| (node, EdgeKind::Full)))
    }

    /// The frontier of nodes that wait for each of `nodes` as far as the kind of edge says. A node given twice counts once.
    ///
    /// # Errors
    /// A node of another graph, or one that was removed; a node given twice with different kinds; an edge from a kernel to a kernel that does not
    /// leave one.
    pub fn after_edges<'n>(
        &self,
        nodes: impl IntoIterator<Item = (&'n Node, EdgeKind)>,
    ) -> Result<Frontier<'_>> {
        let mut frontier = self.root();
        let mut seen = Seen::default();
        for (node, kind) in nodes {
            if node.graph() != self {
                return Err(Error::Foreign { node: node.name().into() });
            }
            if node.is_removed() {
                return Err(node.removed());
            }
            if kind != EdgeKind::Full {
                frontier.full = false;
                ensure_kernel(node, kind)?;
            }
            if seen.is_new(&frontier.after, node.id()) {
                frontier.after.push((node.id(), kind));
            } else if !frontier.after.contains(&(node.id(), kind)) {
                return Err(Error::DuplicateEdge { from: node.name().into(), to: "the new node".into() });
            }
        }
        Ok(frontier)
    }
}

fn ensure_kernel(node: &Node, kind: EdgeKind) -> Result<()> {
    match node.kind() {
        NodeKind::Kernel => Ok(()),
        _ => Err(Error::EdgeKind { kind, from: node.name().into() }),
    }
}

/// Finds nodes given twice without comparing all with all.
#[derive(Default)]
struct Seen(std::collections::HashSet<NodeId>);

impl Seen {
    const FEW: usize = 16;

    fn is_new(&mut self, before: &[(NodeId, EdgeKind)], id: NodeId) -> bool {
        if before.len() < Self::FEW {
            return !before.iter().any(|(known, _)| *known == id);
        }
        if self.0.is_empty() {
            self.0.extend(before.iter().map(|(known, _)| known));
        }
        self.0.insert(id)
    }
}

impl Node {
    /// The frontier of nodes that wait for this one.
    ///
    /// If the node has been removed, adding there is the error [`Error::Removed`].
    #[inline]
    pub fn then(&self) -> Frontier<'_> {
        let after = SmallVec::from_slice(&[(self.id(), EdgeKind::Full)]);
        Frontier { graph: self.graph(), after, full: true }
    }
}

impl<'g> Frontier<'g> {
    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// Whether a memset or memcpy node can be about this memory.
    pub(crate) fn usable<T: Element>(
        &self,
        role: &'static str,
        what: &'static str,
        slice: &Slice<'_, T>,
    ) -> Result<()> {
        if slice.size_bytes() == 0 {
            return Err(Error::NoElements { what });
        }
        self.of_this_context(role, slice.allocation().context())
    }

    pub(crate) fn of_this_context(&self, what: &'static str, context: &cuda_handles::Context) -> Result<()> {
        Ok(self.graph.context().ensure_same(context, what)?)
    }

    /// Adds a node. All that can fail comes before the driver call, and nothing after it.
    pub(crate) fn add(&self, detail: Detail, owners: Owners, params: &mut CUgraphNodeParams) -> Result<Node> {
        self.add_with(detail, owners, params, |_, _| Ok(()))
    }

    /// Adds a node and finishes it by further calls. If one of these fails, the node is taken out again.
    pub(crate) fn add_with(
        &self,
        detail: Detail,
        owners: Owners,
        params: &mut CUgraphNodeParams,
        finish: impl FnOnce(&Locked<'_>, CUgraphNode) -> Result<()>,
    ) -> Result<Node> {
        // As arguments, `detail` and `owners` are dropped after the lock on every way out.
        let kind = detail.kind();
        let mut locked = self.graph.enter()?;
        let raw = self.add_raw(&mut locked, kind, params)?;
        if let Err(error) = finish(&locked, raw) {
            if !locked.undo(raw) {
                // It stays in the graph, so what it uses stays alive.
                locked.insert(self.graph.place(), raw, detail, owners);
            }
            return Err(error);
        }
        let id = locked.insert(self.graph.place(), raw, detail, owners);
        drop(locked);
        Ok(Node::new(self.graph.clone(), id, kind))
    }

    /// The driver call that adds a node. There is room for its row afterwards.
    pub(crate) fn add_raw(
        &self,
        locked: &mut Locked<'_>,
        kind: NodeKind,
        params: &mut CUgraphNodeParams,
    ) -> Result<CUgraphNode> {
        let mut after = SmallVec::<[CUgraphNode; 8]>::with_capacity(self.after.len());
        for &(id, _) in &self.after {
            match locked.row(id) {
                Some(row) => after.push(row.raw.0),
                None => return Err(Error::Removed { node: format!("node#{}", id.number).into() }),
            }
        }
        locked.reserve(self.graph.place());
        if !self.full {
            return self.add_raw_with_kinds(locked, kind, &after, params);
        }
        let mut raw = core::ptr::null_mut();
        let dependencies = if after.is_empty() { core::ptr::null() } else { after.as_ptr() };
        // SAFETY: graph and dependencies are live, as the table says; the lock is held; the parameters are complete for their type, and
        // what they point to outlives the call.
        let result = unsafe {
            locked.driver().cuGraphAddNode(&raw mut raw, locked.raw(), dependencies, after.len(), params)
        };
        locked.answer(Call::cuGraphAddNode, result)?;
        Ok(raw)
    }

    #[cold]
    fn add_raw_with_kinds(
        &self,
        locked: &Locked<'_>,
        kind: NodeKind,
        after: &[CUgraphNode],
        params: &mut CUgraphNodeParams,
    ) -> Result<CUgraphNode> {
        if kind != NodeKind::Kernel
            && let Some((from, kind)) = self.after.iter().find(|(_, kind)| *kind != EdgeKind::Full)
        {
            let from = locked.row(*from).map(|row| row.display_name(*from)).unwrap_or_default();
            return Err(Error::EdgeKind { kind: *kind, from: from.into() });
        }
        let kinds: SmallVec<[CUgraphEdgeData; 8]> = self.after.iter().map(|(_, kind)| kind.data()).collect();
        let mut raw = core::ptr::null_mut();
        // SAFETY: as in `add_raw`; there are as many kinds as dependencies.
        let result = unsafe {
            locked.driver().cuGraphAddNode_v12030(
                &raw mut raw,
                locked.raw(),
                after.as_ptr(),
                kinds.as_ptr(),
                after.len(),
                params,
            )
        };
        locked.answer(Call::cuGraphAddNode_v12030, result.map_err(cuda_handles::Error::from)?)?;
        Ok(raw)
    }
}

impl Locked<'_> {
    /// Takes out a node that was added just now and that nobody knows. False if it had to stay.
    pub(crate) fn undo(&self, raw: CUgraphNode) -> bool {
        // SAFETY: the node is live, and nobody knows it.
        unsafe { self.driver().cuGraphDestroyNode(raw) }.is_success()
    }
}

pub(crate) fn owners_of<const N: usize>(allocations: [&Arc<Allocation>; N]) -> Owners {
    allocations.into_iter().map(|allocation| Owner::Allocation(Arc::clone(allocation))).collect()
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
                let new = seen.is_new(&kept, id(index));
                assert_eq!(new, round == 0);
                if new {
                    kept.push((id(index), EdgeKind::Full));
                }
            }
        }
        assert_eq!(kept.len(), 40);
    }
}
