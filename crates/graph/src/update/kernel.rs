//! Updates of kernel nodes.

use cuda_handles::Kernel;
use cuda_launch::internal::Observed;
use cuda_launch::{Arguments, ArgumentsOf, LaunchConfig, Prepared, SafeKernel, TypedKernel};

use crate::error::Result;
use crate::exec::GraphExec;
use crate::graph::node::Node;
use crate::node::KernelNode;
use crate::node::kernel::launch::{PreparedLaunch, check, prepare};
use crate::param::bind::ensure_no_params;
use crate::state::params::{KernelHandles, NodeParams};
use crate::state::raw_params::kernel_params;
use crate::update::enable::ensure_decides_nothing;
use crate::update::exec_node::{ExecNode, NewParams, not_possible};
use crate::update::located::Located;

impl ExecNode<'_, KernelNode> {
    /// Replaces the launch for later launches of the executable; as [`KernelNode::set`] does for
    /// the graph's node. The kernel may be another one.
    ///
    /// Calls `cuGraphExecNodeSetParams` (CUDA 12.2).
    ///
    /// # Errors
    /// - The errors of [`Frontier::launch`](crate::Frontier::launch).
    /// - [`UpdateError::NotPossible`](crate::UpdateError::NotPossible): the configuration has
    ///   attributes that the node's does not have, or the reverse. An executable's node takes grid,
    ///   block and shared memory alone. Or the kernel has the handle of a condition.
    /// - [`UpdateError::Meets`](crate::UpdateError::Meets): the executable is [ordered by
    ///   data](crate::Order::ByData), and the node would meet one that it does not wait for.
    /// - [`UpdateError::NotInExecutable`](crate::UpdateError::NotInExecutable),
    ///   [`UpdateError::Lent`](crate::UpdateError::Lent),
    ///   [`NodeError::Removed`](crate::NodeError::Removed): the node cannot be updated.
    ///
    /// The executable is then unchanged.
    #[doc(alias = "cuGraphExecKernelNodeSetParams")]
    #[doc(alias = "cuGraphExecNodeSetParams")]
    #[doc(alias = "cudaGraphExecKernelNodeSetParams")]
    #[doc(alias = "cudaGraphExecNodeSetParams")]
    pub fn set<'a, K: SafeKernel>(
        &mut self,
        kernel: &'a K,
        config: LaunchConfig,
        arguments: impl ArgumentsOf<'a, K::Signature>,
    ) -> Result<()> {
        // SAFETY: the kernel's declaration promises this for arguments that meet its conditions,
        // which are checked.
        unsafe { self.set_unchecked(kernel, config, arguments) }
    }

    /// Replaces the launch with one of a kernel that was declared as `unsafe fn`; see
    /// [`set`](Self::set).
    ///
    /// # Safety
    /// As for [`Frontier::launch_unchecked`](crate::Frontier::launch_unchecked), at every later
    /// launch of the executable.
    ///
    /// # Errors
    /// The errors of [`set`](Self::set).
    #[doc(alias = "cuGraphExecKernelNodeSetParams")]
    #[doc(alias = "cuGraphExecNodeSetParams")]
    pub unsafe fn set_unchecked<'a, K: TypedKernel>(
        &mut self,
        kernel: &'a K,
        config: LaunchConfig,
        arguments: impl ArgumentsOf<'a, K::Signature>,
    ) -> Result<()> {
        ensure_no_params::<K::Signature>(&arguments, "ExecNode::set")?;
        let prepared = Prepared::with_parameters(kernel, &config, arguments)?;
        // SAFETY: the caller promises this.
        unsafe { self.set_untyped(kernel.kernel(), config, prepared) }
    }

    /// Replaces the launch with one of a kernel without a declaration; see [`set`](Self::set).
    ///
    /// # Safety
    /// As for [`Frontier::launch_untyped`](crate::Frontier::launch_untyped), at every later launch
    /// of the executable.
    ///
    /// # Errors
    /// The errors of [`Frontier::launch_untyped`](crate::Frontier::launch_untyped) and of
    /// [`set`](Self::set).
    #[doc(alias = "cuGraphExecKernelNodeSetParams")]
    #[doc(alias = "cuGraphExecNodeSetParams")]
    pub unsafe fn set_untyped(
        &mut self,
        kernel: &Kernel,
        config: LaunchConfig,
        arguments: impl Arguments,
    ) -> Result<()> {
        let node: &Node = self.node;
        node.getting(check(node.graph(), kernel, &config, &arguments))?;
        let _observed = Observed::node(kernel, &arguments);
        let PreparedLaunch { node_params, owners, .. } =
            prepare(kernel, config, &arguments, arguments.accesses())?;
        let handles = arguments.handles();
        let graphs = self.exec.graphs_of(node)?;
        arguments.with_pointers(|pointers| {
            let mut raw = kernel_params(kernel, config, pointers);
            let mut new = NewParams::new(node_params, owners, &mut raw);
            let found = graphs.locate(self.exec, node)?;
            let updates = &self.exec.updates;
            ensure_same_attributes(
                found.params(updates),
                config,
                updates.may_have_attributes(found.latest()),
            )
            .map_err(|why| not_possible(found.named(), why))?;
            ensure_no_handles(self.exec, &found, &handles)?;
            self.exec.replace_params(&found, &mut new)
        })
    }
}

/// Refuses a configuration with other attributes than the node of the executable has.
fn ensure_same_attributes(
    before: Option<&NodeParams>,
    new: LaunchConfig,
    may_have_some: bool,
) -> Result<(), &'static str> {
    let before = match before {
        Some(NodeParams::Kernel { config, .. }) => Some(config.get()),
        _ => None,
    };
    let plain = |config: LaunchConfig| LaunchConfig::new(1, 1).attributes_of(&config);
    match before {
        Some(before) if plain(before) == plain(new) => Ok(()),
        None if !new.has_attributes() && !may_have_some => Ok(()),
        Some(_) => {
            Err("its configuration has other attributes than the node's; an executable takes another \
                        grid, block and size of shared memory alone; set the graph's node, and update the \
                        executable from the graph")
        }
        None => Err(
            "the attributes of its configuration are not known, as the graph's node was changed after the \
                     executable was made, or the child graph around it was replaced; update the executable \
                     from the graph",
        ),
    }
}

/// Refuses launches with handles of conditions, and other launches of nodes that have some.
fn ensure_no_handles(exec: &GraphExec, node: &Located<'_>, handles: &KernelHandles) -> Result<()> {
    if !handles.is_empty() {
        let why = "the launch has the handle of a condition; set the graph's node, and update the executable \
                   from the graph";
        return Err(not_possible(node.named(), why));
    }
    ensure_decides_nothing(exec, node, "be set alone")
}
