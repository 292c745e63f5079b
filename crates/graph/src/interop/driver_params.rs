//! The parameters of nodes as the driver returns them.

use cuda_sys::{
    CUDA_HOST_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEMSET_NODE_PARAMS_v1, CUevent, CUgraphNode,
    Call,
};

use crate::error::Result;
use crate::state::guard::GraphGuard;

impl GraphGuard<'_> {
    /// The parameters of a live kernel node. They point into the node, which does not change while
    /// the lock is held.
    pub(crate) fn kernel_params(&self, raw: CUgraphNode) -> Result<CUDA_KERNEL_NODE_PARAMS_v2> {
        let mut params = CUDA_KERNEL_NODE_PARAMS_v2::default();
        // SAFETY: a live kernel node of a graph whose lock is held, and the out pointer is valid.
        let result = unsafe { self.driver().cuGraphKernelNodeGetParams(raw, &raw mut params) };
        self.answer(Call::cuGraphKernelNodeGetParams, result)?;
        Ok(params)
    }

    /// The parameters of a live memset node.
    pub(crate) fn fill_params(&self, raw: CUgraphNode) -> Result<CUDA_MEMSET_NODE_PARAMS_v1> {
        let mut params = CUDA_MEMSET_NODE_PARAMS_v1::default();
        // SAFETY: a live memset node, and the out pointer is valid.
        let result = unsafe { self.driver().cuGraphMemsetNodeGetParams(raw, &raw mut params) };
        self.answer(Call::cuGraphMemsetNodeGetParams, result)?;
        Ok(params)
    }

    /// The parameters of a live host node.
    pub(crate) fn host_params(&self, raw: CUgraphNode) -> Result<CUDA_HOST_NODE_PARAMS_v1> {
        let mut params = CUDA_HOST_NODE_PARAMS_v1::default();
        // SAFETY: a live host node, and the out pointer is valid.
        let result = unsafe { self.driver().cuGraphHostNodeGetParams(raw, &raw mut params) };
        self.answer(Call::cuGraphHostNodeGetParams, result)?;
        Ok(params)
    }

    /// The event of a live event record node.
    pub(crate) fn recorded_event(&self, raw: CUgraphNode) -> Result<CUevent> {
        let mut event = core::ptr::null_mut();
        // SAFETY: a live event record node, and the out pointer is valid.
        let result = unsafe { self.driver().cuGraphEventRecordNodeGetEvent(raw, &raw mut event) };
        self.answer(Call::cuGraphEventRecordNodeGetEvent, result)?;
        Ok(event)
    }

    /// The event of a live event wait node.
    pub(crate) fn awaited_event(&self, raw: CUgraphNode) -> Result<CUevent> {
        let mut event = core::ptr::null_mut();
        // SAFETY: a live event wait node, and the out pointer is valid.
        let result = unsafe { self.driver().cuGraphEventWaitNodeGetEvent(raw, &raw mut event) };
        self.answer(Call::cuGraphEventWaitNodeGetEvent, result)?;
        Ok(event)
    }
}
