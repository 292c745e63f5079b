//! A node of an executable: the common steps of its updates.

use core::fmt;
use core::ops::Deref;
use std::borrow::Cow;
use std::sync::Arc;

use cuda_handles::{Error as HandleError, MemoryKind, Owner};
use cuda_sys::{CUgraphNodeParams, CUresult, Call};

use crate::error::{Error, ParamError, Result, UpdateError};
use crate::exec::resources::Replaced;
use crate::exec::share::Brought;
use crate::exec::{GraphExec, Source};
use crate::graph::node::Node;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::owners::Owners;
use crate::state::params::NodeParams;

/// A node of an executable, to be changed for later launches. Made by [`GraphExec::node`].
///
/// Launches that are enqueued or running keep what they had, and no update waits for them. The
/// graph's own node stays as it is.
///
/// The executable keeps what an update brings, and lets go of it once a later update has replaced
/// it and the runs that may use it are over. What the graph's node had when the executable was made
/// stays with the executable.
///
/// Each update is one driver call.
#[must_use = "a node of an executable does nothing by itself"]
pub struct ExecNode<'e, N> {
    pub(super) exec: &'e mut GraphExec,
    pub(super) node: &'e N,
}

/// The new parameters of a node, with all that they use. An update leaves in it what it has
/// replaced. Declared before the guard, so that it is dropped after the lock on every path.
pub(super) struct NewParams<'p> {
    pub(super) node_params: NodeParams,
    pub(super) owners: Owners,
    pub(super) raw: &'p mut CUgraphNodeParams,
    replaced: Replaced,
}

impl<'p> NewParams<'p> {
    pub(super) fn new(node_params: NodeParams, owners: Owners, raw: &'p mut CUgraphNodeParams) -> Self {
        Self { node_params, owners, raw, replaced: Replaced::default() }
    }
}

impl GraphExec {
    /// The executable's counterpart of a node of its graph, or of a graph in one of the nodes.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, Result};
    /// # use cuda_handles::{Buffer, Stream};
    /// # fn example(
    /// #     graph: &Graph, stream: &Stream, x: &Buffer<f32>, y: &Buffer<f32>
    /// # ) -> Result<()> {
    /// let clear = graph.root().fill(x, 0.0)?;
    /// let mut exec = graph.instantiate()?;
    /// exec.launch(stream)?;
    /// exec.node(&clear).set(y, 1.0)?;
    /// exec.launch(stream)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn node<'e, N: Deref<Target = Node>>(&'e mut self, node: &'e N) -> ExecNode<'e, N> {
        ExecNode { exec: self, node }
    }

    /// Hands everything that updates have replaced to the [reaper](cuda_handles::reaper), which
    /// drops it once the runs up to now are over. Without this call that happens every 64 launches,
    /// or earlier if it holds 1 MiB of memory or an allocation finds none.
    ///
    /// If no handle of the stream of the last launch is left, the end of that launch is unknown.
    /// Then it happens after the next launch.
    pub fn release(&mut self) {
        self.owners.hand_over_retired();
    }

    /// Refuses a node that was not in the graph when this executable was made of it.
    fn ensure_has(&self, guard: &GraphGuard<'_>, node: &Node) -> Result<()> {
        let is_source = match &self.source {
            Source::Own(graph) => Arc::ptr_eq(graph.hierarchy(), guard.hierarchy()),
            Source::Adopted(hierarchy) => core::ptr::eq(hierarchy.as_ptr(), Arc::as_ptr(guard.hierarchy())),
        };
        if is_source && self.updates.has(node.id()) {
            return Ok(());
        }
        let node = guard.name(node.id());
        Err(UpdateError::NotInExecutable { node }.into())
    }

    /// The guard of the hierarchy of a node that can be updated.
    pub(super) fn enter<'n>(&self, node: &'n Node) -> Result<GraphGuard<'n>> {
        let guard = node.graph().enter()?;
        match self.ensure_updatable(&guard, node) {
            Ok(true) => Ok(guard),
            Ok(false) => {
                drop(guard);
                Err(node.removed())
            }
            Err(error) => Err(error),
        }
    }

    /// The guard of the hierarchy of a node of this executable.
    pub(super) fn enter_to_look<'n>(&self, node: &'n Node) -> Result<GraphGuard<'n>> {
        self.ensure_not_lent()?;
        let guard = node.graph().enter()?;
        if guard.record(node.id()).is_none() {
            drop(guard);
            return Err(node.removed());
        }
        self.ensure_has(&guard, node)?;
        Ok(guard)
    }

    /// Refuses a node that cannot be updated. False if it was removed.
    pub(super) fn ensure_updatable(&self, guard: &GraphGuard<'_>, node: &Node) -> Result<bool> {
        self.ensure_not_lent()?;
        if guard.record(node.id()).is_none() {
            return Ok(false);
        }
        self.ensure_has(guard, node)?;
        self.ensure_unbound(guard, node.id())?;
        Ok(true)
    }

    /// Refuses an executable that other code or kernels may launch at any time.
    pub(super) fn ensure_not_lent(&self) -> Result<()> {
        if self.owners.is_lent() { Err(UpdateError::Lent.into()) } else { Ok(()) }
    }

    /// Refuses a node that gets values from graph parameters.
    pub(super) fn ensure_unbound(&self, guard: &GraphGuard<'_>, id: NodeId) -> Result<()> {
        match &self.params {
            Some(params) if params.has(id) => Err(ParamError::Bound { node: guard.name(id) }.into()),
            _ => Ok(()),
        }
    }

    /// Gives a node new parameters, for a caller that holds the lock and has checked them for the
    /// kind of node.
    pub(super) fn replace_params(
        &mut self,
        guard: &GraphGuard<'_>,
        node: &Node,
        new: &mut NewParams<'_>,
    ) -> Result<()> {
        let within = guard.record(node.id()).ok_or_else(|| node.removed())?.within;
        guard.ensure_may_hold(within, &new.node_params)?;
        self.call(guard, node.id(), &new.owners, new.raw)?;
        self.commit(node, new, &[]);
        Ok(())
    }

    /// Gives a node values of graph parameters, for a caller that holds the lock and has checked
    /// them. Returns what is to be dropped after the lock. The caller has the owners as well.
    pub(super) fn set_params(
        &mut self,
        guard: &GraphGuard<'_>,
        id: NodeId,
        owners: Owners,
        raw: &mut CUgraphNodeParams,
    ) -> Result<Replaced> {
        self.call_driver(guard, id, raw)?;
        // What earlier updates have brought to the node stays.
        if owners.is_empty() {
            return Ok(Replaced::default());
        }
        self.wait_for_homes(&owners);
        let brought = Brought { owners, of_params: None };
        Ok(self.owners.bring(self.handle.context(), id, brought, &[]))
    }

    /// Makes the driver's call, with parameters that use these owners.
    pub(super) fn call(
        &self,
        guard: &GraphGuard<'_>,
        id: NodeId,
        owners: &[Owner],
        raw: &mut CUgraphNodeParams,
    ) -> Result<()> {
        ensure_no_graph_memory(guard, id, owners)?;
        self.call_driver(guard, id, raw)
    }

    fn call_driver(&self, guard: &GraphGuard<'_>, id: NodeId, raw: &mut CUgraphNodeParams) -> Result<()> {
        let record = guard.record(id).ok_or_else(|| guard.removed(id))?;
        let exec = self.handle.as_raw();
        // SAFETY: the executable is live, and the exclusive reference of the caller keeps other
        // calls on it away. The node is live and of the graph that it was made of, whose lock is
        // held. The parameters are complete for its type, and everything that they point to
        // outlives the call.
        let code = unsafe { guard.driver().cuGraphExecNodeSetParams(exec, record.raw.0, raw) };
        guard.answer(Call::cuGraphExecNodeSetParams, code).map_err(|error| refused(guard, id, error))
    }

    /// Notes the parameters that the driver has taken, in place of those of the node and of the
    /// nodes in it.
    pub(super) fn commit(&mut self, node: &Node, new: &mut NewParams<'_>, inside: &[NodeId]) {
        self.wait_for_homes(&new.owners);
        let of_params = new.node_params.owner();
        let brought = Brought { owners: core::mem::take(&mut new.owners), of_params };
        new.replaced = self.owners.bring(self.handle.context(), node.id(), brought, inside);
        let node_params = core::mem::replace(&mut new.node_params, NodeParams::Empty);
        if let Some(before) = self.updates.set(node.id(), node_params) {
            new.node_params = before;
        }
    }

    /// Lets the next launch wait for the homes of memory that may not be allocated yet.
    fn wait_for_homes(&mut self, owners: &[Owner]) {
        for owner in owners {
            if let Owner::Allocation(memory) = owner
                && !memory.is_settled()
                && let Some(home) = memory.home()
                && !self.launches.awaited.contains(home)
            {
                self.launches.awaited.push(home.clone());
            }
        }
    }
}

