//! Enabling and disabling nodes of executables.

use core::ops::Deref;

use cuda_sys::Call;

use crate::error::{Error, ParamError, Result};
use crate::exec::{ExecNodes, GraphExec};
use crate::graph::node::Node;
use crate::node::{KernelNode, MemcpyNode, MemsetNode};
use crate::param::graph_param::GraphParam;
use crate::state::bindings::{Binding, BoundNode, Place, Use, Uses};
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::params::NodeParams;
use crate::update::exec_node::{DISSOLVED, ExecNode, not_possible};
use crate::update::located::Located;

mod sealed {
    pub trait Sealed {}
}

/// A kind of node that an executable can disable: kernel, memcpy and memset nodes.
pub trait CanBeDisabled: sealed::Sealed + Deref<Target = Node> {}

macro_rules! can_be_disabled {
    ($($node:ident)*) => { $(
        impl sealed::Sealed for $node {}
        impl CanBeDisabled for $node {}

        impl $node {
            /// Lets a parameter enable and disable the node in executables that are made from now
            /// on. A disabled node does nothing, as an empty one. Several parameters enable it
            /// together.
            ///
            /// # Errors
            /// [`ParamError::Foreign`](crate::ParamError::Foreign): the parameter is of another
            /// graph. [`NodeError::Removed`](crate::NodeError::Removed): the node was removed.
            #[doc(alias = "cuGraphNodeSetEnabled")]
            #[doc(alias = "cudaGraphNodeSetEnabled")]
            pub fn enabled_by(&self, enabled: &GraphParam<bool>) -> Result<()> {
                enable_by(self, enabled)
            }
        }
    )* };
}

can_be_disabled! { KernelNode MemcpyNode MemsetNode }

fn enable_by(node: &Node, enabled: &GraphParam<bool>) -> Result<()> {
    let mut guard = node.graph().enter()?;
    if guard.record(node.id()).is_none() {
        drop(guard);
        return Err(node.removed());
    }
    if enabled.placeholder.graph() != guard.number() {
        return Err(ParamError::Foreign.into());
    }
    let uses = Uses::from_iter([Use { param: enabled.placeholder.number(), place: Place::Enabled }]);
    guard.bindings.bind(node.id(), Binding { node: BoundNode::Plain, uses });
    Ok(())
}

impl<N: CanBeDisabled> ExecNode<'_, N> {
    /// Enables or disables the node. A disabled node does nothing, as an empty one. It keeps its
    /// parameters, and updates of them show once it is enabled again.
    ///
    /// Calls `cuGraphNodeSetEnabled` (CUDA 11.6), unless the node is so already.
    ///
    /// # Errors
    /// - [`UpdateError::NotPossible`](crate::UpdateError::NotPossible): the kernel has the handle
    ///   of a condition. Disabled, it would decide no more, and a loop would never end. Or the node
    ///   fills a row, and not a rectangle: drivers would run what comes after it without waiting
    ///   for what comes before it. A parameter can enable it ([`MemsetNode::enabled_by`]).
    /// - [`UpdateError::NotInExecutable`](crate::UpdateError::NotInExecutable),
    ///   [`UpdateError::Lent`](crate::UpdateError::Lent),
    ///   [`NodeError::Removed`](crate::NodeError::Removed): the node cannot be updated.
    /// - The driver's error.
    #[doc(alias = "cuGraphNodeSetEnabled")]
    #[doc(alias = "cudaGraphNodeSetEnabled")]
    pub fn set_enabled(&mut self, enabled: bool) -> Result<()> {
        let node: &Node = self.node;
        let graphs = self.exec.graphs_of(node)?;
        let found = graphs.locate(self.exec, node)?;
        if self.exec.updates.is_enabled(found.key) == enabled {
            return Ok(());
        }
        if !enabled {
            ensure_decides_nothing(self.exec, &found, "be disabled")?;
            ensure_keeps_order(self.exec, &found)?;
            if let Some(why) = self.exec.shaped().and_then(|shaped| shaped.refusal_of_disabling(found.key)) {
                return Err(not_possible(found.named(), why));
            }
        }
        call_set_enabled(self.exec.nodes()?, found.keys(), found.key, enabled)?;
        self.exec.updates.set_enabled(found.key, enabled);
        Ok(())
    }

    /// Whether the node is enabled. It is in a new executable. Parameters enable and disable nodes
    /// at the launch after they were set.
    ///
    /// # Errors
    /// The node cannot be updated, as for [`set_enabled`](Self::set_enabled).
    #[doc(alias = "cuGraphNodeGetEnabled")]
    #[doc(alias = "cudaGraphNodeGetEnabled")]
    pub fn is_enabled(&self) -> Result<bool> {
        let node: &Node = self.node;
        let graphs = self.exec.graphs_of(node)?;
        let key = graphs.locate_any(self.exec, node)?.key;
        let is_off = self.exec.owners.since.params.as_ref().is_some_and(|params| params.disables(key));
        Ok(!is_off && self.exec.updates.is_enabled(key))
    }
}

/// Refuses a fill of a row. Disabled, it no longer keeps the order of what comes before and after
/// it; fills of rectangles, copies and kernels do. See [`spare`](crate::exec::spare).
fn ensure_keeps_order(exec: &GraphExec, node: &Located<'_>) -> Result<()> {
    let keys = node.keys();
    let record = keys.record(node.key).ok_or_else(|| keys.removed(node.key))?;
    let params = node.params(&exec.updates);
    // If they are not known, it may be a row in the executable.
    let may_be_row = params.is_none();
    match params.unwrap_or(&record.node_params) {
        NodeParams::Memset(layout) if layout.height == 1 || may_be_row => {
            let why = "the driver runs what comes after a disabled fill of a row without waiting for what comes \
                       before it; let a graph parameter enable the fill (MemsetNode::enabled_by)";
            Err(not_possible(node.named(), why))
        }
        _ => Ok(()),
    }
}

/// Enables or disables a node of an executable, by its key. The caller has the executable for
/// itself.
pub(super) fn call_set_enabled(
    exec: ExecNodes<'_>,
    keys: &GraphGuard<'_>,
    key: NodeId,
    enabled: bool,
) -> Result<()> {
    let raw_key = exec.raw_key(keys, key)?.ok_or_else(|| not_possible((keys, key), DISSOLVED))?;
    // SAFETY: the executable is live, and the caller keeps other calls on it away. The node is live
    // and of the graph that it was made of, whose lock is held.
    let code = unsafe { keys.driver().cuGraphNodeSetEnabled(exec.handle.as_raw(), raw_key, enabled.into()) };
    keys.answer(Call::cuGraphNodeSetEnabled, code).map_err(|error| {
        // The driver answers `INVALID_VALUE` there.
        keys.context().refuse_in_callback().map_or_else(Error::from, |()| error)
    })
}

/// Refuses a node that decides about a condition, a loop or a branch, also if the graph's node has
/// been changed since.
pub(super) fn ensure_decides_nothing(exec: &GraphExec, node: &Located<'_>, what: &str) -> Result<()> {
    if exec.updates.is_deciding(node.key) {
        let why = format!("it decides about a condition, and cannot {what}: a loop might never end");
        return Err(not_possible(node.named(), why));
    }
    Ok(())
}
