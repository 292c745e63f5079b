//! Memory pool calls.

use core::ffi::{c_int, c_ulonglong, c_void};

use cuda_sys::{
    CUdevice, CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationHandleType,
    CUmemAllocationType, CUmemLocation, CUmemLocationType, CUmemPool_attribute, CUmemPoolProps,
    CUmemPoolPtrExportData, CUmemoryPool, cuuint64_t,
};

use super::table::Entries;
use crate::device::context::check_device;
use crate::driver;
use crate::driver::handle::{number, to_raw};
use crate::driver::pointer::{given, put, required, slice};
use crate::driver::result_code::{Answer, INVALID_VALUE, NOT_SUPPORTED, OPERATING_SYSTEM};
use crate::memory::pool::{self, Location, MANAGED_POOLS, Place, READ_WRITE};
use crate::memory::shared_file::{IDENTITY, Identity, Purpose};
use crate::memory::{self, Origin, Request};

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries {
        cuDeviceGetDefaultMemPool,
        cuDeviceGetMemPool,
        cuDeviceSetMemPool,
        cuMemGetDefaultMemPool,
        cuMemGetMemPool,
        cuMemSetMemPool,
        cuMemPoolCreate,
        cuMemPoolDestroy,
        cuMemPoolGetAttribute,
        cuMemPoolSetAttribute,
        cuMemPoolTrimTo,
        cuMemPoolSetAccess,
        cuMemPoolGetAccess,
        cuMemPoolExportToShareableHandle,
        cuMemPoolImportFromShareableHandle,
        cuMemPoolExportPointer,
        cuMemPoolImportPointer,
        ..entries
    }
}

type A = CUmemPool_attribute;

/// The handle type of file descriptors.
const DESCRIPTOR: u32 = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0;

/// The content of an exported pointer: the pool's file, the offset and the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Exported {
    pool: Identity,
    offset: u64,
    len: u64,
}

impl Exported {
    fn write(&self) -> CUmemPoolPtrExportData {
        let mut reserved = [0; 64];
        reserved[..IDENTITY].copy_from_slice(&self.pool.bytes());
        reserved[IDENTITY..][..8].copy_from_slice(&self.offset.to_le_bytes());
        reserved[IDENTITY + 8..][..8].copy_from_slice(&self.len.to_le_bytes());
        CUmemPoolPtrExportData { reserved }
    }

    fn read(data: &CUmemPoolPtrExportData) -> Option<Self> {
        let word = |at: usize| data.reserved.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        Some(Self {
            pool: Identity::read(&data.reserved, Purpose::Pool)?,
            offset: word(IDENTITY)?,
            len: word(IDENTITY + 8)?,
        })
    }
}

/// The device of a location, if it is a device.
pub(crate) fn device_of(location: &CUmemLocation) -> Option<CUdevice> {
    if location.type_ != CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE {
        return None;
    }
    // SAFETY: the location type says which field counts, and both begin with the number.
    Some(unsafe { location.__bindgen_anon_1.id })
}

/// The place that a location and a type name.
fn place(location: &CUmemLocation, kind: CUmemAllocationType) -> Answer<Place> {
    type T = CUmemLocationType;
    if location.type_ == T::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT {
        return Err(NOT_SUPPORTED);
    }
    let is_managed = match kind {
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED => false,
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED => true,
        _ => return Err(INVALID_VALUE),
    };
    // SAFETY: every type of location has the number, which only some of them mean.
    let number = unsafe { location.__bindgen_anon_1.id };
    let location = match location.type_ {
        T::CU_MEM_LOCATION_TYPE_NONE if is_managed => Location::Anywhere,
        T::CU_MEM_LOCATION_TYPE_DEVICE => Location::Device(number),
        T::CU_MEM_LOCATION_TYPE_HOST => Location::Host,
        T::CU_MEM_LOCATION_TYPE_HOST_NUMA => Location::HostNuma(number),
        _ => return Err(INVALID_VALUE),
    };
    Ok(Place { is_managed, location })
}

