//! Graphs shared with other code: raw handles lent, adopted and taken over.
//!
//! | | [lent](Graph::lend) | [adopted](Graph::from_raw) | [taken over](Graph::from_raw_owned) |
//! | --- | --- | --- | --- |
//! | made by | this library | other code | other code |
//! | destroyed by | this library | other code | this library |
//! | changed by | this library only | this library only, while a handle lives | this library only |
//! | instantiated and cloned by | both | both | this library; both, once lent |
//! | retains its nodes' owners | yes | once a node gets owners here | once lent |
//!
//! - A **lent** graph retains a [log](LentLog) of all owners that its nodes have ever had, since
//!   the library cannot know what other code made of the graph and when.
//! - An **adopted** graph is a snapshot: its nodes are read once ([`read_graph`]). It is lent as
//!   soon as one of its nodes gets owners here, since it may outlive the state that holds them.
//! - Adopted and embedded graphs are found by their raw values in [`raw_handle_map`]; graphs that
//!   this library owns are tied to their handles.

pub(crate) mod driver_params;
pub(crate) mod raw_handle_map;
pub(crate) mod read_graph;
pub(crate) mod read_node;

use std::sync::Arc;

use cuda_handles::{Context, GraphExecHandle, GraphHandle, Owner, WrongContext};
use cuda_sys::{CUgraph, CUgraphNode};

use crate::error::wrong_context::ensure;
use crate::error::{Error, InteropError, NodeError, Result};
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::interop::raw_handle_map::{find_graph, register_adopted};
use crate::state::GraphState;
use crate::state::guard::GraphGuard;
use crate::state::ids::SubgraphId;
use crate::state::lent_log::LentLog;

impl Graph {
    /// The driver's graph, for calls that only read it.
    ///
    /// Do not change, clone or instantiate it; for that there is [`lend`](Self::lend). The value is
    /// valid while the graph lives. Calls on a graph, including those that only read it, must not
    /// overlap with other calls on it or on a graph around it, including calls of this library.
    ///
    /// # Errors
    /// [`NodeError::GraphRemoved`], if the graph is gone with the node that it was embedded in;
    /// [`NodeError::GraphMoved`], if it was moved; or the context is lost.
    #[doc(alias = "CUgraph")]
    #[doc(alias = "cudaGraph_t")]
    pub fn as_raw(&self) -> Result<CUgraph> {
        Ok(self.enter_unread()?.raw())
    }

    /// Lends the driver's graph to other code, which may clone it, embed clones of it, and
    /// instantiate it.
    ///
    /// From now on the graph itself retains everything that its nodes use, through a user object.
    /// So whatever other code makes of the graph keeps that alive as well, and runs after every
    /// handle here is dropped. This library cannot know what other code makes of the graph and
    /// when. Therefore **a lent graph never releases anything**: whatever a node has used since
    /// stays alive as long as the graph or anything made of it, even after the node is removed or
    /// gets other parameters. Lend an embedded graph itself before other code clones it. (Drivers
    /// do not embed a clone of a graph that is itself embedded in a node.)
    ///
    /// Other code follows these rules:
    /// 1. It does not change the graph: it neither adds, changes nor removes nodes and edges, and
    ///    it neither destroys the graph nor moves it into a node.
    /// 2. Its calls on the graph do not overlap with other calls on it or on a graph around it,
    ///    including calls of this library.
    /// 3. It holds [`alone`](cuda_handles::clones::alone) over calls that clone or embed the graph,
    ///    or destroy a clone: the driver does not protect the links between a clone and its
    ///    original, and crashes.
    ///
    /// An executable made by other code does not wait for the streams on which memory was
    /// allocated; executables of this library do.
    ///
    /// A graph with conditional nodes allows one executable at a time. If an executable made here
    /// was dropped before this call, it is destroyed now, and for that the driver waits for all
    /// work of the device. After a later drop, [drain](cuda_handles::reaper::drain) before other
    /// code instantiates the graph.
    ///
    /// Lending again returns the same value. Calls `cuUserObjectCreate` and
    /// `cuGraphRetainUserObject` (CUDA 11.3).
    ///
    /// # Errors
    /// [`LoopError::NeedsHost`](crate::LoopError::NeedsHost), if the graph has a loop or branch for
    /// which the driver has no node; or the driver's error. The graph is not lent then.
    #[doc(alias = "cuGraphRetainUserObject")]
    #[doc(alias = "cudaGraphRetainUserObject")]
    #[doc(alias = "cuUserObjectCreate")]
    #[doc(alias = "cudaUserObjectCreate")]
    pub fn lend(&self) -> Result<CUgraph> {
        let (raw, executable) = {
            let mut guard = self.enter()?;
            guard.retain(self.subgraph())?;
            (guard.raw(), guard.executable.clone())
        };
        if executable.strong_count() > 0 {
            // If it may not be destroyed here, the graph is lent all the same, and the caller
            // drains before other code instantiates it. While work is in flight, the reaper
            // destroys the executable afterwards.
            let _ = GraphExecHandle::destroy_deferred(self.context(), &executable);
        }
        Ok(raw)
    }

