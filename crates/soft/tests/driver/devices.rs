//! Several devices; each test in a process of its own.

use std::ptr::null_mut;

use crate::common::*;
use cuda_soft::{Config, control};
use cuda_sys::*;

/// The primary context of a device, current afterwards.
pub(crate) fn enter(driver: &Driver, device: CUdevice) -> CUcontext {
    let mut context = null_mut();
    unsafe {
        assert_eq!(driver.cuDevicePrimaryCtxRetain(&mut context, device), OK);
        assert_eq!(driver.cuCtxSetCurrent(context), OK);
    }
    context
}

#[test]
fn a_device_is_lost_alone() {
    alone("devices::a_device_is_lost_alone", || {
        let driver = &session_with(Config::new().devices(2));
        let code = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
        let other = enter(driver, 1);
        let (there, kept) = (stream(driver), words(driver, 4));
        let mut event = null_mut();
        assert_eq!(unsafe { driver.cuEventCreate(&mut event, 0) }, OK);
        let mine = enter(driver, 0);
        let here = stream(driver);
        let mut none = null_mut();
        control::lose_device(0, code);
        unsafe {
            let mut address = 0;
            // Objects of the lost device return the code, whatever is current.
            for context in [mine, other] {
                assert_eq!(driver.cuCtxSetCurrent(context), OK);
                assert_eq!(driver.cuStreamSynchronize(here), code);
                assert_eq!(driver.cuMemAllocAsync(&mut address, 4, here), code);
                assert_eq!(driver.cuDevicePrimaryCtxRetain(&mut none, 0), OK);
                assert_eq!(none, mine);
            }
            // Objects of the other device work, whatever is current.
            for context in [mine, other, null_mut()] {
                assert_eq!(driver.cuCtxSetCurrent(context), OK);
                assert_eq!(driver.cuMemAllocAsync(&mut address, 4, there), OK);
                assert_eq!(driver.cuMemsetD32Async(kept, 3, 4, there), OK);
                assert_eq!(driver.cuMemFreeAsync(address, there), OK);
                assert_eq!(driver.cuEventRecord(event, there), OK);
                assert_eq!(driver.cuEventSynchronize(event), OK);
                assert_eq!(driver.cuStreamSynchronize(there), OK);
            }
            assert_eq!(driver.cuCtxSetCurrent(mine), OK);
            assert_eq!(driver.cuMemAlloc(&mut address, 4), code);
            assert_eq!(driver.cuCtxSynchronize(), code);
            assert_eq!(driver.cuCtxSetCurrent(other), OK);
            assert_eq!(driver.cuMemAlloc(&mut address, 4), OK);
            assert_eq!(driver.cuCtxSynchronize(), OK);
            assert_eq!(read(driver, kept, 4), [3; 4]);
            assert_eq!(driver.cuEventDestroy(event), OK);
            assert_eq!(driver.cuStreamDestroy(there), OK);
            assert_eq!(driver.cuStreamDestroy(here), code);
        }
        assert!(control::last_fault_of(0).is_some() && control::last_fault_of(1).is_none());
        control::lose_context(CUresult::CUDA_ERROR_ASSERT);
        let mut address = 0;
        assert_eq!(unsafe { driver.cuMemAlloc(&mut address, 4) }, CUresult::CUDA_ERROR_ASSERT);
    });
}

#[test]
fn a_stray_kernel_loses_its_own_device() {
    alone("devices::a_stray_kernel_loses_its_own_device", || {
        let driver = &session_with(Config::new().devices(2));
        let (here, library) = (stream(driver), library(driver));
        enter(driver, 1);
        let there = stream(driver);
        let (function, mut address, mut value) = (function(driver, library, "add"), 12345u64, 1u32);
        let mut arguments = [(&raw mut address).cast(), (&raw mut value).cast()];
        unsafe {
            let launched = driver.cuLaunchKernel(
                function,
                1,
                1,
                1,
                1,
                1,
                1,
                0,
                there,
                arguments.as_mut_ptr(),
                null_mut(),
            );
            assert_eq!(launched, OK);
            assert_ne!(driver.cuStreamSynchronize(there), OK);
            assert_eq!(driver.cuStreamSynchronize(here), OK);
        }
        assert!(control::last_fault_of(0).is_none());
        assert!(control::last_fault_of(1).unwrap().contains("add"));
    });
}