entries! {
    init fn cuDeviceGetDefaultMemPool(out: *mut CUmemoryPool, dev: CUdevice) {
        put(out, to_raw(pool::default_of(Place::device(dev))?))
    }

    live fn cuDeviceGetMemPool(out: *mut CUmemoryPool, dev: CUdevice) {
        put(out, to_raw(pool::current_of(Place::device(dev))?))
    }

    live fn cuDeviceSetMemPool(dev: CUdevice, pool: CUmemoryPool) {
        pool::set_current(Place::device(dev), number(pool))
    }

    live fn cuMemGetDefaultMemPool(out: *mut CUmemoryPool, location: *mut CUmemLocation, kind: CUmemAllocationType) {
        required(out)?;
        put(out, to_raw(pool::default_of(place(given(location)?, kind)?)?))
    }

    live fn cuMemGetMemPool(out: *mut CUmemoryPool, location: *mut CUmemLocation, kind: CUmemAllocationType) {
        required(out)?;
        put(out, to_raw(pool::current_of(place(given(location)?, kind)?)?))
    }

    live fn cuMemSetMemPool(location: *mut CUmemLocation, kind: CUmemAllocationType, pool: CUmemoryPool) {
        pool::set_current(place(given(location)?, kind)?, number(pool))
    }

    guarded fn cuMemPoolCreate(out: *mut CUmemoryPool, props: *const CUmemPoolProps) {
        required(out)?;
        let props = given(props)?;
        let place = place(&props.location, props.allocType)?;
        if place.is_managed && driver::version() < MANAGED_POOLS {
            return Err(INVALID_VALUE);
        }
        let shareable = match props.handleTypes.0 {
            0 => false,
            DESCRIPTOR => true,
            _ => return Err(NOT_SUPPORTED),
        };
        put(out, to_raw(pool::create(place, props.maxSize as u64, shareable)?))
    }

    live fn cuMemPoolDestroy(pool: CUmemoryPool) {
        pool::destroy(number(pool))
    }

    guarded fn cuMemPoolGetAttribute(pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void) {
        let pool = pool::get(number(pool))?;
        let settings = pool.settings();
        let [used, used_high, reserved, reserved_high] = pool.figures();
        let int = |flag: i32| put(value.cast::<c_int>(), flag);
        let word = |bytes: u64| put(value.cast::<cuuint64_t>(), bytes);
        match attr {
            A::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES => int(settings.follow_events.into()),
            A::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC => int(settings.opportunistic.into()),
            A::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES => int(settings.internal.into()),
            A::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => word(settings.threshold),
            A::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT => word(reserved),
            A::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH => word(reserved_high),
            A::CU_MEMPOOL_ATTR_USED_MEM_CURRENT => word(used),
            A::CU_MEMPOOL_ATTR_USED_MEM_HIGH => word(used_high),
            A::CU_MEMPOOL_ATTR_LOCATION_ID => int(pool.device),
            A::CU_MEMPOOL_ATTR_MAX_POOL_SIZE => word(pool.max()),
            _ => Err(INVALID_VALUE),
        }
    }

    guarded fn cuMemPoolSetAttribute(pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void) {
        let pool = pool::get(number(pool))?;
        required(value)?;
        let flag = || value.cast::<c_int>().read_unaligned() != 0;
        let word = || value.cast::<cuuint64_t>().read_unaligned();
        match attr {
            A::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES => pool.change(|own| own.follow_events = flag()),
            A::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC => pool.change(|own| own.opportunistic = flag()),
            A::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES => pool.change(|own| own.internal = flag()),
            A::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => pool.change(|own| own.threshold = word()),
            A::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH if word() == 0 => pool.reset_highs(false),
            A::CU_MEMPOOL_ATTR_USED_MEM_HIGH if word() == 0 => pool.reset_highs(true),
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }

    live fn cuMemPoolSetAccess(pool: CUmemoryPool, map: *const CUmemAccessDesc, count: usize) {
        let pool = pool::get(number(pool))?;
        let wanted = slice(map, count)?;
        // All are checked before any is set.
        for access in wanted {
            let device = device_of(&access.location).ok_or(INVALID_VALUE)?;
            check_device(device)?;
            if !matches!(access.flags.0, 0 | READ_WRITE) || (device == pool.device && access.flags.0 != READ_WRITE) {
                return Err(INVALID_VALUE);
            }
        }
        for access in wanted {
            if let Some(device) = device_of(&access.location) {
                pool.set_access(device, access.flags.0);
            }
        }
        Ok(())
    }

    live fn cuMemPoolGetAccess(flags: *mut CUmemAccess_flags, pool: CUmemoryPool, location: *mut CUmemLocation) {
        let location = given(location)?;
        let pool = pool::get(number(pool))?;
        let device = device_of(location).ok_or(INVALID_VALUE)?;
        check_device(device)?;
        put(flags, CUmemAccess_flags(pool.access(device)))
    }

    live fn cuMemPoolExportToShareableHandle(
        out: *mut c_void,
        pool: CUmemoryPool,
        kind: CUmemAllocationHandleType,
        flags: c_ulonglong,
    ) {
        required(out)?;
        let pool = pool::get(number(pool))?;
        if kind.0 != DESCRIPTOR || flags != 0 || pool.is_imported() {
            return Err(INVALID_VALUE);
        }
        let descriptor = pool.file().ok_or(INVALID_VALUE)?.export().map_err(|_| OPERATING_SYSTEM)?;
        put(out.cast::<c_int>(), descriptor)
    }

    live fn cuMemPoolImportFromShareableHandle(
        out: *mut CUmemoryPool,
        handle: *mut c_void,
        kind: CUmemAllocationHandleType,
        flags: c_ulonglong,
    ) {
        required(out)?;
        if kind.0 != DESCRIPTOR || flags != 0 {
            return Err(INVALID_VALUE);
        }
        let descriptor = c_int::try_from(handle.addr()).map_err(|_| INVALID_VALUE)?;
        put(out, to_raw(pool::import(descriptor)?))
    }

    live fn cuMemPoolExportPointer(out: *mut CUmemPoolPtrExportData, ptr: CUdeviceptr) {
        required(out)?;
        let found = memory::find_start(ptr).ok_or(INVALID_VALUE)?;
        let (_, offset) = found.shared_at().ok_or(INVALID_VALUE)?;
        let pool = pool::get(found.pool)?;
        let pool = pool.file().ok_or(INVALID_VALUE)?.identity();
        put(out, Exported { pool, offset, len: found.len as u64 }.write())
    }

    live fn cuMemPoolImportPointer(out: *mut CUdeviceptr, pool: CUmemoryPool, data: *mut CUmemPoolPtrExportData) {
        required(out)?;
        let data = given(data)?;
        let pool = pool::get(number(pool))?;
        let exported = Exported::read(data).ok_or(INVALID_VALUE)?;
        let file = pool.file().filter(|file| pool.is_imported() && file.identity() == exported.pool);
        let request = Request {
            origin: Origin::Imported,
            len: usize::try_from(exported.len).map_err(|_| INVALID_VALUE)?,
            device: pool.device,
            context: 0,
            pool: pool.handle,
            flags: 0,
        };
        let file = file.ok_or(INVALID_VALUE)?;
        let imported = pool.take(0, || memory::import(file, exported.offset, request))?;
        put(out, imported.start)
    }

    guarded fn cuMemPoolTrimTo(pool: CUmemoryPool, keep: usize) {
        let answer: Answer = pool::get(number(pool)).map(|pool| pool.trim(keep as u64));
        answer
    }
}
