//! Basic raw calls, against results observed on a real driver.

use std::ffi::{CStr, CString, c_void};
use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_sys::*;

#[test]
fn launch_runs_a_kernel_with_copied_parameters() {
    let driver = &session();
    let library = library(driver);
    let (function, stream) = (function(driver, library, "fill"), stream(driver));
    let (mut address, mut n, mut value) = (words(driver, 100), 90u32, 5u32);
    let mut arguments: [*mut c_void; 3] =
        [(&raw mut address).cast(), (&raw mut n).cast(), (&raw mut value).cast()];
    let gate = Gate::close(driver, stream);
    let launch = |arguments: &mut [*mut c_void; 3]| unsafe {
        driver.cuLaunchKernel(function, 4, 1, 1, 32, 1, 1, 0, stream, arguments.as_mut_ptr(), null_mut())
    };
    assert_eq!(launch(&mut arguments), OK);
    unsafe { (&raw mut value).write(9) };
    assert_eq!(unsafe { driver.cuStreamQuery(stream) }, CUresult::CUDA_ERROR_NOT_READY);
    gate.open();
    assert_eq!(unsafe { driver.cuStreamSynchronize(stream) }, OK);
    let found = read(driver, address, 100);
    assert_eq!(found[..90], [5; 90]);
    assert_eq!(found[90..], [0; 10]);
}

#[test]
fn launch_checks_sizes_and_arguments() {
    let driver = &session();
    let library = library(driver);
    let (function, stream) = (function(driver, library, "add"), stream(driver));
    let (mut address, mut value) = (words(driver, 1), 1u32);
    let mut arguments: [*mut c_void; 2] = [(&raw mut address).cast(), (&raw mut value).cast()];
    let mut launch = |grid: [u32; 3], block: [u32; 3], shared: u32| unsafe {
        driver.cuLaunchKernel(
            function,
            grid[0],
            grid[1],
            grid[2],
            block[0],
            block[1],
            block[2],
            shared,
            stream,
            arguments.as_mut_ptr(),
            null_mut(),
        )
    };
    assert_eq!(launch([0, 1, 1], [1, 1, 1], 0), IV);
    assert_eq!(launch([1, 1, 1], [1, 0, 1], 0), IV);
    assert_eq!(launch([1, 1, 1], [1025, 1, 1], 0), IV);
    assert_eq!(launch([1, 1, 1], [1, 1, 65], 0), IV);
    assert_eq!(launch([1, 65536, 1], [1, 1, 1], 0), IV);
    assert_eq!(launch([1 << 31, 1, 1], [1, 1, 1], 0), IV);
    assert_eq!(launch([1, 1, 1], [1, 1, 1], (48 << 10) + 1), IV);
    assert_eq!(launch([1, 1, 1], [1, 1, 1], 48 << 10), OK);
    unsafe {
        let none = driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, null_mut(), null_mut());
        assert_eq!(none, IV);
        let mut holes: [*mut c_void; 2] = [(&raw mut address).cast(), null_mut()];
        let hole =
            driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, holes.as_mut_ptr(), null_mut());
        assert_eq!(hole, IV);
        let nobody =
            driver.cuLaunchKernel(null_mut(), 1, 1, 1, 1, 1, 1, 0, stream, holes.as_mut_ptr(), null_mut());
        assert_eq!(nobody, CUresult::CUDA_ERROR_INVALID_HANDLE);
        // The packed form: too large, right, too small, empty.
        let mut block = [0u8; 32];
        block[..8].copy_from_slice(&address.to_le_bytes());
        block[8..12].copy_from_slice(&3u32.to_le_bytes());
        let packed = |mut size: usize| {
            let mut extra: [*mut c_void; 5] = [
                1usize as *mut c_void,
                block.as_ptr().cast_mut().cast(),
                2usize as *mut c_void,
                (&raw mut size).cast(),
                null_mut(),
            ];
            driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, null_mut(), extra.as_mut_ptr())
        };
        assert_eq!(packed(20), CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
        assert_eq!(packed(12), OK);
        assert_eq!(packed(0), IV);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
    }
    assert_eq!(read(driver, address, 1), [4]);
}

