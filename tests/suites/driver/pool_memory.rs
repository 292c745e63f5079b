//! Memory of pools and its figures. Seen on an H200, driver 580.159.04.

use std::ptr::null_mut;

use cuda_sys::*;
use cuda_tests::alone;

use crate::calls;
use crate::common::{IV, OK, Session, session};

const LEN: usize = 3 << 20;

fn device(s: &Session) -> CUdevice {
    let mut device = 0;
    assert_eq!(unsafe { s.cuCtxGetDevice(&mut device) }, OK);
    device
}

/// A pool of the device with at most that many bytes; 0 for no limit.
fn pool(s: &Session, most: usize) -> CUmemoryPool {
    let mut props = CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        maxSize: most,
        ..Default::default()
    };
    props.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    props.location.__bindgen_anon_1.id = device(s);
    let mut pool = null_mut();
    assert_eq!(unsafe { s.cuMemPoolCreate(&mut pool, &props) }, OK);
    pool
}

/// Bytes used, most bytes used, bytes reserved, most bytes reserved.
fn figures(s: &Session, pool: CUmemoryPool) -> [u64; 4] {
    type A = CUmemPool_attribute;
    let attributes = [
        A::CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
        A::CU_MEMPOOL_ATTR_USED_MEM_HIGH,
        A::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
        A::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
    ];
    attributes.map(|attribute| {
        let mut value = 0u64;
        assert_eq!(unsafe { s.cuMemPoolGetAttribute(pool, attribute, (&raw mut value).cast()) }, OK);
        value
    })
}

fn used(s: &Session, pool: CUmemoryPool) -> u64 {
    figures(s, pool)[0]
}

/// Makes a context and ends it again. Memory that was allocated in it.
fn allocated_in_another_context(s: &Session, pool: CUmemoryPool) -> CUdeviceptr {
    let (mut other, mut address, device) = (null_mut(), 0, device(s));
    unsafe {
        assert_eq!(s.cuCtxCreate(&mut other, null_mut(), 0, 0, device), OK);
        let stream = calls::stream(s);
        assert_eq!(s.cuMemAllocFromPoolAsync(&mut address, LEN, pool, stream), OK);
        assert_eq!(s.cuMemsetD32Async(address, 5, 1, stream), OK);
        assert_eq!(s.cuStreamSynchronize(stream), OK);
        assert_eq!(s.cuCtxDestroy(other), OK);
        assert_eq!(s.cuCtxSetCurrent(s.context), OK);
    }
    address
}

#[test]
fn memory_of_a_pool_outlives_the_context_of_its_stream() {
    alone!();
    let s = session();
    let pool = pool(&s, 0);
    let address = allocated_in_another_context(&s, pool);
    assert_eq!(used(&s, pool), LEN as u64);
    assert_eq!(s.read(address), 5);
    let (mut start, mut len) = (0, 0);
    unsafe {
        assert_eq!(s.cuMemGetAddressRange(&mut start, &mut len, address + 8), OK);
        assert_eq!((start, len), (address, LEN));
        assert_eq!(s.cuMemsetD32Async(address, 6, 1, s.stream), OK);
        assert_eq!(s.cuMemFreeAsync(address, s.stream), OK);
        s.wait();
        assert_eq!(used(&s, pool), 0);
        assert_eq!(s.cuMemFreeAsync(address, s.stream), IV);
        assert_eq!(s.cuMemPoolDestroy(pool), OK);
    }
}

#[test]
fn such_memory_is_freed_by_the_plain_call_too() {
    alone!();
    let s = session();
    let pool = pool(&s, 0);
    let address = allocated_in_another_context(&s, pool);
    unsafe {
        assert_eq!((s.cuMemFree(address), s.cuMemFree(address)), (OK, IV));
        assert_eq!(s.cuMemPoolDestroy(pool), OK);
    }
}

#[test]
fn a_refused_allocation_leaves_the_figures_as_they_are() {
    let s = session();
    let short = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
    let (mut one, mut two) = (0, 0);
    let (free, small) = (pool(&s, 0), pool(&s, 64 << 20));
    unsafe {
        for (pool, bytes, most) in [(free, 1 << 20, [1 << 40, usize::MAX]), (small, 48 << 20, [32 << 20; 2])]
        {
            assert_eq!(s.cuMemAllocFromPoolAsync(&mut one, bytes, pool, s.stream), OK);
            let before = figures(&s, pool);
            assert_eq!(before[..2], [bytes as u64; 2]);
            for bytes in most {
                assert_eq!(s.cuMemAllocFromPoolAsync(&mut two, bytes, pool, s.stream), short);
                assert_eq!(figures(&s, pool), before, "{bytes} bytes");
            }
            assert_eq!(s.cuMemFreeAsync(one, s.stream), OK);
            s.wait();
            assert_eq!(s.cuMemPoolDestroy(pool), OK);
        }
    }
}
