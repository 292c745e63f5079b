//! Nodes that launch kernels.

pub(crate) mod attribute;
pub(crate) mod launch;
pub(crate) mod relaunch;

use cuda_handles::Kernel;
use cuda_launch::LaunchConfig;

use crate::error::Result;
use crate::graph::node::typed;
use crate::state::params::NodeParams;

typed! {
    /// A node that launches a kernel, with the arguments packed when it was added or last set.
    KernelNode, Kernel
}

impl KernelNode {
    /// The kernel.
    ///
    /// # Errors
    /// The node was removed.
    #[doc(alias = "cuGraphKernelNodeGetParams")]
    pub fn kernel(&self) -> Result<Kernel> {
        self.current().map(|(kernel, _)| kernel)
    }

    /// Grid, block, shared memory, and the attributes that a [`LaunchConfig`] has.
    ///
    /// # Errors
    /// The node was removed.
    pub fn config(&self) -> Result<LaunchConfig> {
        self.current().map(|(_, config)| config)
    }

    pub(crate) fn current(&self) -> Result<(Kernel, LaunchConfig)> {
        match self.node_params()? {
            NodeParams::Kernel { kernel, config, .. } => Ok((kernel, config.get())),
            // The handle is made for rows of its kind only, and a row keeps its kind.
            _ => Err(self.removed()),
        }
    }
}
