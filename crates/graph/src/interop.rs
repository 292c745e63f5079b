//! Graphs shared with other code: raw values lent and adopted.

use std::sync::Arc;

use cuda_handles::{Context, GraphHandle, Owner};
use cuda_sys::{CUgraph, CUgraphNode};

use crate::error::Result;
use crate::graph::Graph;
use crate::lent::Lent;
use crate::node::Node;
use crate::shared::{known, share, share_embedded};
use crate::table::Table;

impl Graph {
    /// The driver's own graph, for calls that only read it.
    ///
    /// Not to be changed, cloned or instantiated, for which there is [`lend`](Self::lend); good while the graph lives. Calls on a graph, reading
    /// ones included, must not overlap with others on it or on a graph that it is embedded in, this library's among them.
    ///
    /// # Errors
    /// The graph is gone with the node that it was embedded in, or was moved; or the context is lost.
    pub fn as_raw(&self) -> Result<CUgraph> {
        Ok(self.enter()?.raw())
    }

    /// The driver's own graph, for other code that clones it, makes executables of it, embeds clones of it, or adds nodes and edges.
    ///
    /// From now on the graph also retains everything that its nodes use, by one user object of the driver. So what other code makes of it
    /// keeps that, and runs when every handle here is gone. Since nobody knows what was made of it when, **what a node uses stays alive from
    /// now on as long as the graph or anything made of it does**, also once the node is removed or has other parameters. Of a graph that is
    /// embedded in this one, other code makes clones only after that graph was lent by itself.
    ///
    /// What other code has to see to:
    /// - Its calls on the graph do not overlap with others on it or on one that it is embedded in, this library's among them.
    /// - It destroys neither the graph nor nodes that were added through this library. What its own nodes use lives as long as any executable made
    ///   of the graph, by this library too. Such nodes are found by [`nodes`](Self::nodes) and all other queries; after it has removed some, or
    ///   added edges, [`refresh`](Self::refresh) looks anew, before the graph is used here again.
    /// - What it makes of the graph runs in the order of the streams on which the memory was allocated, which an executable of this library
    ///   waits for by itself.
    ///
    /// Lending again gives the same value. Stands on `cuUserObjectCreate` and `cuGraphRetainUserObject`, CUDA 11.3.
    ///
    /// # Errors
    /// What the driver answers; the graph is not lent then.
    #[doc(alias = "cuGraphRetainUserObject")]
    pub fn lend(&self) -> Result<CUgraph> {
        // Declared before the lock, so that nothing is dropped under it.
        let lent;
        let mut locked = self.enter()?;
        let raw = locked.raw();
        if locked.about(self.place()).is_some_and(|about| about.lent.is_some()) {
            return Ok(raw);
        }
        let handle = match self.place().is_root() {
            true => self.handle().clone(),
            // SAFETY: the embedded graph lives as long as the lock is held, and the handle is not kept.
            false => unsafe { GraphHandle::from_raw(self.context(), raw) }?,
        };
        lent = Arc::new(Lent::new(self.context(), &handle, locked.owners_within(self.place()))?);
        locked.lend(self.place(), Arc::clone(&lent));
        drop(locked);
        if !self.place().is_root() {
            share_embedded(raw, self);
        }
        Ok(raw)
    }

    /// The graph behind a raw value: the one that this library knows, if it made, adopted or lent it, or else one that does not own it.
    ///
    /// Of a graph that is not known each node becomes a [`Node`] of its type, as far as the driver tells what it does, and else of the kind
    /// [`Other`](crate::NodeKind::Other). What the nodes use is not kept, except for kernels and events that this library has; see
    /// [`from_raw_with`](Self::from_raw_with).
    ///
    /// # Safety
    /// - `raw` is a graph whose work is of `context`, and not a body of a conditional node. If it is embedded in a node of a graph that this library
    ///   knows, it was lent by itself; and no graph embedded in it is known here already.
    /// - It is destroyed only after every handle of it, of its nodes and of the graphs embedded in it is gone. What its nodes use lives as long
    ///   as they do, and as any executable or clone made of it.
    /// - What is added to it through this library is kept while a handle of it lives, or from a [`lend`](Self::lend) on: without that neither the graph nor
    ///   what is made of it runs once the last handle is gone.
    /// - Other code's calls on it do not overlap with this library's, and it removes no nodes that were seen here without a
    ///   [`refresh`](Self::refresh) before the next use.
    ///
    /// # Errors
    /// The graph is known and of another context, or what the driver answers.
    pub unsafe fn from_raw(context: &Context, raw: CUgraph) -> Result<Self> {
        // SAFETY: as the caller promises.
        unsafe { Self::adopted(context, raw, None) }
    }

