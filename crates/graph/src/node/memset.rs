//! Nodes that fill memory.

use cuda_sys::{CUcontext, CUdeviceptr, CUgraphNodeParams, CUgraphNodeType};

use super::handle::{blank, typed};
use crate::error::Result;
use crate::owners::Detail;

typed! {
    /// A node that sets each element of a range of device memory to one value.
    MemsetNode, Memset
}

/// What a memset node does.
pub(crate) struct Fill {
    pub(crate) address: CUdeviceptr,
    pub(crate) value: u32,
    pub(crate) width: u8,
    pub(crate) count: usize,
}

impl MemsetNode {
    /// The address of the first element.
    ///
    /// # Errors
    /// The node was removed.
    #[doc(alias = "cuGraphMemsetNodeGetParams")]
    pub fn address(&self) -> Result<CUdeviceptr> {
        self.fill().map(|fill| fill.address)
    }

    /// The bits of the value, in the lowest bytes.
    ///
    /// # Errors
    /// The node was removed.
    pub fn value(&self) -> Result<u32> {
        self.fill().map(|fill| fill.value)
    }

    /// The size of an element in bytes: 1, 2 or 4.
    ///
    /// # Errors
    /// The node was removed.
    pub fn element_width(&self) -> Result<usize> {
        self.fill().map(|fill| usize::from(fill.width))
    }

    /// The number of elements.
    ///
    /// # Errors
    /// The node was removed.
    pub fn count(&self) -> Result<usize> {
        self.fill().map(|fill| fill.count)
    }

    fn fill(&self) -> Result<Fill> {
        match self.detail()? {
            Detail::Memset { address, value, width, count } => Ok(Fill { address, value, width, count }),
            // The handle is made for rows of its kind only, and a row keeps its kind.
            _ => Err(self.removed()),
        }
    }
}

/// The driver's form of a one-dimensional fill.
pub(crate) fn params(context: CUcontext, fill: &Fill) -> CUgraphNodeParams {
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET);
    let to = &mut params.__bindgen_anon_1;
    to.memset.dst = fill.address;
    // Of no meaning for one row, but it may not be less than the row.
    to.memset.pitch = fill.count * usize::from(fill.width);
    to.memset.value = fill.value;
    to.memset.elementSize = u32::from(fill.width);
    to.memset.width = fill.count;
    to.memset.height = 1;
    to.memset.ctx = context;
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_without_meaning_are_zero() {
        let fill = Fill { address: 0x1000, value: 7, width: 4, count: 8 };
        let params = params(core::ptr::without_provenance_mut(64), &fill);
        assert_eq!((params.reserved0, params.reserved2), ([0; 3], 0));
        // SAFETY: the union was zeroed as a whole before the fields were set, so that each byte has a value.
        let bytes = unsafe { params.__bindgen_anon_1.asBytes };
        let used = size_of::<cuda_sys::CUDA_MEMSET_NODE_PARAMS_v2>();
        assert!(bytes[..used].iter().any(|byte| *byte != 0));
        assert!(bytes[used..].iter().all(|byte| *byte == 0), "the driver refuses anything else");
    }
}
