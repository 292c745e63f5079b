//! Nodes that launch kernels.

pub(crate) mod attribute;
pub(crate) mod launch;
pub(crate) mod relaunch;

use cuda_handles::Kernel;
use cuda_launch::LaunchConfig;
use cuda_sys::{CUgraphNodeParams, CUgraphNodeType};

use crate::error::Result;
use crate::graph::node::{blank, typed};
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

/// The driver's form of a kernel node. The kernel is always given by itself and its context: by
/// function, the driver crashes where no context is current.
#[inline]
pub(crate) fn params(
    kernel: &Kernel,
    config: LaunchConfig,
    arguments: *mut *mut core::ffi::c_void,
) -> CUgraphNodeParams {
    let (grid, block) = (config.grid(), config.block());
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL);
    // Field by field, so that padding stays zero.
    let to = &mut params.__bindgen_anon_1;
    to.kernel.gridDimX = grid.x;
    to.kernel.gridDimY = grid.y;
    to.kernel.gridDimZ = grid.z;
    to.kernel.blockDimX = block.x;
    to.kernel.blockDimY = block.y;
    to.kernel.blockDimZ = block.z;
    to.kernel.sharedMemBytes = config.shared();
    to.kernel.kernelParams = arguments;
    to.kernel.kern = kernel.as_raw();
    to.kernel.ctx = kernel.context().as_raw();
    params
}