    /// The graph behind a raw value.
    ///
    /// If this library made the graph, has adopted it, or knows it as an embedded graph, the result
    /// is that graph. Otherwise the graph is **adopted**: its nodes and edges, and those of the
    /// graphs embedded in it, are read now. The result does not own the driver's graph.
    ///
    /// An adopted graph is a snapshot. Other code does not change the graph while a handle of it
    /// lives. If it is to change the graph, drop all handles first, and adopt the graph again
    /// afterwards. A query that meets a node which was not read fails with
    /// [`InteropError::UnknownNode`].
    ///
    /// Each node becomes a [`Node`] of its type if the driver describes it in full, and of the kind
    /// [`Other`](crate::NodeKind::Other) if not. Conditional nodes are described from CUDA 13.2 on.
    /// The library keeps nothing of what the nodes use, except for kernels and events that it owns;
    /// see [`from_raw_with`](Self::from_raw_with).
    ///
    /// The graph is [lent](Self::lend) as soon as this library gives one of its nodes something to
    /// keep alive: with a new node, other parameters, or an owner ([`Node::keep`]). From then on
    /// the graph itself retains what such nodes use, even after every handle is dropped. That takes
    /// two more driver calls, once.
    ///
    /// A driver does not tell whether a graph is embedded in a node. Therefore adopt the outer
    /// graph first: then the result for the inner graph is the
    /// [embedded](crate::ChildGraphNode::embedded) graph. A graph that was adopted alone counts as
    /// a root graph, and adopting the graph around it fails with [`InteropError::AdoptedAlone`]
    /// until every handle of the inner graph is dropped.
    ///
    /// # Safety
    /// - `raw` is a live graph whose work belongs to `context`, and not a body of a conditional
    ///   node.
    /// - As long as a handle of the graph, of its nodes, of its conditions or of the graphs
    ///   embedded in it lives, other code neither destroys nor changes it, and other code's calls
    ///   on it do not overlap with calls of this library. Executables that this library made of it
    ///   may outlive it.
    /// - Everything that its nodes use lives as long as they do, and as long as any executable or
    ///   clone made of it.
    /// - Other code holds [`alone`](cuda_handles::clones::alone) over calls that clone, embed or
    ///   destroy it.
    ///
    /// # Errors
    /// [`WrongContext`](cuda_handles::WrongContext), if the graph is known here and of another
    /// context; [`InteropError::AdoptedAlone`]; or the driver's error.
    #[doc(alias = "adopt")]
    pub unsafe fn from_raw(context: &Context, raw: CUgraph) -> Result<Self> {
        // SAFETY: as the caller promises.
        unsafe { Self::adopted(context, raw, None) }
    }

    /// [`from_raw`](Self::from_raw) with an owner of the graph and of everything that its nodes
    /// use. The owner stays alive as long as any handle of the graph, and as long as any executable
    /// or clone that this library makes of it. An owner given again is kept once. The graph itself
    /// does not retain it, since the owner may own the graph.
    ///
    /// # Safety
    /// As for [`from_raw`](Self::from_raw), while `keep` is alive.
    ///
    /// # Errors
    /// As for [`from_raw`](Self::from_raw).
    pub unsafe fn from_raw_with(context: &Context, raw: CUgraph, keep: impl Into<Owner>) -> Result<Self> {
        // SAFETY: as the caller promises.
        unsafe { Self::adopted(context, raw, Some(keep.into())) }
    }

