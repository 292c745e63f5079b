//! The execution of nodes, and what adding them needs.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_sys::CUgraphNodeType as T;
use cuda_sys::*;

#[test]
fn shapes_are_copied_and_filled() {
    leaves_nothing("node_execution::shapes_are_copied_and_filled", || {
        let driver = &session();
        let (from, to, own, stream) = (words(driver, 64), words(driver, 64), graph(driver), stream(driver));
        // A 2-D fill of 3 x 2 words in rows of 8, then a 3-D copy of 2 slices of 2 rows of 2 words.
        let fill = CUDA_MEMSET_NODE_PARAMS_v1 {
            dst: from,
            elementSize: 4,
            width: 3,
            height: 4,
            pitch: 32,
            value: 5,
        };
        let copy = CUDA_MEMCPY3D_v2 {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcDevice: from,
            srcXInBytes: 4,
            srcPitch: 32,
            srcHeight: 2,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstDevice: to,
            dstPitch: 16,
            dstHeight: 4,
            WidthInBytes: 12,
            Height: 2,
            Depth: 2,
            ..Default::default()
        };
        let (mut first, mut second) = (null_mut(), null_mut());
        unsafe {
            assert_eq!(driver.cuGraphAddMemsetNode(&mut first, own, null(), 0, &fill, null_mut()), OK);
            assert_eq!(driver.cuGraphAddMemcpyNode(&mut second, own, &first, 1, &copy, context(driver)), OK);
            let exec = instantiate(driver, own);
            run(driver, exec, stream);
            assert_eq!(read(driver, from, 16), [5, 5, 5, 0, 0, 0, 0, 0, 5, 5, 5, 0, 0, 0, 0, 0]);
            let expected = [5, 5, 0, 0, 5, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            assert_eq!(read(driver, to, 32), [expected, expected].concat());
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuMemFree(from), OK);
            assert_eq!(driver.cuMemFree(to), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

#[test]
fn without_a_current_context() {
    leaves_nothing("node_execution::without_a_current_context", || {
        let driver = &session();
        let (library, address, mine) = (library(driver), words(driver, 4), context(driver));
        let (kern, own) = (kernel(driver, library, "nothing"), graph(driver));
        let mut event = null_mut();
        unsafe extern "C" fn ignore(_: *mut c_void) {}
        let none = CUresult::CUDA_ERROR_INVALID_CONTEXT;
        let by_kern = |ctx| {
            with(T::CU_GRAPH_NODE_TYPE_KERNEL, |fields| {
                fields.kernel = CUDA_KERNEL_NODE_PARAMS_v3 {
                    kern,
                    ctx,
                    gridDimX: 1,
                    gridDimY: 1,
                    gridDimZ: 1,
                    blockDimX: 1,
                    blockDimY: 1,
                    blockDimZ: 1,
                    ..Default::default()
                };
            })
        };
        unsafe {
            assert_eq!(driver.cuEventCreate(&mut event, 0), OK);
            assert_eq!(driver.cuCtxSetCurrent(null_mut()), OK);
            for (what, mut params, answer) in [
                ("a kernel with its context", by_kern(mine), OK),
                ("a kernel without", by_kern(null_mut()), none),
                ("an empty node", generic(T::CU_GRAPH_NODE_TYPE_EMPTY), OK),
                (
                    "a host function",
                    with(T::CU_GRAPH_NODE_TYPE_HOST, |fields| fields.host.fn_ = Some(ignore)),
                    OK,
                ),
                (
                    "an event",
                    with(T::CU_GRAPH_NODE_TYPE_EVENT_RECORD, |fields| fields.eventRecord.event = event),
                    OK,
                ),
                (
                    "memory operations",
                    with(T::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, |fields| fields.memOp.ctx = mine),
                    OK,
                ),
                (
                    "a fill",
                    with(T::CU_GRAPH_NODE_TYPE_MEMSET, |fields| {
                        fields.memset = CUDA_MEMSET_NODE_PARAMS_v2 {
                            dst: address,
                            elementSize: 4,
                            width: 1,
                            height: 1,
                            ..Default::default()
                        };
                    }),
                    OK,
                ),
            ] {
                assert_eq!(add(driver, own, &[], &mut params).0, answer, "{what}");
            }
            let mut clone = null_mut();
            assert_eq!(driver.cuGraphClone(&mut clone, own), OK);
            assert_eq!(refusal(driver, own, 0).0, none);
            assert_eq!(driver.cuCtxSetCurrent(mine), OK);
            let exec = instantiate(driver, own);
            assert_eq!(driver.cuCtxSetCurrent(null_mut()), OK);
            assert_eq!(driver.cuGraphExecUpdate(exec, clone, null_mut()), OK);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            for graph in [own, clone] {
                assert_eq!(driver.cuGraphDestroy(graph), OK);
            }
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(driver.cuEventDestroy(event), OK);
            assert_eq!(driver.cuLibraryUnload(library), OK);
        }
    });
}

#[test]
fn a_function_needs_a_current_context() {
    aborts("node_execution::a_function_needs_a_current_context", "no context is current", || {
        let driver = &session();
        let (own, function) = (graph(driver), function(driver, library(driver), "nothing"));
        let params = params(function, &mut []);
        unsafe {
            assert_eq!(driver.cuCtxSetCurrent(null_mut()), OK);
            let _ = driver.cuGraphAddKernelNode(&mut null_mut(), own, null(), 0, &params);
        }
    });
}
