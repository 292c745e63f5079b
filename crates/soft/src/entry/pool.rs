//! Memory pools.

use core::ffi::{c_int, c_void};

use cuda_sys::{
    CUdevice, CUmemAllocationType, CUmemLocation, CUmemLocationType, CUmemPool_attribute, CUmemPoolProps,
    CUmemoryPool, cuuint64_t,
};

use super::Entries;
use crate::code::{Answer, INVALID_VALUE, NOT_SUPPORTED};
use crate::gate::{put, required};
use crate::handle::{number, to_raw};
use crate::pool;

pub(super) const fn add(entries: Entries) -> Entries {
    Entries {
        cuDeviceGetDefaultMemPool,
        cuDeviceGetMemPool,
        cuDeviceSetMemPool,
        cuMemPoolCreate,
        cuMemPoolDestroy,
        cuMemPoolGetAttribute,
        cuMemPoolSetAttribute,
        cuMemPoolTrimTo,
        ..entries
    }
}

type A = CUmemPool_attribute;

/// The device of a location, if it is one.
pub(super) fn device_of(location: &CUmemLocation) -> Option<CUdevice> {
    if location.type_ != CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE {
        return None;
    }
    // SAFETY: the location type says which field counts, and both begin with the number.
    Some(unsafe { location.__bindgen_anon_1.id })
}

entries! {
    live fn cuDeviceGetDefaultMemPool(out: *mut CUmemoryPool, dev: CUdevice) {
        put(out, to_raw(pool::default_of(dev)?))
    }

    live fn cuDeviceGetMemPool(out: *mut CUmemoryPool, dev: CUdevice) {
        put(out, to_raw(pool::current_of(dev)?))
    }

    live fn cuDeviceSetMemPool(dev: CUdevice, pool: CUmemoryPool) {
        pool::set_current(dev, number(pool))
    }

    guarded fn cuMemPoolCreate(out: *mut CUmemoryPool, props: *const CUmemPoolProps) {
        required(out)?;
        required(props)?;
        let props = &*props;
        if props.allocType != CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED {
            return Err(INVALID_VALUE);
        }
        if props.handleTypes.0 != 0 {
            return Err(NOT_SUPPORTED);
        }
        let device = device_of(&props.location).ok_or(NOT_SUPPORTED)?;
        put(out, to_raw(pool::create(device, props.maxSize as u64)?))
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
        let flag = || value.cast::<c_int>().read() != 0;
        let word = || value.cast::<cuuint64_t>().read();
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

    guarded fn cuMemPoolTrimTo(pool: CUmemoryPool, keep: usize) {
        let answer: Answer = pool::get(number(pool)).map(|pool| pool.trim(keep as u64));
        answer
    }
}