#[test]
fn memory_goes_between_devices() {
    alone("devices::memory_goes_between_devices", || {
        let driver = &session_with(Config::new().devices(2));
        let one = enter(driver, 1);
        let (there, theirs) = (stream(driver), words(driver, 8));
        let zero = enter(driver, 0);
        let (here, mine) = (stream(driver), words(driver, 8));
        let mut event = null_mut();
        let (mut able, mut same) = (0, 0);
        unsafe {
            assert_eq!(driver.cuEventCreate(&mut event, 2), OK);
            assert_eq!(driver.cuMemsetD32Async(mine, 7, 8, here), OK);
            assert_eq!(driver.cuEventRecord(event, here), OK);
            // An event is recorded in its own context and waited for in any.
            assert_eq!(driver.cuEventRecord(event, there), CUresult::CUDA_ERROR_INVALID_HANDLE);
            assert_eq!(driver.cuStreamWaitEvent(there, event, 0), OK);
            assert_eq!(driver.cuMemcpyPeerAsync(theirs, one, mine, zero, 16, there), OK);
            assert_eq!(
                driver.cuMemcpyPeer(theirs, null_mut(), mine, zero, 16),
                CUresult::CUDA_ERROR_INVALID_CONTEXT
            );
            assert_eq!(driver.cuStreamSynchronize(there), OK);
            assert_eq!(read(driver, theirs, 8), [7, 7, 7, 7, 0, 0, 0, 0]);
            let mut copy = CUDA_MEMCPY3D_PEER_v1 {
                srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                srcDevice: mine,
                srcContext: zero,
                srcPitch: 16,
                srcHeight: 2,
                dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                dstDevice: theirs,
                dstContext: one,
                dstXInBytes: 8,
                dstPitch: 16,
                dstHeight: 2,
                WidthInBytes: 8,
                Height: 2,
                Depth: 1,
                ..std::mem::zeroed()
            };
            assert_eq!(driver.cuMemcpy3DPeerAsync(&copy, there), OK);
            assert_eq!(driver.cuStreamSynchronize(there), OK);
            assert_eq!(read(driver, theirs, 8), [7, 7, 7, 7, 0, 0, 7, 7]);
            copy.dstContext = null_mut();
            assert_eq!(driver.cuMemcpy3DPeer(&copy), CUresult::CUDA_ERROR_INVALID_CONTEXT);

            assert_eq!(driver.cuDeviceCanAccessPeer(&mut able, 0, 1), OK);
            assert_eq!(driver.cuDeviceCanAccessPeer(&mut same, 0, 0), OK);
            assert_eq!((able, same), (1, 0));
            let attribute = CUdevice_P2PAttribute::CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
            assert_eq!(driver.cuDeviceGetP2PAttribute(&mut able, attribute, 0, 1), OK);
            assert_eq!(able, 1);
            assert_eq!(
                driver.cuDeviceGetP2PAttribute(&mut able, attribute, 0, 0),
                CUresult::CUDA_ERROR_INVALID_DEVICE
            );
            assert_eq!(driver.cuCtxDisablePeerAccess(one), CUresult::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
            assert_eq!(driver.cuCtxEnablePeerAccess(one, 1), IV);
            assert_eq!(driver.cuCtxEnablePeerAccess(zero, 0), CUresult::CUDA_ERROR_INVALID_DEVICE);
            assert_eq!(driver.cuCtxEnablePeerAccess(null_mut(), 0), CUresult::CUDA_ERROR_INVALID_CONTEXT);
            assert_eq!(driver.cuCtxEnablePeerAccess(one, 0), OK);
            assert_eq!(
                driver.cuCtxEnablePeerAccess(one, 0),
                CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
            );
            assert_eq!(driver.cuCtxDisablePeerAccess(one), OK);

            let (mut pool, mut flags) = (null_mut(), CUmemAccess_flags(0));
            let mut access = CUmemAccessDesc { flags: CUmemAccess_flags(3), ..Default::default() };
            access.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
            access.location.__bindgen_anon_1.id = 1;
            assert_eq!(driver.cuDeviceGetDefaultMemPool(&mut pool, 0), OK);
            assert_eq!(driver.cuMemPoolGetAccess(&mut flags, pool, &mut access.location), OK);
            assert_eq!(flags.0, 0);
            assert_eq!(driver.cuMemPoolSetAccess(pool, &access, 1), OK);
            assert_eq!(driver.cuMemPoolGetAccess(&mut flags, pool, &mut access.location), OK);
            assert_eq!(flags.0, 3);
        }
    });
}

#[test]
fn nodes_of_one_graph_may_be_of_several_devices() {
    leaves_nothing("devices::nodes_of_one_graph_may_be_of_several_devices", || {
        let driver = &session_with(Config::new().devices(2));
        let other = enter(driver, 1);
        let there = words(driver, 4);
        let mine = enter(driver, 0);
        let (here, own, stream) = (words(driver, 4), graph(driver), stream(driver));
        let fill = CUDA_MEMSET_NODE_PARAMS_v1 {
            dst: there,
            elementSize: 4,
            width: 4,
            height: 1,
            value: 6,
            pitch: 0,
        };
        let copy = CUDA_MEMCPY3D_v2 {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcDevice: there,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstDevice: here,
            WidthInBytes: 16,
            Height: 1,
            Depth: 1,
            ..Default::default()
        };
        let (mut first, mut second) = (null_mut(), null_mut());
        unsafe {
            assert_eq!(driver.cuGraphAddMemsetNode(&mut first, own, null_mut(), 0, &fill, other), OK);
            assert_eq!(driver.cuGraphAddMemcpyNode(&mut second, own, &first, 1, &copy, mine), OK);
            let exec = instantiate(driver, own);
            run(driver, exec, stream);
            assert_eq!(read(driver, here, 4), [6; 4]);
            // The same by capture.
            let (mut captured, mode) = (null_mut(), CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED);
            assert_eq!(driver.cuStreamBeginCapture(stream, mode), OK);
            assert_eq!(driver.cuMemcpyAsync(there, here, 16, stream), OK);
            assert_eq!(driver.cuStreamEndCapture(stream, &mut captured), OK);
            let mut kind = CUgraphNodeType(99);
            assert_eq!(driver.cuGraphNodeGetType(nodes(driver, captured)[0], &mut kind), OK);
            assert_eq!(kind, CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            for graph in [own, captured] {
                assert_eq!(driver.cuGraphDestroy(graph), OK);
            }
            assert_eq!(driver.cuMemFree(here), OK);
            assert_eq!(driver.cuMemFree(there), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}
