//! Graphs shared with other code: raw handles lent, adopted and taken over.

pub(crate) mod driver_params;
pub(crate) mod raw_handle_map;
pub(crate) mod read_graph;
pub(crate) mod read_node;

use std::sync::Arc;

use cuda_handles::{Context, GraphExecHandle, GraphHandle, Owner, WrongContext};
use cuda_sys::{CUgraph, CUgraphNode};

use crate::error::wrong_context::ensure;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::interop::raw_handle_map::{known, share};
use crate::state::GraphState;
use crate::state::guard::GraphGuard;
use crate::state::ids::SubgraphId;
use crate::state::lent_log::LentLog;

impl Graph {
    /// The driver's own graph, for calls that only read it.
    ///
    /// Not to be changed, cloned or instantiated, for which there is [`lend`](Self::lend); good
    /// while the graph lives. Calls on a graph, reading ones included, must not overlap with others
    /// on it or on a graph that it is embedded in, this library's among them.
    ///
    /// # Errors
    /// The graph is gone with the node that it was embedded in, or was moved; or the context is
    /// lost.
    pub fn as_raw(&self) -> Result<CUgraph> {
        Ok(self.enter()?.raw())
    }

    /// Lends the driver's own graph to other code, which may clone it, embed clones of it, and make
    /// executables of it.
    ///
    /// From now on the graph also retains everything that its nodes use, by one user object of the
    /// driver. So what other code makes of the graph keeps that as well, and runs when every handle
    /// here is gone. Nobody knows what was made of the graph when. Therefore **a lent graph lets go
    /// of nothing**: whatever a node used since stays alive as long as the graph or anything made of
    /// it, also once the node is removed or has other parameters. A graph that is embedded in this
    /// one is lent by itself before other code clones it. (Drivers embed no clone of a graph that is
    /// itself embedded in a node.)
    ///
    /// Other code keeps to these rules:
    /// 1. It does not change the graph: it adds, changes and removes no nodes and edges, and it
    ///    neither destroys the graph nor moves it into a node.
    /// 2. Its calls on the graph do not overlap with other calls on it or on a graph that it is
    ///    embedded in, this library's calls among them.
    /// 3. It holds [`alone`](cuda_handles::clones::alone) over calls that clone or embed the graph,
    ///    or destroy a clone: the driver does not guard what links a clone with its original, and
    ///    crashes.
    ///
    /// An executable that other code makes does not wait for the streams on which memory was
    /// allocated; an executable of this library does by itself.
    ///
    /// A graph with conditional nodes can have one executable at a time. If an executable made here
    /// was dropped before this call, it is destroyed now, for which the driver waits for all work
    /// of the device. After a later drop somebody [drains](cuda_handles::reaper::drain).
    ///
    /// Lending again gives the same value. Calls `cuUserObjectCreate` and `cuGraphRetainUserObject`
    /// (CUDA 11.3).
    ///
    /// # Errors
    /// The driver's error; or [`Error::NeedsHost`], if the graph has a loop or branch for which the
    /// driver has no node. The graph is not lent then.
    #[doc(alias = "cuGraphRetainUserObject")]
    pub fn lend(&self) -> Result<CUgraph> {
        let (raw, executable) = {
            let mut guard = self.enter()?;
            guard.retain(self.subgraph())?;
            (guard.raw(), guard.executable.clone())
        };
        if executable.strong_count() > 0 {
            // Where that is not permitted, the graph is lent all the same, and somebody drains
            // before other code makes an executable. Beside work the reaper does it once there is
            // none.
            let _ = GraphExecHandle::destroy_waiting(self.context(), &executable);
        }
        Ok(raw)
    }

    /// The graph behind a raw value.
    ///
    /// If this library made the graph, has adopted it, or has it in a node, the result is that
    /// graph. Otherwise the graph is **adopted**: its nodes and edges, and those of the graphs
    /// embedded in it, are read now. The result does not own it.
    ///
    /// An adopted graph is a snapshot. Other code does not change the graph while a handle of it
    /// lives. After other code has changed it, drop all handles and adopt it again. A query that
    /// meets a node which was not there is [`Error::UnknownNode`].
    ///
    /// Each node that is read becomes a [`Node`] of its type, as far as the driver tells what the
    /// node does, and else of the kind [`Other`](crate::NodeKind::Other). From CUDA 13.2 on drivers
    /// tell the class and the bodies of conditional nodes. What the nodes use is not kept, except
    /// for kernels and events that this library has; see [`from_raw_with`](Self::from_raw_with).
    ///
    /// The graph is [lent](Self::lend) as soon as this library gives one of its nodes something to
    /// keep: a new node, other parameters, or an owner ([`Node::keep`]). From then on the graph
    /// itself retains what such nodes use, also when no handle is left. That takes two driver calls
    /// more, once.
    ///
    /// A driver does not tell whether a graph is embedded in a node. So adopt the outer graph first:
    /// then the result for the inner one is the [embedded](crate::ChildGraphNode::embedded) graph.
    /// A graph that was adopted by itself passes for a graph of its own, and adopting the graph that
    /// it lies in is [`Error::AdoptedAlone`] until every handle of the inner one is gone.
    ///
    /// # Safety
    /// - `raw` is a graph whose work is of `context`, and not a body of a conditional node.
    /// - While a handle of it, of its nodes, of its conditions or of the graphs embedded in it
    ///   lives, other code neither destroys nor changes it, and other code's calls on it do not
    ///   overlap with this library's. Executables that this library made of it may live on.
    /// - What its nodes use lives as long as they do, and as any executable or clone made of it.
    /// - Other code that clones it, embeds it or destroys it holds
    ///   [`alone`](cuda_handles::clones::alone) over the call.
    ///
    /// # Errors
    /// [`WrongContext`](cuda_handles::WrongContext), if the graph is known and of another context;
    /// [`Error::AdoptedAlone`]; or the driver's error.
    pub unsafe fn from_raw(context: &Context, raw: CUgraph) -> Result<Self> {
        // SAFETY: as the caller promises.
        unsafe { Self::adopted(context, raw, None) }
    }

