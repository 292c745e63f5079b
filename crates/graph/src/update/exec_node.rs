//! A node of an executable: the common steps of its updates.

use core::fmt;
use core::ops::Deref;
use cuda_handles::{Allocation, Error as HandleError, MemoryKind, Owner};
use cuda_sys::{CUgraphNodeParams, CUresult, Call};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;

use crate::check::collect::memory_among;
use crate::error::wrong_context::Spans;
use crate::error::{Error, ParamError, Result, UpdateError};
use crate::exec::resources::Replaced;
use crate::exec::since::Brought;
use crate::exec::{ExecNodes, GraphExec};
use crate::footprint::Footprint;
use crate::graph::node::Node;
use crate::shape::by_data::apart::Changes;
use crate::shape::substitute::work::MemoryWork;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::owners::Owners;
use crate::state::params::NodeParams;
use crate::update::located::Located;

/// A node of an executable, to be changed for later launches. Made by [`GraphExec::node`].
///
/// Launches that are enqueued or running keep what they had, and no update waits for them. The
/// graph's own node stays as it is.
///
/// The executable keeps what an update brings, and lets go of it once a later update has replaced
/// it and the runs that may use it are over. What the graph's node had when the executable was made
/// stays with the executable.
///
/// Each update is one driver call. The driver permits none inside a host function
/// (`CUDA_ERROR_NOT_PERMITTED`).
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
    /// After an [update](Self::update) from another graph, nodes of that graph also stand for those
    /// of the executable.
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
    /// After a launch that failed and [may run](crate::ExecError::MayRun) all the same, runs may
    /// be on several streams. Then it happens after the next launch.
    pub fn release(&mut self) {
        self.owners.hand_over_retired();
    }

    /// Refuses an executable that other code or kernels may launch at any time.
    pub(super) fn ensure_not_lent(&self) -> Result<()> {
        if self.owners.is_lent() { Err(UpdateError::Lent.into()) } else { Ok(()) }
    }

    /// Refuses a node that gets values from graph parameters.
    pub(super) fn ensure_unbound(&self, guard: &GraphGuard<'_>, key: NodeId) -> Result<()> {
        match &self.owners.since.params {
            Some(params) if params.has(key) => Err(ParamError::Bound { node: guard.name(key) }.into()),
            _ => Ok(()),
        }
    }

    /// Gives a node new parameters, for a caller that has checked them for the kind of node.
    pub(super) fn replace_params(&mut self, node: &Located<'_>, new: &mut NewParams<'_>) -> Result<()> {
        let guard = node.keys();
        if let Some(record) = guard.record(node.key) {
            guard.ensure_may_hold(record.within, &new.node_params)?;
        }
        let changes = self.check_apart(node, new)?;
        self.call(guard, node.key, node.named(), new)?;
        self.commit(node.key, new, &[]);
        if let Some(apart) = &mut self.apart {
            apart.commit(changes);
        }
        Ok(())
    }

    /// Refuses parameters with which a node would meet one that it is ordered with no more.
    fn check_apart(&mut self, node: &Located<'_>, new: &NewParams<'_>) -> Result<Changes> {
        let mut changes = Changes::default();
        if let Some(apart) = &mut self.apart {
            let (context, used) = (node.keys().context(), memory_among(new.owners.iter()));
            let footprint = Footprint::of_new(context, &new.node_params, new.raw, used, &[])?;
            apart.add(&mut changes, node.key, footprint);
            apart.check(&changes).map_err(|met| met.error(node.keys()))?;
        }
        Ok(changes)
    }

    /// Makes the driver's call for a node, by its key, with parameters that use these owners.
    /// Errors name it as the node of a graph.
    pub(super) fn call(
        &self,
        keys: &GraphGuard<'_>,
        key: NodeId,
        named: (&GraphGuard<'_>, NodeId),
        new: &mut NewParams<'_>,
    ) -> Result<()> {
        ensure_no_graph_memory(named.0, named.1, &new.owners)?;
        let exec = self.nodes()?;
        let Some(shaped) = exec.shaped else { return call_set_params(exec, keys, key, named, new.raw) };
        let memory: SmallVec<[&Arc<Allocation>; 4]> = new.owners.iter().filter_map(Owner::memory).collect();
        if let Some(why) = shaped.refusal(self.context(), key, &new.node_params, &memory) {
            return Err(not_possible(named, why));
        }
        let work = MemoryWork::of(&new.node_params);
        match work.and_then(|work| shaped.substitutes().launch(key, &work)) {
            Some(launch) => launch.with_params(|raw| call_set_params(exec, keys, key, named, raw)),
            None => call_set_params(exec, keys, key, named, new.raw),
        }
    }

    /// Notes the parameters that the driver has taken, in place of those of the node and of the
    /// nodes in it.
    pub(super) fn commit(&mut self, key: NodeId, new: &mut NewParams<'_>, inside: &[NodeId]) {
        for owner in &new.owners {
            if let Owner::Allocation(memory) = owner {
                self.launches.wait_for_home(memory);
            }
        }
        let of_params = new.node_params.owner();
        let brought = Brought { owners: core::mem::take(&mut new.owners), of_params };
        new.replaced = self.owners.bring(key, brought, inside);
        let node_params = core::mem::replace(&mut new.node_params, NodeParams::Empty);
        if let Some(before) = self.updates.set(key, node_params) {
            new.node_params = before;
        }
    }
}

