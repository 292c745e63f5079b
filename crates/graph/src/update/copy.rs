//! Updates of memcpy nodes.

use cuda_handles::{CopyLayout, Element, NodeMemory};

use crate::error::Result;
use crate::graph::node::Node;
use crate::node::memcpy::{Prepared, linear, params};
use crate::node::{MemcpyNode, RawCopy};
use crate::param::bind::fixed;
use crate::state::owners::contexts_of_copy;
use crate::state::params::NodeParams;
use crate::state::place::copy_context;
use crate::update::exec_node::{ExecNode, NewParams, not_possible};
use crate::update::rules::{PoolChange, ShapeChange, is_row, is_unified, keep_types};

impl ExecNode<'_, MemcpyNode> {
    /// Replaces the copy for later launches of the executable; as [`MemcpyNode::set`] does for the
    /// graph's node. It copies between the same kinds of memory as before, in one dimension.
    ///
    /// Calls `cuGraphExecNodeSetParams` (CUDA 12.2).
    ///
    /// # Errors
    /// - The errors of [`Frontier::copy`](crate::Frontier::copy).
    /// - [`UpdateError::NotPossible`](crate::UpdateError::NotPossible): the node copies in two or
    ///   three dimensions, or in another direction; memory of a pool would replace other memory, or
    ///   the reverse; or the memory is that of an allocation node; or a
    ///   [kernel](crate::InstantiateOptions::copies_by_kernels) runs in place of the node, and may
    ///   not reach the memory.
    /// - [`UpdateError::Meets`](crate::UpdateError::Meets): the executable is [ordered by
    ///   data](crate::Order::ByData), and the node would meet one that it does not wait for.
    /// - [`UpdateError::NotInExecutable`](crate::UpdateError::NotInExecutable),
    ///   [`UpdateError::Lent`](crate::UpdateError::Lent),
    ///   [`NodeError::Removed`](crate::NodeError::Removed): the node cannot be updated.
    ///
    /// The executable is then unchanged.
    #[doc(alias = "cuGraphExecMemcpyNodeSetParams")]
    #[doc(alias = "cuGraphExecNodeSetParams")]
    #[doc(alias = "cudaGraphExecMemcpyNodeSetParams")]
    #[doc(alias = "cudaGraphExecMemcpyNodeSetParams1D")]
    #[doc(alias = "cudaGraphExecNodeSetParams")]
    pub fn set<'a, 'b, T: Element>(
        &mut self,
        source: impl NodeMemory<'a, T>,
        destination: impl NodeMemory<'b, T>,
    ) -> Result<()> {
        let node: &Node = self.node;
        let (source, destination) = (fixed(source, "ExecNode::set")?, fixed(destination, "ExecNode::set")?);
        let copy = linear(node.graph(), source, destination);
        self.replace_by(node.getting(copy)?)
    }

    /// Replaces the copy with one between addresses; see [`set`](Self::set).
    ///
    /// # Safety
    /// As for [`Frontier::copy_raw`](crate::Frontier::copy_raw), at every later launch of the
    /// executable.
    ///
    /// # Errors
    /// The errors of [`Frontier::copy_raw`](crate::Frontier::copy_raw) and of [`set`](Self::set).
    #[doc(alias = "cuGraphExecMemcpyNodeSetParams")]
    #[doc(alias = "cuGraphExecNodeSetParams")]
    pub unsafe fn set_raw(&mut self, copy: RawCopy) -> Result<()> {
        self.replace_by(copy.prepare(self.node.graph().context())?)
    }

    fn replace_by(&mut self, (mut layout, owners): Prepared) -> Result<()> {
        let node: &Node = self.node;
        let context = copy_context(node.graph(), owners.iter(), &layout).clone();
        let mut raw = params(&context, &layout);
        let mut new = NewParams::new(NodeParams::Memcpy(layout), owners, &mut raw);
        let graphs = self.exec.graphs_of(node)?;
        let found = graphs.locate(self.exec, node)?;
        let before = match found.params(&self.exec.updates) {
            Some(NodeParams::Memcpy(before)) => Some(before),
            _ => None,
        };
        if let Some(why) = refusal(before, &layout) {
            return Err(not_possible(found.named(), why));
        }
        let contexts = contexts_of_copy(new.owners.iter(), &layout);
        if let Some(change) = PoolChange::between(found.contexts_of_copy(&self.exec.updates), contexts) {
            return Err(not_possible(found.named(), exchanged(change)));
        }
        if let Some(before) = before {
            keep_types(&mut layout, [&before.source, &before.destination].map(is_unified));
            *new.raw = params(&context, &layout);
            new.node_params = NodeParams::Memcpy(layout);
        }
        self.exec.replace_params(&found, &mut new)
    }
}

/// Why a copy of an executable cannot exchange memory of pools and other memory.
#[cold]
fn exchanged(PoolChange { side, is_pooled }: PoolChange) -> String {
    let (old, new) = if is_pooled { ("no pool", "a pool") } else { ("a pool", "no pool") };
    format!(
        "its {side} is memory of {old}, which an executable's copy does not exchange for memory of {new}; \
         use memory that is allocated in the same way, or set the graph's node, and instantiate again"
    )
}

/// Why a copy of an executable cannot become another one.
fn refusal(before: Option<&CopyLayout>, new: &CopyLayout) -> Option<&'static str> {
    const WHY: &str = "an executable's copies of two or three dimensions stay as they are; set the graph's node, \
                       and instantiate again";
    let keeps_shape = |before| ShapeChange::of_copies(before, new).is_none();
    let may_change = is_row(new) && before.is_none_or(keeps_shape);
    (!may_change).then_some(WHY)
}
