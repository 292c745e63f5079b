//! Array calls: creation, descriptions, and copies of bytes in one row. `copy.rs` has the copies of
//! boxes.

use core::ffi::c_void;
use std::sync::Arc;

use cuda_sys::{
    CUDA_ARRAY_DESCRIPTOR_v2, CUDA_ARRAY3D_DESCRIPTOR_v2, CUDA_MEMCPY3D_v2, CUarray, CUdeviceptr,
    CUmemorytype, CUstream,
};

use super::copy::shaped;
use super::table::Entries;
use crate::device::context::current;
use crate::driver::handle::{number, to_raw};
use crate::driver::pointer::{given, put, required};
use crate::driver::result_code::Answer;
use crate::memory;
use crate::memory::array::{self, Array};
use crate::stream;

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries {
        cuArrayCreate,
        cuArray3DCreate,
        cuArrayGetDescriptor,
        cuArray3DGetDescriptor,
        cuArrayDestroy,
        cuMemcpyHtoA,
        cuMemcpyHtoAAsync,
        cuMemcpyAtoH,
        cuMemcpyAtoHAsync,
        cuMemcpyDtoA,
        cuMemcpyAtoD,
        cuMemcpyAtoA,
        ..entries
    }
}

fn get(handle: CUarray) -> Answer<Arc<Array>> {
    array::get(number(handle))
}

/// # Safety
/// `out` is null or valid for a write.
unsafe fn create(out: *mut CUarray, raw: &CUDA_ARRAY3D_DESCRIPTOR_v2) -> Answer {
    required(out)?;
    // SAFETY: not null, and so valid by the caller's promise.
    unsafe { put(out, to_raw(array::create(&*current()?, raw)?)) }
}

/// One side of a copy of one row.
enum Side {
    Array(CUarray, usize),
    Device(CUdeviceptr),
    Host(*mut c_void),
}

/// Copies `len` bytes within a row.
///
/// # Safety
/// Host memory is valid for `len` bytes, a destination for writes.
unsafe fn row(dst: Side, src: Side, len: usize, stream: Option<CUstream>) -> Answer {
    if stream.is_none() {
        current()?;
    }
    if len == 0 {
        return Ok(());
    }
    let mut raw = CUDA_MEMCPY3D_v2 { WidthInBytes: len, Height: 1, Depth: 1, ..Default::default() };
    match src {
        Side::Array(array, offset) => {
            raw.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
            (raw.srcArray, raw.srcXInBytes) = (array, offset);
        }
        Side::Device(address) => {
            (raw.srcMemoryType, raw.srcDevice) = (CUmemorytype::CU_MEMORYTYPE_DEVICE, address);
        }
        Side::Host(host) => {
            (raw.srcMemoryType, raw.srcHost) = (CUmemorytype::CU_MEMORYTYPE_HOST, host);
        }
    }
    match dst {
        Side::Array(array, offset) => {
            raw.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
            (raw.dstArray, raw.dstXInBytes) = (array, offset);
        }
        Side::Device(address) => {
            (raw.dstMemoryType, raw.dstDevice) = (CUmemorytype::CU_MEMORYTYPE_DEVICE, address);
        }
        Side::Host(host) => {
            (raw.dstMemoryType, raw.dstHost) = (CUmemorytype::CU_MEMORYTYPE_HOST, host);
        }
    }
    // SAFETY: the caller's promise.
    unsafe { shaped(&raw, stream) }
}

entries! {
    guarded fn cuArrayCreate(p_handle: *mut CUarray, p_allocate_array: *const CUDA_ARRAY_DESCRIPTOR_v2) {
        let raw = given(p_allocate_array)?;
        let raw = CUDA_ARRAY3D_DESCRIPTOR_v2 {
            Width: raw.Width,
            Height: raw.Height,
            Format: raw.Format,
            NumChannels: raw.NumChannels,
            ..Default::default()
        };
        create(p_handle, &raw)
    }

    guarded fn cuArray3DCreate(p_handle: *mut CUarray, p_allocate_array: *const CUDA_ARRAY3D_DESCRIPTOR_v2) {
        create(p_handle, given(p_allocate_array)?)
    }

    live fn cuArrayGetDescriptor(p_array_descriptor: *mut CUDA_ARRAY_DESCRIPTOR_v2, h_array: CUarray) {
        let raw = get(h_array)?.descriptor;
        required(p_array_descriptor)?;
        let (width, height) = (raw.Width, raw.Height);
        put(p_array_descriptor, CUDA_ARRAY_DESCRIPTOR_v2 {
            Width: width,
            Height: height,
            Format: raw.Format,
            NumChannels: raw.NumChannels,
        })
    }

    live fn cuArray3DGetDescriptor(p_array_descriptor: *mut CUDA_ARRAY3D_DESCRIPTOR_v2, h_array: CUarray) {
        let array = get(h_array)?;
        required(p_array_descriptor)?;
        put(p_array_descriptor, array.descriptor)
    }

    guarded fn cuArrayDestroy(h_array: CUarray) {
        let gone = array::destroy(number(h_array))?;
        stream::while_idle(|| memory::remove(&gone.memory, "cuArrayDestroy"));
        Ok(())
    }

    live fn cuMemcpyHtoA(dst_array: CUarray, dst_offset: usize, src_host: *const c_void, byte_count: usize) {
        row(Side::Array(dst_array, dst_offset), Side::Host(src_host.cast_mut()), byte_count, None)
    }

    owned fn cuMemcpyHtoAAsync(
        dst_array: CUarray,
        dst_offset: usize,
        src_host: *const c_void,
        byte_count: usize,
        h_stream: CUstream,
    ) {
        row(Side::Array(dst_array, dst_offset), Side::Host(src_host.cast_mut()), byte_count, Some(h_stream))
    }

    live fn cuMemcpyAtoH(dst_host: *mut c_void, src_array: CUarray, src_offset: usize, byte_count: usize) {
        row(Side::Host(dst_host), Side::Array(src_array, src_offset), byte_count, None)
    }

    owned fn cuMemcpyAtoHAsync(
        dst_host: *mut c_void,
        src_array: CUarray,
        src_offset: usize,
        byte_count: usize,
        h_stream: CUstream,
    ) {
        row(Side::Host(dst_host), Side::Array(src_array, src_offset), byte_count, Some(h_stream))
    }

    live fn cuMemcpyDtoA(dst_array: CUarray, dst_offset: usize, src_device: CUdeviceptr, byte_count: usize) {
        row(Side::Array(dst_array, dst_offset), Side::Device(src_device), byte_count, None)
    }

    live fn cuMemcpyAtoD(dst_device: CUdeviceptr, src_array: CUarray, src_offset: usize, byte_count: usize) {
        row(Side::Device(dst_device), Side::Array(src_array, src_offset), byte_count, None)
    }

    live fn cuMemcpyAtoA(
        dst_array: CUarray,
        dst_offset: usize,
        src_array: CUarray,
        src_offset: usize,
        byte_count: usize,
    ) {
        row(Side::Array(dst_array, dst_offset), Side::Array(src_array, src_offset), byte_count, None)
    }
}
