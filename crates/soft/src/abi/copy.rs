//! Copy and fill calls.

use core::ffi::{c_uchar, c_uint, c_ushort, c_void};
use std::sync::Arc;

use cuda_sys::{CUDA_MEMCPY2D_v2, CUDA_MEMCPY3D_v2, CUdeviceptr, CUresult, CUstream};

use super::table::Entries;
use crate::device::context::{current, current_handle};
use crate::device::loss;
use crate::driver::handle::number;
use crate::driver::pointer::given;
use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::graph::capture;
use crate::graph::model::task::{CopyNode, FillNode, Task};
use crate::graph::params::parse::check_reach;
use crate::memory;
use crate::memory::copy::Copy3;
use crate::memory::copy_params;
use crate::memory::fill::Fill;
use crate::memory::memory_kind::{Accept, MemoryKind};
use crate::stream::{self, Stream};

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries {
        cuMemcpy,
        cuMemcpyAsync,
        cuMemcpyHtoD,
        cuMemcpyHtoDAsync,
        cuMemcpyDtoH,
        cuMemcpyDtoHAsync,
        cuMemcpyDtoD,
        cuMemcpyDtoDAsync,
        cuMemcpy2D,
        cuMemcpy2DUnaligned: cuMemcpy2D,
        cuMemcpy2DAsync,
        cuMemcpy3D,
        cuMemcpy3DAsync,
        cuMemsetD8,
        cuMemsetD8Async,
        cuMemsetD16,
        cuMemsetD16Async,
        cuMemsetD32,
        cuMemsetD32Async,
        cuMemsetD2D8,
        cuMemsetD2D8Async,
        cuMemsetD2D16,
        cuMemsetD2D16Async,
        cuMemsetD2D32,
        cuMemsetD2D32Async,
        ..entries
    }
}

/// Which pools of other devices a copy takes memory of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pools {
    /// Those that grant access to the device of the current context, whatever the stream; without a
    /// current context, to the device of the stream's.
    Granted,
    /// All: the call names the contexts of its memory.
    All,
}

impl Pools {
    fn check(self, copy: &Copy3, stream: &Stream) -> Answer {
        if self == Self::All {
            return Ok(());
        }
        let context = match current_handle() {
            0 => stream.context.handle,
            current => current,
        };
        check_reach(&[copy.src.address, copy.dst.address], context)
    }
}