/// Why a node that is not alone in the executable has no parameters there.
pub(super) const DISSOLVED: &str = "shaping has put other nodes in its place in the executable; set the nodes \
                                    inside of it, or instantiate again";

/// Gives a node of an executable new parameters, by its key. The caller has the executable for
/// itself. Errors name the node as one of a graph.
pub(super) fn call_set_params(
    exec: ExecNodes<'_>,
    keys: &GraphGuard<'_>,
    key: NodeId,
    (guard, id): (&GraphGuard<'_>, NodeId),
    raw: &mut CUgraphNodeParams,
) -> Result<()> {
    let raw_key = exec.raw_key(keys, key)?.ok_or_else(|| not_possible((guard, id), DISSOLVED))?;
    // SAFETY: the executable is live, and the caller keeps other calls on it away. The node is live
    // and of the graph that it was made of, whose lock is held. The parameters are complete for its
    // type, and everything that they point to outlives the call.
    let code = unsafe { guard.driver().cuGraphExecNodeSetParams(exec.handle.as_raw(), raw_key, raw) };
    guard.answer(Call::cuGraphExecNodeSetParams, code).map_err(|error| refused(guard, id, error))
}

/// Refuses memory of allocation nodes: whether the node comes between its allocation and its free
/// was checked when the executable was made.
fn ensure_no_graph_memory(guard: &GraphGuard<'_>, id: NodeId, owners: &[Owner]) -> Result<()> {
    let is_of_graph =
        |owner: &Owner| matches!(owner, Owner::Allocation(memory) if memory.kind() == MemoryKind::Graph);
    if owners.iter().any(is_of_graph) {
        let why = "memory of an allocation node can be given to the graph's node alone; set that, and \
                   instantiate again";
        return Err(not_possible((guard, id), why));
    }
    Ok(())
}

/// The error of parameters that a node of an executable cannot have.
#[cold]
pub(super) fn not_possible(
    (guard, id): (&GraphGuard<'_>, NodeId),
    why: impl Into<Cow<'static, str>>,
) -> Error {
    UpdateError::NotPossible { node: guard.name(id), why: why.into() }.into()
}

/// The driver's refusal, with the node. Inside a host function the driver takes no parameters, and
/// calls them invalid.
#[cold]
fn refused(guard: &GraphGuard<'_>, id: NodeId, error: Error) -> Error {
    let hint = match guard.record(id).map(|record| &record.node_params) {
        _ if guard.is_wide() => {
            "; a node of an executable stays on its device, with memory and events of the devices that it had"
        }
        Some(NodeParams::Memcpy(_)) => {
            "; a copy of an executable keeps its direction and the kinds of its memory, of a pool or not, and \
             one of pool memory that was captured while no context was current keeps everything"
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
            if let Err(inside) = guard.context().refuse_in_callback() {
                return inside.into();
            }
            let error = HandleError::Driver { call, code };
            not_possible((guard, id), format!("the driver refuses it ({error}){hint}; instantiate again"))
        }
        other => other,
    }
}

impl<N: fmt::Debug> fmt::Debug for ExecNode<'_, N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ExecNode").field("node", self.node).field("exec", self.exec).finish()
    }
}