/// Refuses memory of allocation nodes: whether the node comes between its allocation and its free
/// was checked when the executable was made.
fn ensure_no_graph_memory(guard: &GraphGuard<'_>, id: NodeId, owners: &[Owner]) -> Result<()> {
    let is_of_graph =
        |owner: &Owner| matches!(owner, Owner::Allocation(memory) if memory.kind() == MemoryKind::Graph);
    if owners.iter().any(is_of_graph) {
        let why = "memory of an allocation node can be given to the graph's node alone; set that, and \
                   instantiate again";
        return Err(not_possible(guard, id, why));
    }
    Ok(())
}

/// The error of parameters that a node of an executable cannot have.
#[cold]
pub(super) fn not_possible(guard: &GraphGuard<'_>, id: NodeId, why: impl Into<Cow<'static, str>>) -> Error {
    UpdateError::NotPossible { node: guard.name(id), why: why.into() }.into()
}

/// The driver's refusal, with the node.
#[cold]
fn refused(guard: &GraphGuard<'_>, id: NodeId, error: Error) -> Error {
    let hint = match guard.record(id).map(|record| &record.node_params) {
        Some(NodeParams::Memcpy(_)) => {
            "; a copy of an executable keeps its direction and the kinds of its memory"
        }
        Some(NodeParams::Child { .. }) => {
            "; a child graph of an executable keeps the number and the kinds of its nodes, and the edges"
        }
        _ => "",
    };
    match error {
        Error::Handles(HandleError::Driver {
            code: code @ (CUresult::CUDA_ERROR_INVALID_VALUE | CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE),
            call,
        }) => {
            let error = HandleError::Driver { call, code };
            not_possible(guard, id, format!("the driver refuses it ({error}){hint}; instantiate again"))
        }
        other => other,
    }
}

impl<N: fmt::Debug> fmt::Debug for ExecNode<'_, N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ExecNode").field("node", self.node).field("exec", self.exec).finish()
    }
}
