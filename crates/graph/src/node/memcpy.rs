//! Nodes that copy memory.

use cuda_sys::{CUcontext, CUdeviceptr, CUgraphNodeParams, CUgraphNodeType, CUmemorytype};

use super::handle::{blank, typed};
use crate::error::Result;
use crate::owners::Detail;

typed! {
    /// A node that copies bytes from one place in device memory to another.
    MemcpyNode, Memcpy
}

impl MemcpyNode {
    /// The address copied from.
    ///
    /// # Errors
    /// The node was removed.
    #[doc(alias = "cuGraphMemcpyNodeGetParams")]
    pub fn source(&self) -> Result<CUdeviceptr> {
        self.copy().map(|(source, _, _)| source)
    }

    /// The address copied to.
    ///
    /// # Errors
    /// The node was removed.
    pub fn destination(&self) -> Result<CUdeviceptr> {
        self.copy().map(|(_, destination, _)| destination)
    }

    /// The number of bytes copied.
    ///
    /// # Errors
    /// The node was removed.
    pub fn bytes(&self) -> Result<usize> {
        self.copy().map(|(_, _, bytes)| bytes)
    }

    fn copy(&self) -> Result<(CUdeviceptr, CUdeviceptr, usize)> {
        match self.detail()? {
            Detail::Memcpy { source, destination, bytes } => Ok((source, destination, bytes)),
            // The handle is made for rows of its kind only, and a row keeps its kind.
            _ => Err(self.removed()),
        }
    }
}

/// The driver's form of a one-dimensional copy between device addresses.
pub(crate) fn params(
    context: CUcontext,
    source: CUdeviceptr,
    destination: CUdeviceptr,
    bytes: usize,
) -> CUgraphNodeParams {
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY);
    // Field by field, so that padding stays zero.
    let to = &mut params.__bindgen_anon_1;
    to.memcpy.copyCtx = context;
    to.memcpy.copyParams.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
    to.memcpy.copyParams.srcDevice = source;
    to.memcpy.copyParams.srcPitch = bytes;
    to.memcpy.copyParams.srcHeight = 1;
    to.memcpy.copyParams.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
    to.memcpy.copyParams.dstDevice = destination;
    to.memcpy.copyParams.dstPitch = bytes;
    to.memcpy.copyParams.dstHeight = 1;
    to.memcpy.copyParams.WidthInBytes = bytes;
    to.memcpy.copyParams.Height = 1;
    to.memcpy.copyParams.Depth = 1;
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_without_meaning_are_zero() {
        let params = params(core::ptr::without_provenance_mut(64), 0x1000, 0x2000, 32);
        // SAFETY: the union was zeroed as a whole before the fields were set, so that each byte has a value.
        let (bytes, memcpy) = unsafe { (params.__bindgen_anon_1.asBytes, params.__bindgen_anon_1.memcpy) };
        assert_eq!((memcpy.flags, memcpy.reserved), (0, 0));
        let used = size_of::<cuda_sys::CUDA_MEMCPY_NODE_PARAMS>();
        assert!(bytes[used..].iter().all(|byte| *byte == 0), "the driver refuses anything else");
    }
}
