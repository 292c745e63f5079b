//! The heap of the device's `malloc`, one for each context.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::common::*;
use cuda_sys::*;

const HEAP: &str = include_str!("../../src/ptx/tests/data/heap.ptx");
const SIZE: CUlimit = CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE;

/// Launches a kernel with one block, and waits for it.
fn launch(driver: &Driver, function: CUfunction, threads: u32, arguments: &mut [*mut c_void]) {
    let (none, arguments) = (null_mut(), arguments.as_mut_ptr());
    unsafe {
        let launched =
            driver.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, none, arguments, null_mut());
        assert_eq!((launched, driver.cuCtxSynchronize()), (OK, OK));
    }
}

/// The blocks of `size` bytes that fit into the heap of the current context.
fn room(driver: &Driver, function: CUfunction, mut size: u64) -> u32 {
    let mut count = words(driver, 1);
    launch(driver, function, 1, &mut [(&raw mut size).cast(), (&raw mut count).cast()]);
    let found = read(driver, count, 1)[0];
    assert_eq!(unsafe { driver.cuMemFree(count) }, OK);
    found
}

fn limit(driver: &Driver) -> usize {
    let mut bytes = 0;
    assert_eq!(unsafe { driver.cuCtxGetLimit(&mut bytes, SIZE) }, OK);
    bytes
}

#[test]
fn modules_of_a_context_share_a_heap() {
    let driver = &session();
    let (first, second) = (load(driver, HEAP), load(driver, HEAP));
    let (mut lists, mut sums, mut length) = (words(driver, 64), words(driver, 32), 10_u32);
    let fill = function(driver, first, "fill");
    launch(driver, fill, 32, &mut [(&raw mut lists).cast(), (&raw mut length).cast()]);
    // Blocks stay when the code is gone that allocated them.
    assert_eq!(unsafe { driver.cuLibraryUnload(first) }, OK);
    let drain = function(driver, second, "drain");
    launch(driver, drain, 32, &mut [(&raw mut lists).cast(), (&raw mut sums).cast()]);
    let expected: Vec<u32> = (0..32).map(|me| me * 1000 + 45).collect();
    assert_eq!(read(driver, sums, 32), expected);
    unsafe {
        assert_eq!((driver.cuMemFree(lists), driver.cuMemFree(sums)), (OK, OK));
        assert_eq!(driver.cuLibraryUnload(second), OK);
    }
}

#[test]
fn the_limit_is_the_size_until_kernels_allocate() {
    let driver = &session();
    let primary = context(driver);
    let mut other = null_mut();
    let library = load(driver, HEAP);
    unsafe {
        assert_eq!(driver.cuCtxCreate(&mut other, null_mut(), 0, 0, 0), OK);
        assert_eq!(limit(driver), 8 << 20);
        assert_eq!((driver.cuCtxSetLimit(SIZE, 16 << 20), driver.cuCtxSetLimit(SIZE, 1 << 20)), (OK, OK));
        let function = function(driver, library, "room");
        assert_eq!((limit(driver), room(driver, function, 1 << 20)), (4 << 20, 3));
        for bytes in [2 << 20, 4 << 20, 1 << 40, usize::MAX] {
            assert_eq!(driver.cuCtxSetLimit(SIZE, bytes), IV, "{bytes}");
        }
        assert_eq!((limit(driver), room(driver, function, 1 << 20)), (4 << 20, 3));
        assert_eq!(driver.cuCtxDestroy(other), OK);
        assert_eq!(driver.cuCtxSetCurrent(primary), OK);
    }
    assert_eq!(limit(driver), 8 << 20);
    assert_eq!(room(driver, function(driver, library, "room"), 1 << 20), 7);
    assert_eq!(unsafe { driver.cuLibraryUnload(library) }, OK);
}

#[test]
fn a_heap_is_no_larger_than_its_limit() {
    let driver = &session();
    let primary = context(driver);
    let library = load(driver, HEAP);
    // Of 4 GiB the largest heap has an eighth; the largest numbers wrap around.
    for (wanted, bytes, fit) in [(1 << 60, 512 << 20, 511), (usize::MAX, 0, 0)] {
        let mut other = null_mut();
        unsafe {
            assert_eq!(driver.cuCtxCreate(&mut other, null_mut(), 0, 0, 0), OK);
            assert_eq!(driver.cuCtxSetLimit(SIZE, wanted), OK);
            let function = function(driver, library, "room");
            assert_eq!((limit(driver), room(driver, function, 1 << 20)), (bytes, fit));
            assert_eq!(driver.cuCtxDestroy(other), OK);
            assert_eq!(driver.cuCtxSetCurrent(primary), OK);
        }
    }
    assert_eq!(unsafe { driver.cuLibraryUnload(library) }, OK);
}
