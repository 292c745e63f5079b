//! Graphs shared with other code: raw values lent and adopted.

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

    /// The driver's own graph, for other code that clones it, makes executables of it, embeds
    /// clones of it, or adds nodes and edges.
    ///
    /// From now on the graph also retains everything that its nodes use, by one user object of the
    /// driver. So what other code makes of it keeps that, and runs when every handle here is gone.
    /// Since nobody knows what was made of it when, **what a node uses stays alive from now on as
    /// long as the graph or anything made of it does**, also once the node is removed or has other
    /// parameters. Of a graph that is embedded in this one, other code makes clones only after that
    /// graph was lent by itself. (Drivers embed no clone of a graph that is itself embedded in a
    /// node.)
    ///
    /// What other code has to see to:
    /// - Its calls on the graph do not overlap with others on it or on one that it is embedded in,
    ///   this library's among them.
    /// - It holds [`alone`](cuda_handles::clones::alone) over calls that clone or embed the graph,
    ///   remove nodes, or destroy what was cloned from it: the driver does not guard what links a
    ///   clone with its original, and crashes.
    /// - It neither destroys the graph nor moves it into a node, and it destroys no nodes that were
    ///   added through this library. What its own nodes use lives as long as any executable made of
    ///   the graph, by this library too.
    /// - It gives no node that was seen here another kernel, without a [`refresh`](Self::refresh)
    ///   before the next use.
    ///
    /// Nodes that it added are found by [`nodes`](Self::nodes) and all other queries. After it has
    /// removed nodes, added edges, or put other graphs into nodes, [`refresh`](Self::refresh) looks
    /// anew, before the graph is used here again. Until then handles of the removed nodes stand for
    /// nodes that are not there, of which a driver may make anything. A driver gives the address of
    /// a removed node to a new one: if that one is added through this library, the removed one is
    /// recognised as such at once; if other code adds it, by the refresh, provided that it is of
    /// another type. **One of the same type cannot be told from the removed one**, so that handles
    /// and names of the old node become those of the new one: refresh between the two.
    ///
    /// What other code makes of it runs in the order of the streams on which the memory was
    /// allocated, which an executable of this library waits for by itself.
    ///
    /// Of a graph with conditional nodes other code makes an executable once there is none here:
    /// one that was made and dropped before is destroyed now, for which the driver waits for all
    /// work of the device; after one that is dropped later somebody
    /// [drains](cuda_handles::reaper::drain).
    ///
    /// Lending again gives the same value. Stands on `cuUserObjectCreate` and
    /// `cuGraphRetainUserObject`, CUDA 11.3.
    ///
    /// # Errors
    /// What the driver answers, or there is a loop or branch that the driver has no node for
    /// ([`Error::NeedsHost`]); the graph is not lent then.
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

    /// The graph behind a raw value: the one that this library knows, if it made, adopted or lent
    /// it or has it in a node, or else one that does not own it.
    ///
    /// Of a graph that is not known each node becomes a [`Node`] of its type, as far as the driver
    /// tells what it does, and else of the kind [`Other`](crate::NodeKind::Other). Of conditional
    /// nodes it tells their class and bodies from CUDA 13.2 on. What the nodes use is not kept,
    /// except for kernels and events that this library has; see
    /// [`from_raw_with`](Self::from_raw_with).
    ///
    /// The first time that a node is added through this library, or given other parameters or more
    /// to [keep](Node::keep), the graph is [lent](Self::lend): from then on it retains what such
    /// nodes use itself, also when no handle is left, and lets go of nothing of that before its
    /// end. That takes two driver calls more.
    ///
    /// A driver does not tell whether a graph is embedded in a node. If it is, and the graph that
    /// it lies in is known here with that node, then the result is the
    /// [embedded](crate::ChildGraphNode::embedded) one. So the outer graph comes first; if it is
    /// known already, a [`refresh`](Self::refresh) shows it the node. Otherwise the result passes
    /// for a graph of its own: [`parent`](Self::parent) says `None`, what drivers refuse for
    /// embedded graphs is left to them to refuse, and the graph that it lies in is an error
    /// ([`Error::AdoptedAlone`]) until every handle of this one and of its nodes is gone.
    ///
    /// # Safety
    /// - `raw` is a graph whose work is of `context`, and not a body of a conditional node.
    /// - It is destroyed only after every handle of it, of its nodes, of its conditions and of the
    ///   graphs embedded in it is gone. Executables that this library made of it may live on. What
    ///   its nodes use lives as long as they do, and as any executable or clone made of it.
    /// - Other code's calls on it do not overlap with this library's, and it removes no nodes that
    ///   were seen here without a [`refresh`](Self::refresh) before the next use, nor gives them
    ///   other kernels; see [`lend`](Self::lend). If it lies in a graph that is not known here,
    ///   that goes for calls on all graphs in there.
    /// - Other code that clones it, embeds it, removes nodes of it or destroys it holds
    ///   [`alone`](cuda_handles::clones::alone) over the call.
    ///
    /// # Errors
    /// The graph is known and of another context; a graph that lies in it was adopted before
    /// ([`Error::AdoptedAlone`]); or what the driver answers.
    pub unsafe fn from_raw(context: &Context, raw: CUgraph) -> Result<Self> {
        // SAFETY: as the caller promises.
        unsafe { Self::adopted(context, raw, None) }
    }

    /// The same as [`from_raw`](Self::from_raw), with an owner of the graph and of what its nodes
    /// use: it is kept as long as any handle of the graph, and by every executable and clone that
    /// this library makes. The graph itself does not retain it, lent or not: it may own the graph.
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
    /// - `raw` is a graph whose work is of `context`. It has no other owner, now or later, and is
    ///   no body and no embedded graph.
    /// - No other thread asks for the graph by its raw value before this returns.
    /// - What its nodes use lives as long as they do, and as any executable or clone made of it.
    /// - Other code that makes or ends clones of it holds [`alone`](cuda_handles::clones::alone)
    ///   over the call.
    ///
    /// # Errors
    /// There are handles of the graph here ([`Error::KnownAlready`]); a graph that lies in it was
    /// adopted before ([`Error::AdoptedAlone`]); or what the driver answers. The graph is not taken
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
