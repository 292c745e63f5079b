//! Updates of memset nodes.

use cuda_handles::internal::assert_value;
use cuda_handles::{Element, FillLayout, NodeMemory};

use crate::error::Result;
use crate::graph::node::Node;
use crate::node::memset::{Prepared, cleared, linear, params, rectangle};
use crate::node::{MemsetNode, RawFill};
use crate::param::bind::fixed;
use crate::state::params::NodeParams;
use crate::state::place::fill_context;
use crate::update::exec_node::{ExecNode, NewParams, not_possible};
use crate::update::rules::ShapeChange;

impl ExecNode<'_, MemsetNode> {
    /// Replaces the fill for later launches of the executable; as [`MemsetNode::set`] does for the
    /// graph's node.
    ///
    /// Calls `cuGraphExecNodeSetParams` (CUDA 12.2).
    ///
    /// # Errors
    /// - The errors of [`Frontier::fill`](crate::Frontier::fill).
    /// - [`UpdateError::NotPossible`](crate::UpdateError::NotPossible): the node fills a rectangle,
    ///   of which an executable can change the value alone; or the memory is that of an allocation
    ///   node; or a [kernel](crate::InstantiateOptions::fills_by_kernels) runs in place of the
    ///   node, and may not reach the memory.
    /// - [`UpdateError::Meets`](crate::UpdateError::Meets): the executable is [ordered by
    ///   data](crate::Order::ByData), and the node would meet one that it does not wait for.
    /// - [`UpdateError::NotInExecutable`](crate::UpdateError::NotInExecutable),
    ///   [`UpdateError::Lent`](crate::UpdateError::Lent),
    ///   [`NodeError::Removed`](crate::NodeError::Removed): the node cannot be updated.
    ///
    /// The executable is then unchanged.
    #[doc(alias = "cuGraphExecMemsetNodeSetParams")]
    #[doc(alias = "cuGraphExecNodeSetParams")]
    #[doc(alias = "cudaGraphExecMemsetNodeSetParams")]
    #[doc(alias = "cudaGraphExecNodeSetParams")]
    pub fn set<'a, T: Element>(&mut self, target: impl NodeMemory<'a, T>, value: T) -> Result<()> {
        const { assert_value::<T>() };
        let node: &Node = self.node;
        self.replace_by(node.getting(linear(node.graph(), fixed(target, "ExecNode::set")?, value))?)
    }

    /// Replaces the fill with one of a rectangle of the same shape and place, with another value;
    /// see [`set`](Self::set) and [`MemsetNode::set_2d`].
    ///
    /// # Errors
    /// The errors of [`Frontier::fill_2d`](crate::Frontier::fill_2d) and of [`set`](Self::set).
    #[doc(alias = "cuGraphExecMemsetNodeSetParams")]
    #[doc(alias = "cuGraphExecNodeSetParams")]
    pub fn set_2d<'a, T: Element>(
        &mut self,
        target: impl NodeMemory<'a, T>,
        pitch: usize,
        extent: [usize; 2],
        value: T,
    ) -> Result<()> {
        const { assert_value::<T>() };
        let node: &Node = self.node;
        self.replace_by(node.getting(rectangle(
            node.graph(),
            fixed(target, "ExecNode::set_2d")?,
            pitch,
            extent,
            value,
        ))?)
    }

    /// Replaces the fill with zeros for all bytes of memory of any type; see [`set`](Self::set) and
    /// [`MemsetNode::set_clear`].
    ///
    /// # Errors
    /// The errors of [`Frontier::clear`](crate::Frontier::clear) and of [`set`](Self::set).
    #[doc(alias = "cuGraphExecMemsetNodeSetParams")]
    #[doc(alias = "cuGraphExecNodeSetParams")]
    pub fn set_clear<'a, T: Element>(&mut self, target: impl NodeMemory<'a, T>) -> Result<()> {
        let node: &Node = self.node;
        self.replace_by(node.getting(cleared(node.graph(), fixed(target, "ExecNode::set_clear")?))?)
    }

    /// Replaces the fill with one of an address; see [`set`](Self::set).
    ///
    /// # Safety
    /// As for [`Frontier::fill_raw`](crate::Frontier::fill_raw), at every later launch of the
    /// executable.
    ///
    /// # Errors
    /// The errors of [`Frontier::fill_raw`](crate::Frontier::fill_raw) and of [`set`](Self::set).
    #[doc(alias = "cuGraphExecMemsetNodeSetParams")]
    #[doc(alias = "cuGraphExecNodeSetParams")]
    pub unsafe fn set_raw(&mut self, fill: RawFill) -> Result<()> {
        self.replace_by(fill.prepare(self.node.graph().context())?)
    }

    fn replace_by(&mut self, (layout, owners): Prepared) -> Result<()> {
        let node: &Node = self.node;
        let mut raw = params(fill_context(node.graph(), owners.iter(), &layout), &layout);
        let mut new = NewParams::new(NodeParams::Memset(layout), owners, &mut raw);
        let graphs = self.exec.graphs_of(node)?;
        let found = graphs.locate(self.exec, node)?;
        let before = match found.params(&self.exec.updates) {
            Some(NodeParams::Memset(before)) => Some(before),
            _ => None,
        };
        if let Some(why) = refusal(before, &layout) {
            return Err(not_possible(found.named(), why));
        }
        self.exec.replace_params(&found, &mut new)
    }
}

/// Why a fill of an executable cannot become another one.
fn refusal(before: Option<&FillLayout>, new: &FillLayout) -> Option<&'static str> {
    const WHY: &str = "an executable can change the value alone where a node fills a rectangle; set the graph's \
                       node, and instantiate again";
    ShapeChange::of_fills(before?, new).map(|_| WHY)
}
