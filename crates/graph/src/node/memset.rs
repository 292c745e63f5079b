//! Nodes that fill memory.

use cuda_handles::{Element, Error as HandleError, Slice};
use cuda_sys::{CUcontext, CUdeviceptr, CUgraphNodeParams, CUgraphNodeType};

use super::handle::{blank, typed};
use crate::detail::Detail;
use crate::error::Result;
use crate::frontier::{Frontier, owners_of};

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

impl Frontier<'_> {
    /// Adds a node that sets each element of `target` to `value`, of a type of 1, 2 or 4 bytes.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// A value of another size, no elements, memory of another context; a node of the frontier was removed; or what the driver answers.
    #[doc(alias = "cuGraphAddMemsetNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn fill<'a, T: Element>(&self, target: impl Into<Slice<'a, T>>, value: T) -> Result<MemsetNode> {
        let target = target.into();
        self.usable("the memory of a memset node", "memset", &target)?;
        let fill = fill_of(&target, value)?;
        let mut params = params(self.graph().context().as_raw(), &fill);
        let detail =
            Detail::Memset { address: fill.address, value: fill.value, width: fill.width, count: fill.count };
        self.add(detail, owners_of([target.allocation()]), &mut params).map(MemsetNode::wrap)
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

fn fill_of<T: Element>(target: &Slice<'_, T>, value: T) -> Result<Fill> {
    let bytes = bytemuck::bytes_of(&value);
    let value = match *bytes {
        [a] => u32::from(a),
        [a, b] => u32::from(u16::from_ne_bytes([a, b])),
        [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]),
        _ => return Err(HandleError::FillSize { bytes: bytes.len() }.into()),
    };
    let (address, size) = (target.address(), bytes.len());
    // A type whose alignment is less than its size may lie where the driver does not fill.
    if !address.is_multiple_of(size as u64) {
        return Err(HandleError::Cast { bytes: target.size_bytes(), address, size, align: size }.into());
    }
    Ok(Fill { address, value, width: size as u8, count: target.len() })
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
