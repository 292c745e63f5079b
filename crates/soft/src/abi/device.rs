//! Device and primary context calls.

use core::ffi::{CStr, c_char, c_int, c_uint};

use cuda_sys::{
    CUcontext, CUctx_flags, CUdevice, CUdevice_attribute, CUdevice_attribute_enum as A, CUdevprop, CUuuid,
};

use super::memory::release;
use super::table::Entries;
use crate::device::context::{self, Context, check_device};
use crate::device::loss;
use crate::device::properties;
use crate::driver;
use crate::driver::handle::to_raw;
use crate::driver::pointer::{put, required};
use crate::driver::result_code::{Answer, INVALID_DEVICE, INVALID_VALUE};
use crate::graph::exec::lifetimes;
use crate::memory;
use crate::module;
use crate::stream;
use crate::stream::event;

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries {
        cuDeviceGet,
        cuDeviceGetCount,
        cuDeviceGetName,
        cuDeviceGetAttribute,
        cuDeviceTotalMem,
        cuDeviceGetUuid,
        cuDeviceComputeCapability,
        cuDeviceGetPCIBusId,
        cuDeviceGetByPCIBusId,
        cuDeviceGetProperties,
        cuDevicePrimaryCtxRetain,
        cuDevicePrimaryCtxRelease,
        cuDevicePrimaryCtxReset,
        cuDevicePrimaryCtxGetState,
        cuDevicePrimaryCtxSetFlags,
        ..entries
    }
}

/// Checks context flags: at most one scheduling policy, mapped host memory, local memory resize,
/// core dumps, synchronous memory operations.
pub(crate) fn check_flags(flags: c_uint) -> Answer {
    let scheduling = flags & CUctx_flags::CU_CTX_SCHED_MASK.0;
    let known = flags & !CUctx_flags::CU_CTX_FLAGS_MASK.0 == 0;
    if known && matches!(scheduling, 0 | 1 | 2 | 4) { Ok(()) } else { Err(INVALID_VALUE) }
}

/// Ends everything that belongs to a context. On a lost device, calls still know its streams,
/// events and modules.
pub(crate) fn end(context: &Context) {
    stream::while_idle(|| ());
    if !loss::is_lost(context.device) {
        stream::forget_context(context);
        module::forget_context(context);
        event::forget_context(context);
    }
    lifetimes::forget_context(context.handle);
    memory::texture::forget_context(context);
    memory::array::forget_context(context);
    for allocation in memory::all(|allocation| allocation.context == context.handle) {
        memory::remove(&allocation, "the end of the context");
    }
    // Memory of pools outlives its context, but nothing can free it on a lost device.
    if loss::is_lost(context.device) {
        for allocation in
            memory::all(|allocation| allocation.pool != 0 && allocation.device == context.device)
        {
            release(&allocation, "the end of the lost device");
        }
    }
}

/// # Safety
/// `out` is valid for `len` bytes.
unsafe fn write_text(out: *mut c_char, len: c_int, text: &str) -> Answer {
    required(out)?;
    let room = usize::try_from(len).ok().and_then(|len| len.checked_sub(1)).ok_or(INVALID_VALUE)?;
    let bytes = text.as_bytes();
    let len = bytes.len().min(room);
    // SAFETY: `len` bytes and the end fit into the room that the caller promised.
    unsafe {
        out.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), len);
        out.add(len).write(0);
    }
    Ok(())
}

/// The bus that a text names as `domain:bus:device.function`, without the domain, or without the
/// function. All other numbers are 0.
fn pci_bus(text: &str) -> Option<u32> {
    let hexadecimal = |part: &str| u32::from_str_radix(part, 16).ok();
    let (rest, function) = match text.rsplit_once('.') {
        Some((rest, function)) => (rest, Some(hexadecimal(function)?)),
        None => (text, None),
    };
    let parts = rest.split(':').map(hexadecimal).collect::<Option<Vec<_>>>()?;
    let (others, bus) = match (parts[..].split_last()?, function) {
        ((device, [domain, bus]), _) => (domain | device | function.unwrap_or(0), *bus),
        ((device, [bus]), Some(function)) => (device | function, *bus),
        _ => return None,
    };
    // No device has another number than 0, nor the bus 0.
    Some(if others == 0 { bus } else { 0 })
}