    /// [`from_raw`](Self::from_raw) with an owner of the graph and of what its nodes use. The owner
    /// is kept, once however often it is given, as long as any handle of the graph lives, and by
    /// every executable and clone that this library makes. The graph itself does not retain it, as
    /// it may own the graph.
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

    /// Takes over a graph of other code. It is destroyed with the last handle.
    ///
    /// # Safety
    /// - `raw` is a graph whose work is of `context`. It has no other owner, now or later, and is
    ///   neither a body nor an embedded graph.
    /// - No other thread asks for the graph by its raw value before this returns.
    /// - What its nodes use lives as long as they do, and as any executable or clone made of it.
    /// - Other code that makes or destroys clones of it holds
    ///   [`alone`](cuda_handles::clones::alone) over the call.
    ///
    /// # Errors
    /// [`Error::KnownAlready`], if there are handles of the graph here; [`Error::AdoptedAlone`], if
    /// a graph that lies in it was adopted before; or the driver's error. The graph is not taken
    /// over then.
    #[doc(alias = "cuGraphDestroy")]
    pub unsafe fn from_raw_owned(context: &Context, raw: CUgraph) -> Result<Self> {
        context.ensure_usable()?;
        // SAFETY: as the caller promises.
        let there = unsafe { GraphHandle::from_raw(context, raw) }?;
        if there.is_owned() || known(&there).is_some() {
            return Err(Error::KnownAlready { raw: raw.addr() });
        }
        // SAFETY: as the caller promises.
        let handle = unsafe { GraphHandle::from_raw_owned(context, raw) };
        let graph = Self::of(handle, GraphState::default());
        let read = graph.enter().and_then(|mut guard| guard.read_graph(SubgraphId::ROOT));
        if let Err(error) = read {
            // SAFETY: the only handle is dropped unused: nobody asked for the graph by its raw
            // value meanwhile, as the caller promises.
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
            let graph = match known(&handle) {
                Some(known) => known,
                None if handle.is_owned() => Self::of(handle, GraphState::unread()),
                None => share(raw, Self::of(handle, GraphState::adopted())),
            };
            let found = graph.context();
            let wrong = || WrongContext::new("the graph known here", found, "the context given", context);
            ensure(context, found, wrong)?;
            match graph.take_in(&keep) {
                // It was moved, or went, since it was found: it is looked up anew, and the registry
                // has that by now.
                Err(Error::GraphMoved | Error::GraphRemoved) => {}
                result => return result.map(|()| graph),
            }
        }
    }

    /// Keeps an owner that is given with the graph, and reads its nodes unless that was done. Several
    /// threads may find a new graph at once.
    fn take_in(&self, keep: &Option<Owner>) -> Result<()> {
        let mut guard = self.enter()?;
        if let Some(owner) = keep {
            guard.keep_given(owner.clone());
        }
        if guard.is_unread() { guard.read_graph(SubgraphId::ROOT) } else { Ok(()) }
    }
}

impl GraphGuard<'_> {
    /// Lets a graph of the hierarchy retain what its nodes use, unless it does so already.
    fn retain(&mut self, subgraph: SubgraphId) -> Result<()> {
        if self.about(subgraph).is_some_and(|about| about.lent.is_some()) {
            return Ok(());
        }
        self.ensure_no_place_holders()?;
        let raw = self.graph_at(subgraph)?;
        let handle = match subgraph.is_root() {
            true => self.hierarchy().handle().clone(),
            // SAFETY: the embedded graph lives as long as the lock is held, and the handle is not
            // kept.
            false => unsafe { GraphHandle::from_raw(self.context(), raw) }?,
        };
        let lent = LentLog::new(self.context(), &handle, self.owners_within(subgraph))?;
        self.lend(subgraph, Arc::new(lent));
        Ok(())
    }

    /// To be called before nodes get owners: a graph of other code may outlive the table that keeps
    /// these.
    #[inline]
    pub(crate) fn retain_if_adopted(&mut self) -> Result<()> {
        if self.is_to_be_lent() { self.retain(SubgraphId::ROOT) } else { Ok(()) }
    }
}

impl Node {
    /// The driver's own node, for calls that only read it; as for [`Graph::as_raw`].
    ///
    /// # Errors
    /// The node was removed, its graph moved, or the context is lost.
    pub fn as_raw(&self) -> Result<CUgraphNode> {
        let guard = self.graph().enter()?;
        guard.record(self.id()).map(|record| record.raw.0).ok_or_else(|| self.removed())
    }
}
