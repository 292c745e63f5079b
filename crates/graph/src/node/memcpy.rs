//! Nodes that copy memory.

use cuda_handles::Slice;
use cuda_handles::{Element, Error as HandleError};
use cuda_sys::{CUcontext, CUdeviceptr, CUgraphNodeParams, CUgraphNodeType, CUmemorytype};

use super::handle::{blank, typed};
use crate::detail::Detail;
use crate::error::Result;
use crate::frontier::{Frontier, owners_of};

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

impl Frontier<'_> {
    /// Adds a node that copies `source` to `destination`, which has as many elements and does not overlap it.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// Different lengths, overlapping slices, no elements, memory of another context; a node of the frontier was removed; or what the
    /// driver answers.
    #[doc(alias = "cuGraphAddMemcpyNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn copy<'a, 'b, T: Element>(
        &self,
        source: impl Into<Slice<'a, T>>,
        destination: impl Into<Slice<'b, T>>,
    ) -> Result<MemcpyNode> {
        let (from, to) = (source.into(), destination.into());
        let what = "the destination of a copy";
        if from.len() != to.len() {
            return Err(HandleError::Length { what, expected: from.len(), found: to.len() }.into());
        }
        self.usable("the source of a copy", "memcpy", &from)?;
        self.usable(what, "memcpy", &to)?;
        let (source, destination, bytes) = (from.address(), to.address(), from.size_bytes());
        if let Some(bytes) = overlap(source, destination, bytes) {
            return Err(HandleError::Overlap { bytes }.into());
        }
        let context = self.graph().context().as_raw();
        let mut params = params(context, source, destination, bytes);
        let detail = Detail::Memcpy { source, destination, bytes };
        self.add(detail, owners_of([from.allocation(), to.allocation()]), &mut params).map(MemcpyNode::wrap)
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

/// By how many bytes two ranges of `bytes` bytes overlap.
fn overlap(one: u64, other: u64, bytes: usize) -> Option<usize> {
    let distance = one.abs_diff(other);
    (bytes as u64).checked_sub(distance).filter(|&common| common > 0).map(|common| common as usize)
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

    #[test]
    fn overlap_is_counted() {
        assert_eq!(overlap(100, 100, 8), Some(8));
        assert_eq!(overlap(100, 104, 8), Some(4));
        assert_eq!(overlap(104, 100, 8), Some(4));
        assert_eq!(overlap(100, 108, 8), None);
        assert_eq!(overlap(0, u64::MAX, 8), None);
    }
}