entries! {
    init fn cuDeviceGet(out: *mut CUdevice, ordinal: c_int) {
        check_device(ordinal)?;
        put(out, ordinal)
    }

    init fn cuDeviceGetCount(count: *mut c_int) {
        put(count, c_int::try_from(driver::config().devices).unwrap_or(c_int::MAX))
    }

    init fn cuDeviceGetName(name: *mut c_char, len: c_int, dev: CUdevice) {
        check_device(dev)?;
        write_text(name, len, properties::NAME)
    }

    init fn cuDeviceGetAttribute(pi: *mut c_int, attrib: CUdevice_attribute, dev: CUdevice) {
        check_device(dev)?;
        put(pi, properties::attribute(attrib, dev)?)
    }

    init fn cuDeviceTotalMem(bytes: *mut usize, dev: CUdevice) {
        check_device(dev)?;
        put(bytes, usize::try_from(driver::config().memory).unwrap_or(usize::MAX))
    }

    init fn cuDeviceGetUuid(uuid: *mut CUuuid, dev: CUdevice) {
        check_device(dev)?;
        put(uuid, CUuuid { bytes: properties::uuid(dev).map(|byte| byte as c_char) })
    }

    init fn cuDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, dev: CUdevice) {
        check_device(dev)?;
        let (own_major, own_minor) = driver::config().capability;
        required(major)?;
        required(minor)?;
        put(major, c_int::try_from(own_major).unwrap_or(c_int::MAX))?;
        put(minor, c_int::try_from(own_minor).unwrap_or(c_int::MAX))
    }

    init fn cuDeviceGetPCIBusId(pci_bus_id: *mut c_char, len: c_int, dev: CUdevice) {
        check_device(dev)?;
        write_text(pci_bus_id, len, &format!("0000:{:02X}:00.0", dev + 1))
    }

    init fn cuDeviceGetByPCIBusId(dev: *mut CUdevice, pci_bus_id: *const c_char) {
        required(dev)?;
        required(pci_bus_id)?;
        let text = CStr::from_ptr(pci_bus_id).to_str().map_err(|_| INVALID_VALUE)?;
        let bus = pci_bus(text).ok_or(INVALID_VALUE)?;
        let device = CUdevice::try_from(bus).ok().and_then(|bus| bus.checked_sub(1)).ok_or(INVALID_DEVICE)?;
        check_device(device)?;
        put(dev, device)
    }

    init fn cuDeviceGetProperties(prop: *mut CUdevprop, dev: CUdevice) {
        required(prop)?;
        check_device(dev)?;
        let of = |attribute| properties::attribute(attribute, dev);
        put(prop, CUdevprop {
            maxThreadsPerBlock: of(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            maxThreadsDim: [
                of(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
                of(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
                of(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
            ],
            maxGridSize: [
                of(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                of(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                of(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ],
            sharedMemPerBlock: of(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
            totalConstantMemory: of(A::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY)?,
            SIMDWidth: of(A::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
            memPitch: of(A::CU_DEVICE_ATTRIBUTE_MAX_PITCH)?,
            regsPerBlock: of(A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)?,
            clockRate: of(A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
            textureAlign: of(A::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)?,
        })
    }

    init fn cuDevicePrimaryCtxRetain(pctx: *mut CUcontext, dev: CUdevice) {
        required(pctx)?;
        put(pctx, to_raw(context::retain_primary(dev)?))
    }

    init fn cuDevicePrimaryCtxRelease(dev: CUdevice) {
        if let Some(ended) = context::release_primary(dev)? {
            end(&ended);
        }
        Ok(())
    }

    init fn cuDevicePrimaryCtxReset(dev: CUdevice) {
        if let Some(ended) = context::reset_primary(dev)? {
            end(&ended);
        }
        Ok(())
    }

    init fn cuDevicePrimaryCtxGetState(dev: CUdevice, flags: *mut c_uint, active: *mut c_int) {
        required(flags)?;
        required(active)?;
        let (own_flags, is_active) = context::primary_state(dev)?;
        put(flags, own_flags)?;
        put(active, c_int::from(is_active))
    }

    init fn cuDevicePrimaryCtxSetFlags(dev: CUdevice, flags: c_uint) {
        if dev < 0 {
            return Err(INVALID_DEVICE);
        }
        check_flags(flags)?;
        if flags & CUctx_flags::CU_CTX_MAP_HOST.0 != 0 {
            return Err(INVALID_VALUE);
        }
        context::set_primary_flags(dev, flags)
    }
}