    /// The same as [`from_raw`](Self::from_raw), with an owner of the graph and of what its nodes use: it is kept as long as any handle of the graph,
    /// and by every executable and clone.
    ///
    /// # Safety
    /// As for [`from_raw`](Self::from_raw), while `keep` is kept.
    ///
    /// # Errors
    /// As for [`from_raw`](Self::from_raw).
    pub unsafe fn from_raw_with(context: &Context, raw: CUgraph, keep: impl Into<Owner>) -> Result<Self> {
        // SAFETY: as the caller promises.
        unsafe { Self::adopted(context, raw, Some(keep.into())) }
    }

    /// Takes over a graph of other code: it is destroyed with the last handle.
    ///
    /// # Safety
    /// - `raw` is a graph whose work is of `context`. It has no other owner, now or later, and is no body and no embedded graph.
    /// - What its nodes use lives as long as they do, and as any executable or clone made of it.
    ///
    /// # Errors
    /// What the driver answers; the graph is not taken over then.
    #[doc(alias = "cuGraphDestroy")]
    pub unsafe fn from_raw_owned(context: &Context, raw: CUgraph) -> Result<Self> {
        context.ensure_usable()?;
        // SAFETY: as the caller promises.
        let handle = unsafe { GraphHandle::from_raw_owned(context, raw) };
        let graph = Self::of(handle, Table::default());
        if let Err(error) = graph.adopt() {
            graph.handle().disown();
            return Err(error);
        }
        Ok(graph)
    }

    /// Looks at what other code has changed in a graph that was [lent](Self::lend) or [adopted](Self::from_raw): its nodes are seen here, and those
    /// that it removed are removed here, too. Embedded graphs are looked at as well.
    ///
    /// Stands on `cuGraphGetNodes` and `cuGraphGetEdges`, CUDA 10.0.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuGraphGetNodes")]
    pub fn refresh(&self) -> Result<()> {
        // Declared before the lock, so that nothing is dropped under it.
        let mut vanished = Default::default();
        let mut locked = self.enter()?;
        locked.take_vanished(self.place(), &mut vanished)?;
        locked.adopt(self.place())
    }

    /// # Safety
    /// As for [`from_raw`](Self::from_raw).
    unsafe fn adopted(context: &Context, raw: CUgraph, keep: Option<Owner>) -> Result<Self> {
        context.ensure_usable()?;
        // SAFETY: as the caller promises.
        let handle = unsafe { GraphHandle::from_raw(context, raw) }?;
        if let Some(known) = known(&handle) {
            context.ensure_same(known.context(), "the graph")?;
            keep.into_iter().for_each(|owner| known.keep(owner));
            return Ok(known);
        }
        let owned = handle.is_owned();
        let mut graph = Self::of(handle, Table::default());
        if !owned {
            graph = share(raw, graph);
        }
        keep.into_iter().for_each(|owner| graph.keep(owner));
        graph.adopt()?;
        Ok(graph)
    }

    fn adopt(&self) -> Result<()> {
        self.enter()?.adopt(self.place())
    }
}

impl Node {
    /// The driver's own node, for calls that only read it; as for [`Graph::as_raw`].
    ///
    /// # Errors
    /// The node was removed, its graph moved, or the context is lost.
    pub fn as_raw(&self) -> Result<CUgraphNode> {
        let locked = self.graph().enter()?;
        locked.row(self.id()).map(|row| row.raw.0).ok_or_else(|| self.removed())
    }
}