#[test]
fn parameter_layout_is_told() {
    let driver = &session();
    let kernel = kernel(driver, library(driver), "layout");
    let info = |index: usize| unsafe {
        let (mut offset, mut size) = (0, 0);
        let answer = driver.cuKernelGetParamInfo(kernel, index, &mut offset, &mut size).unwrap();
        (answer, offset, size)
    };
    assert_eq!(info(0), (OK, 0, 1));
    assert_eq!(info(1), (OK, 8, 24));
    assert_eq!(info(2), (OK, 32, 2));
    assert_eq!(info(3), (OK, 48, 16));
    assert_eq!(info(4), (OK, 64, 4));
    assert_eq!(info(5).0, IV);
    unsafe {
        let mut offset = 0;
        assert_eq!(driver.cuKernelGetParamInfo(kernel, 1, &mut offset, null_mut()).unwrap(), OK);
        assert_eq!(driver.cuKernelGetParamInfo(kernel, 1, null_mut(), null_mut()).unwrap(), IV);
    }
}

#[test]
fn bad_ptx_fills_the_log_at_the_load_and_is_told_at_the_first_use() {
    let driver = &session();
    let text = CString::new(
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { frobnicate.u32 %r1; }\n",
    )
    .unwrap();
    let mut log = vec![0u8; 512];
    let mut options =
        [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), 512usize as *mut c_void];
    let mut library = null_mut();
    let answer = unsafe {
        driver.cuLibraryLoadData(
            &mut library,
            text.as_ptr().cast(),
            options.as_mut_ptr(),
            values.as_mut_ptr(),
            2,
            null_mut(),
            null_mut(),
            0,
        )
    };
    // As on a GPU: the compiler has run, but the load does not tell.
    assert_eq!(answer, OK);
    let mut kernel = null_mut();
    let answer = unsafe { driver.cuLibraryGetKernel(&mut kernel, library, c"k".as_ptr()) };
    assert_eq!(answer, CUresult::CUDA_ERROR_INVALID_PTX);
    assert_eq!(unsafe { driver.cuLibraryUnload(library) }, OK);
    let log = CStr::from_bytes_until_nul(&log).unwrap().to_str().unwrap();
    assert!(log.contains("frobnicate") && log.contains("line 4"), "{log}");
    assert_eq!(values[1].addr(), log.len() + 1);
}

#[test]
fn module_variables_have_their_initial_values() {
    let driver = &session();
    let (mut address, mut bytes) = (0, 0);
    let library = library(driver);
    assert_eq!(
        unsafe { driver.cuLibraryGetGlobal(&mut address, &mut bytes, library, c"counter".as_ptr()) },
        OK
    );
    assert_eq!(bytes, 4);
    assert_eq!(read(driver, address, 1), [7]);
    let missing = unsafe { driver.cuLibraryGetGlobal(&mut address, &mut bytes, library, c"nobody".as_ptr()) };
    assert_eq!(missing, CUresult::CUDA_ERROR_NOT_FOUND);
    assert_eq!(unsafe { driver.cuLibraryUnload(library) }, OK);
    assert_eq!(unsafe { driver.cuLibraryUnload(library) }, CUresult::CUDA_ERROR_INVALID_HANDLE);
}

#[test]
fn copies_check_their_ranges_at_the_call() {
    let driver = &session();
    let address = words(driver, 16);
    let mut host = [1u32; 32];
    unsafe {
        assert_eq!(driver.cuMemcpyHtoD(address, host.as_ptr().cast(), 65), IV);
        assert_eq!(driver.cuMemcpyHtoD(address + 64, host.as_ptr().cast(), 4), IV);
        assert_eq!(driver.cuMemcpyDtoH(host.as_mut_ptr().cast(), address + 4, 64), IV);
        assert_eq!(driver.cuMemsetD32(address, 0, 17), IV);
        assert_eq!(driver.cuMemsetD32(address + 2, 0, 1), IV);
        assert_eq!(driver.cuMemcpyHtoD(address, host.as_ptr().cast(), 64), OK);
        assert_eq!(driver.cuMemcpyDtoDAsync(address, address + 32, 32, stream(driver)), OK);
        assert_eq!(driver.cuMemFree(address), OK);
        assert_eq!(driver.cuMemFree(address), IV);
        assert_eq!(driver.cuMemcpyDtoH(host.as_mut_ptr().cast(), address, 4), IV);
    }
}

