//! Kernel nodes: launch kernels.

pub(crate) mod argument;
pub(crate) mod attribute;
mod change;
pub(crate) mod launch;
pub(crate) mod relaunch;

use cuda_handles::Kernel;
use cuda_launch::LaunchConfig;

use crate::error::Result;
use crate::graph::node::typed;
use crate::state::params::NodeParams;

typed! {
    /// A node that launches a kernel.
    ///
    /// The arguments are packed when the node is added or set: a launch of the graph passes the
    /// same values and addresses again. The node keeps the kernel and the memory of its arguments
    /// alive.
    ///
    /// Add one with [`Frontier::launch`](crate::Frontier::launch), or with
    /// [`Frontier::launch_untyped`](crate::Frontier::launch_untyped) for a kernel without a
    /// declaration. Replace its launch with [`set`](Self::set), or a part of it with
    /// [`set_argument`](Self::set_argument), [`set_config`](Self::set_config),
    /// [`set_kernel`](Self::set_kernel) and [`set_attribute`](Self::set_attribute).
    #[doc(alias = "CUDA_KERNEL_NODE_PARAMS")]
    #[doc(alias = "cudaKernelNodeParams")]
    #[doc(alias = "cudaGraphNodeTypeKernel")]
    KernelNode, Kernel
}

impl KernelNode {
    /// The kernel that the node launches.
    ///
    /// # Errors
    /// [`NodeError::Removed`](crate::NodeError::Removed), if the node was removed.
    #[doc(alias = "cuGraphKernelNodeGetParams")]
    #[doc(alias = "cudaGraphKernelNodeGetParams")]
    pub fn kernel(&self) -> Result<Kernel> {
        self.current().map(|(kernel, _)| kernel)
    }

    /// The launch configuration: grid, block, dynamic shared memory, and the attributes that a
    /// [`LaunchConfig`] has. [`attribute`](Self::attribute) reads all attributes from the driver.
    ///
    /// # Errors
    /// [`NodeError::Removed`](crate::NodeError::Removed), if the node was removed.
    #[doc(alias = "cuGraphKernelNodeGetParams")]
    #[doc(alias = "cudaGraphKernelNodeGetParams")]
    pub fn config(&self) -> Result<LaunchConfig> {
        self.current().map(|(_, config)| config)
    }

    pub(crate) fn current(&self) -> Result<(Kernel, LaunchConfig)> {
        match self.node_params()? {
            NodeParams::Kernel { kernel, config, .. } => Ok((kernel, config.get())),
            // A handle is made only for a record of its kind, and a record keeps its kind.
            _ => Err(self.removed()),
        }
    }
}