    /// Takes over a graph of other code. It is destroyed with its last handle.
    ///
    /// # Safety
    /// - `raw` is a live graph whose work belongs to `context`. It has no other owner, now or
    ///   later, and is neither a body nor an embedded graph.
    /// - No other thread looks the graph up by its raw value before this function returns.
    /// - Everything that its nodes use lives as long as they do, and as long as any executable or
    ///   clone made of it.
    /// - Other code holds [`alone`](cuda_handles::clones::alone) over calls that make or destroy
    ///   clones of it.
    ///
    /// # Errors
    /// [`InteropError::KnownAlready`], if a handle of the graph exists here;
    /// [`InteropError::AdoptedAlone`], if a graph embedded in it was adopted before; or the
    /// driver's error. The graph is not taken over then.
    #[doc(alias = "cuGraphDestroy")]
    #[doc(alias = "cudaGraphDestroy")]
    pub unsafe fn from_raw_owned(context: &Context, raw: CUgraph) -> Result<Self> {
        context.ensure_usable()?;
        // SAFETY: as the caller promises.
        let existing = unsafe { GraphHandle::from_raw(context, raw) }?;
        if existing.is_owned() || find_graph(&existing)?.is_some() {
            return Err(Error::Interop(InteropError::KnownAlready { raw: raw.addr() }));
        }
        // SAFETY: as the caller promises.
        let handle = unsafe { GraphHandle::from_raw_owned(context, raw) };
        let graph = Self::of(handle, GraphState::unread());
        let read = graph.enter().and_then(|mut guard| guard.read_graph(SubgraphId::ROOT));
        if let Err(error) = read {
            // SAFETY: the only handle is dropped unused: no other thread has looked the graph up by
            // its raw value, as the caller promises.
            unsafe { graph.handle().disown() };
            return Err(error);
        }
        Ok(graph)
    }

    /// # Safety
    /// As for [`from_raw`](Self::from_raw).
    unsafe fn adopted(context: &Context, raw: CUgraph, keep: Option<Owner>) -> Result<Self> {
        context.ensure_usable()?;
        loop {
            // SAFETY: as the caller promises.
            let handle = unsafe { GraphHandle::from_raw(context, raw) }?;
            let graph = match find_graph(&handle)? {
                Some(graph) => graph,
                None if handle.is_owned() => Self::of(handle, GraphState::unread()),
                None => register_adopted(raw, Self::of(handle, GraphState::adopted()))?,
            };
            let found = graph.context();
            let wrong = || WrongContext::new("the graph known here", found, "the context given", context);
            ensure(context, found, wrong)?;
            match graph.complete_adoption(&keep) {
                // The graph was moved or removed after it was found. The map of raw handles knows
                // by now, so look it up again.
                Err(Error::Node(NodeError::GraphMoved) | Error::Node(NodeError::GraphRemoved)) => {}
                result => return result.map(|()| graph),
            }
        }
    }

    /// Keeps an owner given with the graph, and reads the graph unless that was done before.
    /// Another thread that adopts the graph may have registered it and not read it yet.
    fn complete_adoption(&self, keep: &Option<Owner>) -> Result<()> {
        let mut guard = self.enter()?;
        if guard.is_unread() {
            guard.read_graph(SubgraphId::ROOT)?;
        }
        if let Some(owner) = keep {
            guard.keep_given(owner.clone());
        }
        Ok(())
    }
}

impl GraphGuard<'_> {
    /// Makes a graph of the hierarchy retain everything that its nodes use, unless it does already.
    fn retain(&mut self, subgraph: SubgraphId) -> Result<()> {
        if self.facts(subgraph).is_some_and(|facts| facts.lent.is_some()) {
            return Ok(());
        }
        self.ensure_no_placeholders()?;
        let raw = self.graph_at(subgraph)?;
        let handle = match subgraph.is_root() {
            true => self.hierarchy().handle().clone(),
            // SAFETY: the embedded graph lives as long as the lock is held, and the handle is
            // dropped before.
            false => unsafe { GraphHandle::from_raw(self.context(), raw) }?,
        };
        let lent = LentLog::new(self.context(), &handle, self.owners_within(subgraph))?;
        self.lend(subgraph, Arc::new(lent));
        Ok(())
    }

    /// To be called before nodes get owners: a graph of other code may outlive the state that holds
    /// these.
    #[inline]
    pub(crate) fn retain_if_adopted(&mut self) -> Result<()> {
        if self.needs_lending() { self.retain(SubgraphId::ROOT) } else { Ok(()) }
    }
}

impl Node {
    /// The driver's node, for calls that only read it; see [`Graph::as_raw`].
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed; [`NodeError::GraphMoved`], if its graph was
    /// moved; or the context is lost.
    #[doc(alias = "CUgraphNode")]
    #[doc(alias = "cudaGraphNode_t")]
    pub fn as_raw(&self) -> Result<CUgraphNode> {
        let guard = self.graph().enter()?;
        guard.record(self.id()).map(|record| record.raw.0).ok_or_else(|| self.removed())
    }
}
