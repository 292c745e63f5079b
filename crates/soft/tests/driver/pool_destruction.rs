//! The destruction of pools.

use std::ptr::null_mut;

use crate::common::*;
use crate::devices::enter;
use cuda_soft::{Config, control};
use cuda_sys::*;

fn pool(driver: &Driver) -> CUmemoryPool {
    let mut props = CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        ..Default::default()
    };
    props.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    let mut pool = null_mut();
    assert_eq!(unsafe { driver.cuMemPoolCreate(&mut pool, &props) }, OK);
    pool
}

fn allocate(driver: &Driver, pool: CUmemoryPool, stream: CUstream) -> CUdeviceptr {
    let mut address = 0;
    assert_eq!(unsafe { driver.cuMemAllocFromPoolAsync(&mut address, 1000, pool, stream) }, OK);
    address
}

fn used(driver: &Driver, pool: CUmemoryPool) -> u64 {
    let mut value = 0_u64;
    let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
    assert_eq!(unsafe { driver.cuMemPoolGetAttribute(pool, attribute, (&raw mut value).cast()) }, OK);
    value
}

#[test]
fn a_pool_cannot_be_destroyed_while_frees_are_pending() {
    aborts(
        "pool_destruction::a_pool_cannot_be_destroyed_while_frees_are_pending",
        "frees of its memory are pending",
        || {
            let driver = &session();
            let (pool, stream) = (pool(driver), stream(driver));
            let address = allocate(driver, pool, stream);
            let gate = Gate::close(driver, stream);
            unsafe {
                assert_eq!(driver.cuMemFreeAsync(address, stream), OK);
                let _ = driver.cuMemPoolDestroy(pool);
            }
            gate.open();
        },
    );
}

#[test]
fn memory_of_a_destroyed_pool_cannot_be_freed_in_order() {
    aborts(
        "pool_destruction::memory_of_a_destroyed_pool_cannot_be_freed_in_order",
        "whose pool is destroyed",
        || {
            let driver = &session();
            let (pool, stream) = (pool(driver), stream(driver));
            let address = allocate(driver, pool, stream);
            unsafe {
                assert_eq!(driver.cuMemPoolDestroy(pool), OK);
                let _ = driver.cuMemFreeAsync(address, stream);
            }
        },
    );
}

#[test]
fn a_pool_is_destroyed_once_its_frees_are_done() {
    let driver = &session();
    let (home, other) = (stream(driver), stream(driver));
    let mut event = null_mut();
    unsafe {
        assert_eq!(driver.cuEventCreate(&mut event, 2), OK);
        for by_event in [false, true] {
            let pool = pool(driver);
            let address = allocate(driver, pool, home);
            let (gate, behind) = (Gate::close(driver, home), allocate(driver, pool, other));
            assert_eq!(driver.cuMemFreeAsync(address, home), OK);
            assert_eq!(driver.cuMemFreeAsync(behind, home), OK);
            assert_eq!(driver.cuEventRecord(event, home), OK);
            assert_eq!(used(driver, pool), 2000);
            gate.open();
            if by_event {
                eventually("the event", || driver.cuEventQuery(event) == OK);
            } else {
                assert_eq!(driver.cuStreamSynchronize(home), OK);
            }
            assert_eq!(used(driver, pool), 0);
            assert_eq!(driver.cuMemPoolDestroy(pool), OK);
            assert_eq!(driver.cuMemPoolDestroy(pool), IV);
        }
        assert_eq!(driver.cuEventDestroy(event), OK);
        assert_eq!(driver.cuStreamDestroy(home), OK);
        assert_eq!(driver.cuStreamDestroy(other), OK);
    }
}