#[test]
fn pageable_sources_are_read_at_the_call_pinned_ones_later() {
    let driver = &session();
    let (stream, address) = (stream(driver), words(driver, 2));
    let mut pinned: *mut c_void = null_mut();
    unsafe {
        assert_eq!(driver.cuMemAllocHost(&mut pinned, 4), OK);
        let pinned: *mut u32 = pinned.cast();
        pinned.write(1);
        let mut pageable = 1u32;
        let gate = Gate::close(driver, stream);
        assert_eq!(driver.cuMemcpyHtoDAsync(address, (&raw const pageable).cast(), 4, stream), OK);
        assert_eq!(driver.cuMemcpyHtoDAsync(address + 4, pinned.cast(), 4, stream), OK);
        (&raw mut pageable).write(2);
        pinned.write(2);
        gate.open();
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(read(driver, address, 2), [1, 2]);
        assert_eq!(driver.cuMemFreeHost(pinned.cast()), OK);
        assert_eq!(driver.cuMemFreeHost(pinned.cast()), IV);
    }
}

#[test]
fn events_order_streams_and_measure_time() {
    let driver = &session();
    let library = library(driver);
    let multiply = function(driver, library, "multiply");
    let (first, second) = (stream(driver), stream(driver));
    let address = words(driver, 1);
    let mut events = [null_mut(); 2];
    unsafe {
        for event in &mut events {
            assert_eq!(driver.cuEventCreate(event, 0), OK);
        }
        let [start, end] = events;
        assert_eq!(driver.cuEventQuery(start), OK);
        let mut elapsed = -1.0;
        assert_eq!(driver.cuEventElapsedTime(&mut elapsed, start, end), CUresult::CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(driver.cuEventRecord(start, first), OK);
        let gate = Gate::close(driver, first);
        assert_eq!(driver.cuMemsetD32Async(address, 3, 1, first), OK);
        assert_eq!(driver.cuEventRecord(end, first), OK);
        assert_eq!(driver.cuStreamWaitEvent(second, end, 0), OK);
        let (mut target, mut value) = (address, 5u32);
        let mut arguments: [*mut c_void; 2] = [(&raw mut target).cast(), (&raw mut value).cast()];
        let launched =
            driver.cuLaunchKernel(multiply, 1, 1, 1, 1, 1, 1, 0, second, arguments.as_mut_ptr(), null_mut());
        assert_eq!(launched, OK);
        assert_eq!(driver.cuEventQuery(end), CUresult::CUDA_ERROR_NOT_READY);
        assert_eq!(driver.cuEventElapsedTime(&mut elapsed, start, end), CUresult::CUDA_ERROR_NOT_READY);
        gate.open();
        assert_eq!(driver.cuStreamSynchronize(second), OK);
        assert_eq!(driver.cuEventElapsedTime(&mut elapsed, start, end), OK);
        assert!(elapsed >= 0.0);
        assert_eq!(read(driver, address, 1), [15]);
        assert_eq!(driver.cuEventDestroy(start), OK);
        assert_eq!(driver.cuEventDestroy(start), CUresult::CUDA_ERROR_INVALID_HANDLE);
    }
}

#[test]
fn the_legacy_stream_waits_for_blocking_streams_only() {
    let driver = &session();
    let (mut blocking, free) = (null_mut(), stream(driver));
    let address = words(driver, 2);
    unsafe {
        assert_eq!(driver.cuStreamCreate(&mut blocking, 0), OK);
        let held = Gate::close(driver, free);
        // Not blocking: legacy work goes ahead.
        assert_eq!(driver.cuMemsetD32(address, 1, 1), OK);
        held.open();
        let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let gate = Gate::close(driver, blocking);
        let mut context = null_mut();
        assert_eq!(driver.cuCtxGetCurrent(&mut context), OK);
        let (context, flag) = (context.addr(), std::sync::Arc::clone(&done));
        let driver = driver.driver;
        let waiter = std::thread::spawn(move || {
            assert_eq!(driver.cuCtxSetCurrent(context as CUcontext), OK);
            assert_eq!(driver.cuMemsetD32(address + 4, 2, 1), OK);
            flag.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!done.load(std::sync::atomic::Ordering::SeqCst));
        gate.open();
        waiter.join().unwrap();
    }
    assert_eq!(read(driver, address, 2), [1, 2]);
}

#[test]
fn pool_memory_is_counted_and_freed_in_order() {
    let driver = &session();
    let stream = stream(driver);
    let mut pool = null_mut();
    unsafe {
        let props = CUmemPoolProps {
            allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            location: CUmemLocation {
                type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                __bindgen_anon_1: CUmemLocation_st__bindgen_ty_1 { id: 0 },
            },
            ..Default::default()
        };
        assert_eq!(driver.cuMemPoolCreate(&mut pool, &props), OK);
        let used = || {
            let mut used = 0u64;
            let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
            assert_eq!(driver.cuMemPoolGetAttribute(pool, attribute, (&raw mut used).cast()), OK);
            used
        };
        let mut address = 0;
        assert_eq!(driver.cuMemAllocFromPoolAsync(&mut address, 1000, pool, stream), OK);
        assert_eq!(driver.cuMemsetD8Async(address, 1, 1000, stream), OK);
        assert_eq!(used(), 1000);
        let gate = Gate::close(driver, stream);
        assert_eq!(driver.cuMemFreeAsync(address, stream), OK);
        assert_eq!(driver.cuMemFreeAsync(address, stream), IV);
        assert_eq!(used(), 1000);
        gate.open();
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(used(), 0);
        assert_eq!(driver.cuMemPoolDestroy(pool), OK);
    }
}

#[test]
fn pointers_tell_what_they_point_to() {
    let driver = &session();
    let address = words(driver, 4);
    unsafe {
        let (mut kind, mut size, mut start) = (0u32, 0usize, 0u64);
        let ask =
            |attribute, out: *mut c_void, pointer| driver.cuPointerGetAttribute(out, attribute, pointer);
        type A = CUpointer_attribute_enum;
        assert_eq!(ask(A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (&raw mut kind).cast(), address + 5), OK);
        assert_eq!(kind, 2);
        assert_eq!(ask(A::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, (&raw mut start).cast(), address + 5), OK);
        assert_eq!(ask(A::CU_POINTER_ATTRIBUTE_RANGE_SIZE, (&raw mut size).cast(), address + 5), OK);
        assert_eq!((start, size), (address, 16));
        assert_eq!(ask(A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (&raw mut kind).cast(), address + 16), IV);
        assert_eq!(
            ask(A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (&raw mut kind).cast(), (&raw const kind).addr() as u64),
            IV
        );
    }
}

#[test]
fn calls_newer_than_the_version_asked_for_are_not_there() {
    let driver = &session();
    let find = |name: &CStr, version: i32| unsafe {
        let (mut pointer, mut status) = (null_mut(), CUdriverProcAddressQueryResult(9));
        let answer = driver.cuGetProcAddress(name.as_ptr(), &mut pointer, version, 0, &mut status);
        (answer, !pointer.is_null(), status.0)
    };
    assert_eq!(find(c"cuGraphAddNode", 12020), (OK, true, 0));
    assert_eq!(find(c"cuGraphAddNode", 12010), (OK, false, 2));
    assert_eq!(find(c"cuGraphNodeGetParams", 13000), (OK, false, 1));
    assert_eq!(find(c"cuNoSuchCall", 13000), (OK, false, 1));
    assert_eq!(find(c"cuInit", 13050).0, IV);
    assert_eq!(find(c"cuMipmappedArrayDestroy", 12000), (OK, true, 0));
    assert_eq!(unsafe { driver.cuMipmappedArrayDestroy(null_mut()) }, NS);
    let _: *const c_void = null();
}
