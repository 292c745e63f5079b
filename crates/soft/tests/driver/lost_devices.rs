//! Lost devices, missing contexts and other versions; each test in a process of its own.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::common::*;
use cuda_soft::{Config, control};
use cuda_sys::*;

fn launch_on(driver: &Driver, stream: CUstream, name: &str, address: CUdeviceptr) {
    launch(driver, stream, function(driver, library(driver), name), address);
}

fn launch(driver: &Driver, stream: CUstream, function: CUfunction, mut address: CUdeviceptr) {
    let mut value = 1u32;
    let mut arguments: [*mut c_void; 2] = [(&raw mut address).cast(), (&raw mut value).cast()];
    let answer = unsafe {
        driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments.as_mut_ptr(), null_mut())
    };
    assert_eq!(answer, OK);
}

#[test]
fn a_stray_access_loses_the_context() {
    alone("lost_devices::a_stray_access_loses_the_context", || {
        let driver = &session();
        let (stream, address, own) = (stream(driver), words(driver, 4), graph(driver));
        let mut event = null_mut();
        assert_eq!(unsafe { driver.cuEventCreate(&mut event, 0) }, OK);
        let exec = {
            empty(driver, own, &[]);
            instantiate(driver, own)
        };
        let (object, ended) = user_object(driver, 1);
        launch_on(driver, stream, "add", address + 16);
        let code = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
        unsafe {
            assert_eq!(driver.cuStreamSynchronize(stream), code);
            assert_eq!(driver.cuStreamQuery(stream), code);
            let (mut other, mut more) = (null_mut(), 0);
            assert_eq!(driver.cuMemAlloc(&mut more, 4), code);
            assert_eq!(driver.cuMemFree(address), code);
            assert_eq!(driver.cuMemFreeAsync(address, stream), code);
            assert_eq!(driver.cuEventDestroy(event), code);
            assert_eq!(driver.cuStreamCreate(&mut other, 0), code);
            assert_eq!(driver.cuStreamDestroy(stream), code);
            assert_eq!(driver.cuGraphLaunch(exec, stream), code);
            let mut out = null_mut();
            assert_eq!(driver.cuGraphInstantiateWithFlags(&mut out, own, 0), code);
            let result = driver.cuGraphExecUpdate(exec, own, null_mut());
            assert_eq!(result, CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
            let mut node = null_mut();
            assert_eq!(driver.cuGraphAddEmptyNode(&mut node, own, std::ptr::null(), 0), OK);
            assert_eq!(driver.cuGraphRetainUserObject(own, object, 1, 1), OK);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(ended.try_recv(), Ok(std::thread::current().id()));
            assert_eq!(driver.cuDevicePrimaryCtxReset(0), OK);
            let mut context = null_mut();
            assert_eq!(driver.cuDevicePrimaryCtxRetain(&mut context, 0), OK);
            assert_eq!(driver.cuMemAlloc(&mut more, 4), CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED);
        }
        let sentence = control::last_fault().unwrap();
        for part in ["add", "thread (0, 0, 0)", "16-byte device allocation", "0 bytes before"] {
            assert!(sentence.contains(part), "{part}: {sentence}");
        }
    });
}

#[test]
fn pool_memory_is_watched_on_other_streams() {
    alone("lost_devices::pool_memory_is_watched_on_other_streams", || {
        let driver = &session();
        let (home, other) = (stream(driver), stream(driver));
        let mut address = 0;
        // The first use of a library would wait for the gate.
        let add = function(driver, library(driver), "add");
        let gate = Gate::close(driver, home);
        unsafe {
            assert_eq!(driver.cuMemAllocAsync(&mut address, 64, home), OK);
            launch(driver, other, add, address);
            assert_eq!(driver.cuStreamSynchronize(other), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        }
        gate.open();
        let sentence = control::last_fault().unwrap();
        assert!(sentence.contains("before its allocation point"), "{sentence}");
    });
}

#[test]
fn freed_pool_memory_is_not_used() {
    alone("lost_devices::freed_pool_memory_is_not_used", || {
        let driver = &session();
        let stream = stream(driver);
        let mut address = 0;
        unsafe {
            assert_eq!(driver.cuMemAllocAsync(&mut address, 64, stream), OK);
            assert_eq!(driver.cuMemFreeAsync(address, stream), OK);
            launch_on(driver, stream, "add", address);
            assert_eq!(driver.cuStreamSynchronize(stream), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        }
        let sentence = control::last_fault().unwrap();
        assert!(sentence.contains("cuMemFreeAsync freed"), "{sentence}");
    });
}

#[test]
fn a_fill_of_freed_memory_in_a_graph_fails_the_launch() {
    alone("lost_devices::a_fill_of_freed_memory_in_a_graph_fails_the_launch", || {
        let driver = &session();
        let (stream, address, own) = (stream(driver), words(driver, 4), graph(driver));
        let params = CUDA_MEMSET_NODE_PARAMS_v1 {
            dst: address,
            value: 0,
            elementSize: 4,
            width: 4,
            height: 1,
            pitch: 0,
        };
        unsafe {
            let mut node = null_mut();
            assert_eq!(
                driver.cuGraphAddMemsetNode(&mut node, own, std::ptr::null(), 0, &params, null_mut()),
                OK
            );
            let exec = instantiate(driver, own);
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(refusal(driver, own, 0).0, IV);
            assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
            assert_eq!(driver.cuStreamSynchronize(stream), CUresult::CUDA_ERROR_LAUNCH_FAILED);
        }
    });
}

#[test]
fn traps_and_demands_lose_the_context() {
    alone("lost_devices::traps_and_demands_lose_the_context", || {
        let driver = &session();
        let (stream, function) = (stream(driver), function(driver, library(driver), "fails"));
        unsafe {
            let ran = std::sync::atomic::AtomicBool::new(false);
            unsafe extern "C" fn run(ran: *mut c_void) {
                unsafe { &*ran.cast::<std::sync::atomic::AtomicBool>() }
                    .store(true, std::sync::atomic::Ordering::SeqCst);
            }
            let launched =
                driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, null_mut(), null_mut());
            assert_eq!(launched, OK);
            let _ = driver.cuLaunchHostFunc(stream, Some(run), (&raw const ran).cast_mut().cast());
            assert_eq!(driver.cuStreamSynchronize(stream), CUresult::CUDA_ERROR_LAUNCH_FAILED);
            assert!(!ran.load(std::sync::atomic::Ordering::SeqCst));
        }
        control::lose_context(CUresult::CUDA_ERROR_ASSERT);
        let mut address = 0;
        assert_eq!(unsafe { driver.cuMemAlloc(&mut address, 4) }, CUresult::CUDA_ERROR_LAUNCH_FAILED);
    });
}

#[test]
fn without_a_current_context_calls_say_so() {
    let driver = &session();
    let stream = stream(driver);
    let (own, kernel) = (graph(driver), kernel(driver, library(driver), "nothing"));
    let none = CUresult::CUDA_ERROR_INVALID_CONTEXT;
    unsafe {
        let context = context(driver);
        assert_eq!(driver.cuCtxSetCurrent(null_mut()), OK);
        let (mut address, mut pinned, mut event, mut other, mut node) =
            (0, null_mut(), null_mut(), null_mut(), null_mut());
        assert_eq!(driver.cuMemAlloc(&mut address, 4), none);
        assert_eq!(driver.cuMemAllocHost(&mut pinned, 4), none);
        assert_eq!(driver.cuEventCreate(&mut event, 0), none);
        assert_eq!(driver.cuStreamCreate(&mut other, 0), none);
        assert_eq!(driver.cuCtxSynchronize(), none);
        assert_eq!(driver.cuMemAllocAsync(&mut address, 4, null_mut()), none);
        assert_eq!(driver.cuMemcpyHtoD(1, (&raw const address).cast(), 4), none);
        let mut params = CUDA_KERNEL_NODE_PARAMS_v2 { kern: kernel, ..params(null_mut(), &mut []) };
        assert_eq!(driver.cuGraphAddKernelNode(&mut node, own, std::ptr::null(), 0, &params), none);
        params.ctx = context;
        assert_eq!(driver.cuGraphAddKernelNode(&mut node, own, std::ptr::null(), 0, &params), OK);
        assert_eq!(driver.cuMemAllocAsync(&mut address, 4, stream), OK);
        assert_eq!(driver.cuMemFreeAsync(address, stream), OK);
        let launched =
            driver.cuLaunchKernel(kernel.cast(), 1, 1, 1, 1, 1, 1, 0, stream, null_mut(), null_mut());
        assert_eq!(launched, OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
    }
}

#[test]
fn a_kernel_node_by_function_needs_a_current_context() {
    aborts(
        "lost_devices::a_kernel_node_by_function_needs_a_current_context",
        "no context is current",
        || {
            let driver = &session();
            let (own, function) = (graph(driver), function(driver, library(driver), "nothing"));
            unsafe {
                assert_eq!(driver.cuCtxSetCurrent(null_mut()), OK);
                let mut node = null_mut();
                let params = params(function, &mut []);
                let _ = driver.cuGraphAddKernelNode(&mut node, own, std::ptr::null(), 0, &params);
            }
        },
    );
}

#[test]
fn an_older_version_lacks_the_newer_calls() {
    alone("lost_devices::an_older_version_lacks_the_newer_calls", || {
        let driver =
            &session_with(Config::new().version(Version::new(12, 2)).devices(2).compute_capability(8, 0));
        assert_eq!(driver.version(), Version::new(12, 2));
        unsafe {
            let mut count = 0;
            assert_eq!(driver.cuDeviceGetCount(&mut count), OK);
            assert_eq!(count, 2);
            let mut device = 0;
            assert_eq!(driver.cuDeviceGet(&mut device, 2), CUresult::CUDA_ERROR_INVALID_DEVICE);
            let missing =
                driver.cuGraphAddDependencies_v12030(null_mut(), null_mut(), null_mut(), null_mut(), 0);
            assert_eq!(missing.unwrap_err().found, Version::new(12, 2));
            let mut major = 0;
            let attribute = CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
            assert_eq!(driver.cuDeviceGetAttribute(&mut major, attribute, 1), OK);
            assert_eq!(major, 8);
        }
    });
}

#[test]
fn before_init_little_works() {
    alone("lost_devices::before_init_little_works", || {
        let driver = cuda_soft::loader(Config::new()).install().unwrap();
        let not = CUresult::CUDA_ERROR_NOT_INITIALIZED;
        unsafe {
            let (mut count, mut graph) = (0, null_mut());
            assert_eq!(driver.cuDeviceGetCount(&mut count), not);
            assert_eq!(driver.cuGraphCreate(&mut graph, 0), not);
            let (_object, _ended) = user_object(driver, 1);
            assert_eq!(driver.cuDriverGetVersion(&mut count), OK);
        }
    });
}

#[test]
fn the_null_driver_gives_out_handles() {
    alone("lost_devices::the_null_driver_gives_out_handles", || {
        let driver = unsafe { cuda_soft::null_loader() }.install().unwrap();
        unsafe {
            let (mut first, mut second, mut offset) = (null_mut(), null_mut(), 0);
            assert_eq!(driver.cuInit(0), OK);
            assert_eq!(driver.cuStreamCreate(&mut first, 0), OK);
            assert_eq!(driver.cuStreamCreate(&mut second, 0), OK);
            assert!(!first.is_null() && first != second);
            assert_eq!(driver.cuKernelGetParamInfo(null_mut(), 0, &mut offset, null_mut()).unwrap(), IV);
            assert_eq!(driver.cuGraphLaunch(null_mut(), first), OK);
            // Memory does not overlap, that of the host is there, and kernels of PTX texts have
            // their layouts.
            let (mut one, mut two, mut host, mut size) = (0, 0, null_mut(), 0);
            assert_eq!(driver.cuMemAllocAsync(&mut one, 4000, first), OK);
            assert_eq!(driver.cuMemAllocAsync(&mut two, 4000, first), OK);
            assert!(one.abs_diff(two) >= 4000);
            assert_eq!(driver.cuMemHostAlloc(&mut host, 64, 0), OK);
            host.cast::<u64>().add(7).write(1);
            assert_eq!(driver.cuMemFreeHost(host), OK);
            let (library, mut function) = (library(driver), null_mut());
            let kernel = kernel(driver, library, "add");
            assert_eq!(driver.cuKernelGetParamInfo(kernel, 1, &mut offset, &mut size).unwrap(), OK);
            assert_eq!((offset, size), (8, 4));
            assert_eq!(driver.cuKernelGetParamInfo(kernel, 2, &mut offset, &mut size).unwrap(), IV);
            assert_eq!(driver.cuKernelGetFunction(&mut function, kernel), OK);
            assert_eq!(driver.cuFuncGetParamInfo(function, 0, &mut offset, &mut size).unwrap(), OK);
            assert_eq!((offset, size), (0, 8));
            assert_eq!(driver.cuLibraryUnload(library), OK);
        }
    });
}

#[test]
fn live_objects_are_counted() {
    alone("lost_devices::live_objects_are_counted", || {
        let driver = &session();
        let count =
            |kind: &str| control::live_objects().into_iter().find(|(name, _)| *name == kind).unwrap().1;
        let (stream, address, own) = (stream(driver), words(driver, 4), graph(driver));
        empty(driver, own, &[]);
        let exec = instantiate(driver, own);
        assert_eq!((count("streams"), count("device allocations"), count("device bytes")), (1, 1, 16));
        assert_eq!((count("graphs"), count("executables"), count("events")), (1, 1, 0));
        unsafe {
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuMemFreeAsync(address, stream), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
        eventually("the end of the memory", || count("device bytes") == 0);
        assert!(
            control::live_objects().iter().all(|(_, count)| *count == 0),
            "{:?}",
            control::live_objects()
        );
    });
}