#[test]
fn memory_that_outlives_its_pool_counts_for_no_other() {
    let driver = &session();
    let (first, stream) = (pool(driver), stream(driver));
    let address = allocate(driver, first, stream);
    unsafe {
        assert_eq!(driver.cuMemPoolDestroy(first), OK);
        let mut from: CUmemoryPool = null_mut();
        assert_eq!(driver.cuMemAllocFromPoolAsync(&mut 0, 8, first, stream), IV);
        assert_eq!(driver.cuMemPoolTrimTo(first, 0), IV);
        let next = pool(driver);
        assert_ne!(next, first, "the handle is not free while memory has it");
        let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE;
        assert_eq!(driver.cuPointerGetAttribute((&raw mut from).cast(), attribute, address), OK);
        assert_eq!(from, first);
        let kept = allocate(driver, next, stream);
        assert_eq!(driver.cuMemsetD8Async(address, 1, 1000, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(driver.cuMemFree(address), OK);
        assert_eq!(used(driver, next), 1000);
        let again = pool(driver);
        assert_eq!(again, first, "now it is free");
        assert_eq!(used(driver, again), 0);
        assert_eq!(driver.cuMemFreeAsync(kept, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(driver.cuMemPoolDestroy(next), OK);
        assert_eq!(driver.cuMemPoolDestroy(again), OK);
        assert_eq!(driver.cuStreamDestroy(stream), OK);
    }
}

#[test]
fn memory_of_a_pool_outlives_a_reset() {
    alone("pool_destruction::memory_of_a_pool_outlives_a_reset", || {
        let driver = &session();
        let (pool, before) = (pool(driver), stream(driver));
        let (address, mut context) = (allocate(driver, pool, before), null_mut());
        unsafe {
            assert_eq!(driver.cuMemsetD32Async(address, 5, 1, before), OK);
            assert_eq!(driver.cuStreamSynchronize(before), OK);
            assert_eq!(driver.cuDevicePrimaryCtxReset(0), OK);
            assert_eq!(driver.cuDevicePrimaryCtxRetain(&mut context, 0), OK);
            assert_eq!(driver.cuCtxSetCurrent(context), OK);
            assert_eq!((used(driver, pool), read(driver, address, 1)), (1000, vec![5]));
            let after = stream(driver);
            assert_eq!(driver.cuMemFreeAsync(address, after), OK);
            assert_eq!(driver.cuStreamSynchronize(after), OK);
            assert_eq!(used(driver, pool), 0);
            assert_eq!(driver.cuStreamDestroy(after), OK);
            assert_eq!(driver.cuMemPoolDestroy(pool), OK);
        }
    });
}

/// A stream of a lost device executes no frees.
#[test]
fn a_free_that_is_never_executed_holds_nothing_up() {
    alone("pool_destruction::a_free_that_is_never_executed_holds_nothing_up", || {
        let driver = &session_with(Config::new().devices(2));
        enter(driver, 1);
        let there = stream(driver);
        enter(driver, 0);
        let (pool, here) = (pool(driver), stream(driver));
        let address = allocate(driver, pool, here);
        unsafe {
            assert_eq!(driver.cuStreamSynchronize(here), OK);
            let gate = Gate::close(driver, there);
            assert_eq!(driver.cuMemFreeAsync(address, there), OK);
            control::lose_device(1, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
            gate.open();
            eventually("the end of the free", || driver.cuMemFree(address) == OK);
            assert_eq!(used(driver, pool), 0);
            assert_eq!(driver.cuMemPoolDestroy(pool), OK);
        }
    });
}

/// Nothing can free memory of a lost device, so it ends with the context.
#[test]
fn memory_of_a_pool_ends_with_its_lost_device() {
    alone("pool_destruction::memory_of_a_pool_ends_with_its_lost_device", || {
        let driver = &session();
        let (pool, stream) = (pool(driver), stream(driver));
        allocate(driver, pool, stream);
        let memory =
            || control::live_objects().into_iter().find(|(kind, _)| *kind == "device allocations").unwrap().1;
        assert_eq!(memory(), 1);
        control::lose_device(0, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        assert_eq!(unsafe { driver.cuDevicePrimaryCtxRelease(0) }, OK);
        assert_eq!(memory(), 0);
    });
}
