//! Calls about memory that graphs have mapped.

use core::ffi::c_void;

use cuda_sys::{CUdevice, CUgraphMem_attribute, cuuint64_t};

use crate::abi::table::Entries;
use crate::device::context::check_device;
use crate::driver::pointer::{put, required};
use crate::driver::result_code::INVALID_VALUE;
use crate::memory::graph_mapping;

pub(super) const fn add(entries: Entries) -> Entries {
    Entries { cuDeviceGetGraphMemAttribute, cuDeviceSetGraphMemAttribute, cuDeviceGraphMemTrim, ..entries }
}

entries! {
    live fn cuDeviceGetGraphMemAttribute(dev: CUdevice, attribute: CUgraphMem_attribute, value: *mut c_void) {
        check_device(dev)?;
        let figures = graph_mapping::figures(dev);
        let bytes = match attribute {
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT => figures.used,
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT => figures.reserved,
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH => figures.used_high,
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH => figures.reserved_high,
            _ => return Err(INVALID_VALUE),
        };
        put(value.cast::<cuuint64_t>(), bytes)
    }

    live fn cuDeviceSetGraphMemAttribute(dev: CUdevice, attribute: CUgraphMem_attribute, value: *mut c_void) {
        check_device(dev)?;
        required(value)?;
        if value.cast::<cuuint64_t>().read_unaligned() != 0 {
            return Err(INVALID_VALUE);
        }
        match attribute {
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH => graph_mapping::reset_used_high(dev),
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH => graph_mapping::reset_reserved_high(dev),
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }

    live fn cuDeviceGraphMemTrim(dev: CUdevice) {
        check_device(dev)?;
        graph_mapping::trim(dev);
        Ok(())
    }
}