/// Enqueues a copy. A pageable source is read before this returns; a pageable destination is
/// written before this returns. A captured copy is described by `describe`.
///
/// # Safety
/// Host memory of the copy is valid as CUDA's documentation demands.
unsafe fn enqueue(
    copy: Copy3,
    describe: fn(&Copy3) -> CUDA_MEMCPY3D_v2,
    pools: Pools,
    stream: &Arc<Stream>,
    wait: bool,
) -> Answer {
    if copy.is_empty() {
        return Ok(());
    }
    let is_captured = capture::is_captured(stream)?;
    pools.check(&copy, stream)?;
    if is_captured {
        let context = stream.context.handle;
        // Copies from or to the host are not concerned.
        let sides = [&copy.src, &copy.dst];
        let has_no_context = current_handle() == 0
            && sides.iter().any(|side| !side.has_context)
            && !sides.iter().any(|side| side.place.is_host());
        let node = CopyNode { raw: describe(&copy), copy, context, has_no_context };
        return capture::add(stream, Task::Copy(Arc::new(node)), false).map(drop);
    }
    if memory::is_read_only(copy.dst.address) {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    let staged = unsafe { copy.stage()? };
    let ticket = stream.push(move || {
        // SAFETY: pageable memory is valid until the call that waits returns; the rest is checked.
        unsafe { copy.run(staged.as_deref()) }
    });
    if wait || copy.dst.place == MemoryKind::Pageable {
        ticket.wait();
        if wait {
            loss::check_device(stream.context.device)?;
        }
    }
    Ok(())
}

/// A linear copy; `device` says which side must be device memory.
///
/// # Safety
/// As [`enqueue`].
pub(super) unsafe fn linear(
    dst: u64,
    src: u64,
    len: usize,
    device: [bool; 2],
    stream: Option<CUstream>,
) -> Answer {
    // SAFETY: the caller's promise.
    unsafe { linear_of(Pools::Granted, dst, src, len, device, stream) }
}

/// As [`linear`], of memory of these pools.
///
/// # Safety
/// As [`enqueue`].
pub(super) unsafe fn linear_of(
    pools: Pools,
    dst: u64,
    src: u64,
    len: usize,
    device: [bool; 2],
    stream: Option<CUstream>,
) -> Answer {
    let on = match stream {
        Some(raw) => stream::get(number(raw))?,
        None => {
            current()?;
            stream::get(0)?
        }
    };
    if len == 0 {
        return Ok(());
    }
    if dst == 0 || src == 0 {
        return Err(INVALID_VALUE);
    }
    let accept = if capture::is_captured(&on)? { Accept::Reserved } else { Accept::Allocated };
    let copy = Copy3::linear(dst, src, len, accept)?;
    let sides = [copy.dst.place, copy.src.place];
    if sides.iter().zip(device).any(|(place, device)| device && *place == MemoryKind::Pageable) {
        return Err(INVALID_VALUE);
    }
    let describe = if device == [ANY, ANY] { Copy3::describe_unified } else { Copy3::describe_row };
    // SAFETY: the caller's promise.
    unsafe { enqueue(copy, describe, pools, &on, stream.is_none()) }
}

/// # Safety
/// As [`enqueue`].
pub(super) unsafe fn shaped(raw: &CUDA_MEMCPY3D_v2, stream: Option<CUstream>) -> Answer {
    // SAFETY: the caller's promise.
    unsafe { shaped_of(Pools::Granted, raw, stream) }
}

/// As [`shaped`], of memory of these pools.
///
/// # Safety
/// As [`enqueue`].
pub(super) unsafe fn shaped_of(pools: Pools, raw: &CUDA_MEMCPY3D_v2, stream: Option<CUstream>) -> Answer {
    let on = match stream {
        Some(raw) => stream::get(number(raw))?,
        None => stream::get(0)?,
    };
    // A captured copy may name memory that a graph will allocate. An empty copy is nothing to do
    // anywhere.
    let nothing = [raw.WidthInBytes, raw.Height, raw.Depth].contains(&0);
    let accept = if !nothing && capture::is_captured(&on)? { Accept::Reserved } else { Accept::Allocated };
    let copy = copy_params::parse(raw, accept)?;
    // SAFETY: the caller's promise.
    unsafe { enqueue(copy, Copy3::describe, pools, &on, stream.is_none()) }
}

fn fill(fill: Fill, stream: Option<CUstream>) -> Answer {
    let on = match stream {
        Some(raw) => stream::get(number(raw))?,
        None => stream::get(0)?,
    };
    if fill.width == 0 || fill.height == 0 {
        return Ok(());
    }
    if capture::is_captured(&on)? {
        // Only the alignment of a captured fill is checked, not its memory.
        if !fill.is_aligned() {
            return Err(INVALID_VALUE);
        }
        let context = on.context.handle;
        return capture::add(&on, Task::Fill(FillNode { fill, context, is_captured: true }), false).map(drop);
    }
    fill.check(Accept::Allocated)?;
    // Of a call without a stream, the stream is the current context's.
    check_reach(&[fill.address], on.context.handle)?;
    if memory::is_read_only(fill.address) {
        return Err(INVALID_VALUE);
    }
    let ticket = on.push(move || fill.run(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS));
    if stream.is_none() {
        ticket.wait();
        loss::check_device(on.context.device)?;
    }
    Ok(())
}

fn row(address: CUdeviceptr, value: u32, element: u32, width: usize) -> Fill {
    Fill { address, pitch: 0, value, element, width, height: 1 }
}

pub(super) const DEVICE: bool = true;
pub(super) const ANY: bool = false;

entries! {
    live fn cuMemcpy(dst: CUdeviceptr, src: CUdeviceptr, len: usize) {
        linear(dst, src, len, [ANY, ANY], None)
    }

    owned fn cuMemcpyAsync(dst: CUdeviceptr, src: CUdeviceptr, len: usize, h_stream: CUstream) {
        linear(dst, src, len, [ANY, ANY], Some(h_stream))
    }

    live fn cuMemcpyHtoD(dst: CUdeviceptr, src: *const c_void, len: usize) {
        linear(dst, src.expose_provenance() as u64, len, [DEVICE, ANY], None)
    }

    owned fn cuMemcpyHtoDAsync(dst: CUdeviceptr, src: *const c_void, len: usize, h_stream: CUstream) {
        linear(dst, src.expose_provenance() as u64, len, [DEVICE, ANY], Some(h_stream))
    }

    live fn cuMemcpyDtoH(dst: *mut c_void, src: CUdeviceptr, len: usize) {
        linear(dst.expose_provenance() as u64, src, len, [ANY, DEVICE], None)
    }

    owned fn cuMemcpyDtoHAsync(dst: *mut c_void, src: CUdeviceptr, len: usize, h_stream: CUstream) {
        linear(dst.expose_provenance() as u64, src, len, [ANY, DEVICE], Some(h_stream))
    }

    live fn cuMemcpyDtoD(dst: CUdeviceptr, src: CUdeviceptr, len: usize) {
        linear(dst, src, len, [DEVICE, DEVICE], None)
    }

    owned fn cuMemcpyDtoDAsync(dst: CUdeviceptr, src: CUdeviceptr, len: usize, h_stream: CUstream) {
        linear(dst, src, len, [DEVICE, DEVICE], Some(h_stream))
    }

    live fn cuMemcpy2D(copy: *const CUDA_MEMCPY2D_v2) {
        shaped(&copy_params::widen(given(copy)?), None)
    }

    owned fn cuMemcpy2DAsync(copy: *const CUDA_MEMCPY2D_v2, h_stream: CUstream) {
        shaped(&copy_params::widen(given(copy)?), Some(h_stream))
    }

    live fn cuMemcpy3D(copy: *const CUDA_MEMCPY3D_v2) {
        shaped(given(copy)?, None)
    }

    owned fn cuMemcpy3DAsync(copy: *const CUDA_MEMCPY3D_v2, h_stream: CUstream) {
        shaped(given(copy)?, Some(h_stream))
    }

    live fn cuMemsetD8(dst: CUdeviceptr, value: c_uchar, n: usize) {
        fill(row(dst, value.into(), 1, n), None)
    }

    owned_in_callbacks fn cuMemsetD8Async(dst: CUdeviceptr, value: c_uchar, n: usize, h_stream: CUstream) {
        fill(row(dst, value.into(), 1, n), Some(h_stream))
    }

    live fn cuMemsetD16(dst: CUdeviceptr, value: c_ushort, n: usize) {
        fill(row(dst, value.into(), 2, n), None)
    }

    owned_in_callbacks fn cuMemsetD16Async(dst: CUdeviceptr, value: c_ushort, n: usize, h_stream: CUstream) {
        fill(row(dst, value.into(), 2, n), Some(h_stream))
    }

    live fn cuMemsetD32(dst: CUdeviceptr, value: c_uint, n: usize) {
        fill(row(dst, value, 4, n), None)
    }

    owned_in_callbacks fn cuMemsetD32Async(dst: CUdeviceptr, value: c_uint, n: usize, h_stream: CUstream) {
        fill(row(dst, value, 4, n), Some(h_stream))
    }

    live fn cuMemsetD2D8(dst: CUdeviceptr, pitch: usize, value: c_uchar, width: usize, height: usize) {
        fill(Fill { pitch, height, ..row(dst, value.into(), 1, width) }, None)
    }

    owned_in_callbacks fn cuMemsetD2D8Async(
        dst: CUdeviceptr,
        pitch: usize,
        value: c_uchar,
        width: usize,
        height: usize,
        h_stream: CUstream,
    ) {
        fill(Fill { pitch, height, ..row(dst, value.into(), 1, width) }, Some(h_stream))
    }

    live fn cuMemsetD2D16(dst: CUdeviceptr, pitch: usize, value: c_ushort, width: usize, height: usize) {
        fill(Fill { pitch, height, ..row(dst, value.into(), 2, width) }, None)
    }

    owned_in_callbacks fn cuMemsetD2D16Async(
        dst: CUdeviceptr,
        pitch: usize,
        value: c_ushort,
        width: usize,
        height: usize,
        h_stream: CUstream,
    ) {
        fill(Fill { pitch, height, ..row(dst, value.into(), 2, width) }, Some(h_stream))
    }

    live fn cuMemsetD2D32(dst: CUdeviceptr, pitch: usize, value: c_uint, width: usize, height: usize) {
        fill(Fill { pitch, height, ..row(dst, value, 4, width) }, None)
    }

    owned_in_callbacks fn cuMemsetD2D32Async(
        dst: CUdeviceptr,
        pitch: usize,
        value: c_uint,
        width: usize,
        height: usize,
        h_stream: CUstream,
    ) {
        fill(Fill { pitch, height, ..row(dst, value, 4, width) }, Some(h_stream))
    }
}
