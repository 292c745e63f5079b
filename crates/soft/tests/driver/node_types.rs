//! The parameters that each type of node accepts and refuses. A refused add leaves the graph
//! unchanged.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_sys::*;

use cuda_sys::CUgraphNodeType as T;

const BAD_HANDLE: CUresult = CUresult::CUDA_ERROR_INVALID_HANDLE;

/// Rows of a table: name, parameters, and result.
type Rows = Vec<(&'static str, CUgraphNodeParams, CUresult)>;

/// Adds each row behind one node, sets each in a node of its type that is there, and looks at the
/// graph after each.
fn check(driver: &Driver, rows: Rows) {
    let own = graph(driver);
    let first = empty(driver, own, &[]);
    let mut expected = vec![first];
    for (what, mut params, answer) in rows {
        let before = edges(driver, own);
        let (found, node) = add(driver, own, &[first], &mut params);
        assert_eq!(found, answer, "{what}");
        if answer == OK {
            expected.push(node);
            let mut kind = T(99);
            assert_eq!(unsafe { driver.cuGraphNodeGetType(node, &mut kind) }, OK);
            assert_eq!(kind, params.type_, "{what}");
        } else {
            assert_eq!(edges(driver, own), before, "{what}");
        }
        assert_eq!(nodes(driver, own), expected, "{what}");
        // The same in a node that is there already.
        let same = expected.iter().skip(1).find(|node| {
            let mut kind = T(99);
            assert_eq!(unsafe { driver.cuGraphNodeGetType(**node, &mut kind) }, OK);
            kind == params.type_
        });
        if let Some(node) = same {
            assert_eq!(unsafe { driver.cuGraphNodeSetParams(*node, &mut params) }, answer, "set {what}");
        }
    }
    assert_eq!(unsafe { driver.cuGraphDestroy(own) }, OK);
}

#[test]
fn kernels() {
    leaves_nothing("node_types::kernels", || {
        let driver = &session();
        let library = library(driver);
        let (add, nothing) = (function(driver, library, "add"), function(driver, library, "nothing"));
        let (mut address, mut value) = (words(driver, 1), 1u32);
        let mut arguments: [*mut c_void; 2] = [(&raw mut address).cast(), (&raw mut value).cast()];
        let mut holed: [*mut c_void; 2] = [(&raw mut address).cast(), null_mut()];
        let mut packed = [0u64; 3];
        let (mut exact, mut small, mut large) = (12usize, 4usize, 17usize);
        let list = |size: &mut usize, block: &mut [u64; 3]| -> [*mut c_void; 5] {
            let key = std::ptr::without_provenance_mut;
            [key(1), block.as_mut_ptr().cast(), key(2), (&raw mut *size).cast(), null_mut()]
        };
        let mut exact = list(&mut exact, &mut packed);
        let mut small = list(&mut small, &mut packed);
        let mut large = list(&mut large, &mut packed);
        let base = CUDA_KERNEL_NODE_PARAMS_v3 {
            func: add,
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 1,
            blockDimY: 1,
            blockDimZ: 1,
            kernelParams: arguments.as_mut_ptr(),
            ..Default::default()
        };
        type P = CUDA_KERNEL_NODE_PARAMS_v3;
        let row = |params: P| with(T::CU_GRAPH_NODE_TYPE_KERNEL, |fields| fields.kernel = params);
        let any: *mut *mut c_void = std::ptr::without_provenance_mut(16);
        check(
            driver,
            vec![
                ("plain", row(base), OK),
                ("grid 0", row(P { gridDimZ: 0, ..base }), IV),
                ("block 0", row(P { blockDimX: 0, ..base }), IV),
                ("1024 threads", row(P { blockDimX: 1024, ..base }), OK),
                ("1025 threads", row(P { blockDimX: 1025, ..base }), IV),
                ("block z 65", row(P { blockDimZ: 65, ..base }), IV),
                ("grid y", row(P { gridDimY: 65536, ..base }), IV),
                ("grid x", row(P { gridDimX: 1 << 31, ..base }), IV),
                ("shared memory", row(P { sharedMemBytes: (48 << 10) + 1, ..base }), IV),
                ("no parameters", row(P { kernelParams: null_mut(), ..base }), IV),
                ("a null pointer", row(P { kernelParams: holed.as_mut_ptr(), ..base }), IV),
                ("both kinds", row(P { extra: exact.as_mut_ptr(), ..base }), IV),
                ("packed", row(P { kernelParams: null_mut(), extra: exact.as_mut_ptr(), ..base }), OK),
                ("packed, small", row(P { kernelParams: null_mut(), extra: small.as_mut_ptr(), ..base }), OK),
                ("packed, large", row(P { kernelParams: null_mut(), extra: large.as_mut_ptr(), ..base }), IV),
                ("an array for none", row(P { func: nothing, kernelParams: any, ..base }), OK),
                ("null function", row(P { func: null_mut(), ..base }), BAD_HANDLE),
            ],
        );
        unsafe {
            assert_eq!(driver.cuLibraryUnload(library), OK);
            let own = graph(driver);
            assert_eq!(crate::common::add(driver, own, &[], &mut row(base)).0, BAD_HANDLE);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuMemFree(address), OK);
        }
    });
}

#[test]
fn fills() {
    leaves_nothing("node_types::fills", || {
        let driver = &session();
        let (address, gone) = (words(driver, 16), words(driver, 4));
        let host = [0u32; 4];
        unsafe { assert_eq!(driver.cuMemFree(gone), OK) };
        type P = CUDA_MEMSET_NODE_PARAMS_v2;
        let base =
            P { dst: address, elementSize: 4, width: 4, height: 1, value: 7, ctx: context(driver), pitch: 0 };
        let row = |params: P| with(T::CU_GRAPH_NODE_TYPE_MEMSET, |fields| fields.memset = params);
        check(
            driver,
            vec![
                ("plain", row(base), OK),
                ("null context", row(P { ctx: null_mut(), ..base }), OK),
                ("value wider than the element", row(P { elementSize: 1, value: 0x1ff, ..base }), OK),
                ("two rows", row(P { height: 2, pitch: 16, ..base }), OK),
                ("element 3", row(P { elementSize: 3, ..base }), IV),
                ("element 8", row(P { elementSize: 8, ..base }), IV),
                ("width 0", row(P { width: 0, ..base }), IV),
                ("height 0", row(P { height: 0, ..base }), IV),
                ("pitch below width", row(P { height: 2, pitch: 12, ..base }), IV),
                ("unaligned", row(P { dst: address + 2, ..base }), IV),
                ("null", row(P { dst: 0, ..base }), IV),
                ("pageable", row(P { dst: host.as_ptr().addr() as u64, ..base }), IV),
                ("freed", row(P { dst: gone, ..base }), IV),
                ("never allocated", row(P { dst: 1 << 48 | 0xffff_0000_0000, ..base }), IV),
                ("past the allocation", row(P { width: 17, ..base }), IV),
                ("the last row past it", row(P { height: 4, pitch: 20, ..base }), IV),
            ],
        );
        // Freed since the add: instantiate says so.
        let (own, target) = (graph(driver), words(driver, 4));
        assert_eq!(add(driver, own, &[], &mut row(P { dst: target, ..base })).0, OK);
        unsafe {
            assert_eq!(driver.cuMemFree(target), OK);
            assert_eq!(refusal(driver, own, 0).0, IV);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuMemFree(address), OK);
        }
    });
}

#[test]
fn copies() {
    leaves_nothing("node_types::copies", || {
        let driver = &session();
        let (from, to, mut host) = (words(driver, 64), words(driver, 64), [0u32; 64]);
        let mut pinned = null_mut();
        unsafe { assert_eq!(driver.cuMemHostAlloc(&mut pinned, 256, 0), OK) };
        type P = CUDA_MEMCPY3D_v2;
        let device = CUmemorytype::CU_MEMORYTYPE_DEVICE;
        let (on_host, unified) = (CUmemorytype::CU_MEMORYTYPE_HOST, CUmemorytype::CU_MEMORYTYPE_UNIFIED);
        let base = P {
            srcMemoryType: device,
            srcDevice: from,
            dstMemoryType: device,
            dstDevice: to,
            WidthInBytes: 16,
            Height: 1,
            Depth: 1,
            ..Default::default()
        };
        let row = |params: P| {
            with(T::CU_GRAPH_NODE_TYPE_MEMCPY, |fields| {
                fields.memcpy = CUDA_MEMCPY_NODE_PARAMS {
                    copyCtx: context(driver),
                    copyParams: params,
                    ..Default::default()
                };
            })
        };
        let to_host = P { dstMemoryType: on_host, dstDevice: 0, dstHost: host.as_mut_ptr().cast(), ..base };
        let nowhere: *mut c_void = std::ptr::without_provenance_mut(0x7000_0000_0000);
        check(
            driver,
            vec![
                ("plain", row(base), OK),
                ("2-D", row(P { Height: 4, srcPitch: 32, dstPitch: 16, ..base }), OK),
                (
                    "3-D",
                    row(P {
                        Height: 2,
                        Depth: 2,
                        srcPitch: 32,
                        srcHeight: 4,
                        dstPitch: 16,
                        dstHeight: 2,
                        ..base
                    }),
                    OK,
                ),
                ("from an offset", row(P { srcXInBytes: 16, srcY: 1, srcPitch: 64, ..base }), OK),
                ("pageable", row(to_host), OK),
                ("pinned", row(P { dstHost: pinned, ..to_host }), OK),
                ("unmapped host", row(P { dstHost: nowhere, ..to_host }), OK),
                (
                    "a device address as host",
                    row(P { dstHost: std::ptr::without_provenance_mut(to as usize), ..to_host }),
                    OK,
                ),
                ("host to host", row(P { srcMemoryType: on_host, srcHost: pinned, ..to_host }), OK),
                ("pitch 0 with two rows", row(P { Height: 2, ..base }), OK),
                ("unified", row(P { srcMemoryType: unified, dstMemoryType: unified, ..base }), OK),
                ("width 0", row(P { WidthInBytes: 0, ..base }), IV),
                ("height 0", row(P { Height: 0, ..base }), IV),
                ("depth 0", row(P { Depth: 0, ..base }), IV),
                ("null", row(P { srcDevice: 0, ..base }), IV),
                ("null host", row(P { dstHost: null_mut(), ..to_host }), IV),
                ("never allocated", row(P { srcDevice: 1 << 48 | 0xffff_0000_0000, ..base }), IV),
                ("past the allocation", row(P { WidthInBytes: 257, ..base }), IV),
                ("a row past it", row(P { Height: 9, srcPitch: 32, dstPitch: 16, ..base }), IV),
                ("pitch below width", row(P { Height: 2, srcPitch: 8, ..base }), IV),
                ("unknown type", row(P { dstMemoryType: CUmemorytype(9), ..base }), IV),
            ],
        );
        // What was given reads back, unified too.
        let (own, mut back) = (graph(driver), P::default());
        let given = P { srcMemoryType: unified, dstMemoryType: unified, ..base };
        let (_, node) = add(driver, own, &[], &mut row(given));
        unsafe {
            assert_eq!(driver.cuGraphMemcpyNodeGetParams(node, &mut back), OK);
            assert_eq!(back, given);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuMemFreeHost(pinned), OK);
            assert_eq!(driver.cuMemFree(from), OK);
            assert_eq!(driver.cuMemFree(to), OK);
        }
    });
}

#[test]
fn hosts_events_children_and_frees() {
    leaves_nothing("node_types::hosts_events_children_and_frees", || {
        let driver = &session();
        unsafe extern "C" fn nothing(_: *mut c_void) {}
        let (mut event, child) = (null_mut(), graph(driver));
        unsafe { assert_eq!(driver.cuEventCreate(&mut event, 0), OK) };
        let record =
            |event| with(T::CU_GRAPH_NODE_TYPE_EVENT_RECORD, |fields| fields.eventRecord.event = event);
        let wait = |event| with(T::CU_GRAPH_NODE_TYPE_WAIT_EVENT, |fields| fields.eventWait.event = event);
        let embed = |graph, ownership| {
            with(T::CU_GRAPH_NODE_TYPE_GRAPH, |fields| {
                fields.graph = CUDA_CHILD_GRAPH_NODE_PARAMS {
                    graph,
                    ownership: CUgraphChildGraphNodeOwnership(ownership),
                };
            })
        };
        let free = |address| with(T::CU_GRAPH_NODE_TYPE_MEM_FREE, |fields| fields.free.dptr = address);
        let host = |function| with(T::CU_GRAPH_NODE_TYPE_HOST, |fields| fields.host.fn_ = function);
        check(
            driver,
            vec![
                ("a host function", host(Some(nothing)), OK),
                ("a null host function", host(None), IV),
                ("an event never recorded", record(event), OK),
                ("a null event", record(null_mut()), IV),
                ("a wait for an event never recorded", wait(event), OK),
                ("a wait for a null event", wait(null_mut()), IV),
                ("a child", embed(child, 0), OK),
                ("ownership 7", embed(child, 7), OK),
                ("a null child", embed(null_mut(), 0), IV),
                ("a free of null", free(0), IV),
            ],
        );
        let mut other = generic(T::CU_GRAPH_NODE_TYPE_EMPTY);
        let own = graph(driver);
        assert_eq!(add(driver, own, &[], &mut other).0, OK);
        for (what, params) in [
            ("a reserved word", CUgraphNodeParams { reserved0: [0, 1, 0], ..other }),
            ("the last reserved word", CUgraphNodeParams { reserved2: 1, ..other }),
            ("an unused byte", with(T::CU_GRAPH_NODE_TYPE_EMPTY, |fields| fields.reserved1 = [1; 29])),
            (
                "an unused byte of an event",
                with(T::CU_GRAPH_NODE_TYPE_WAIT_EVENT, |fields| {
                    fields.reserved1 =
                        std::array::from_fn(|at| if at == 0 { event.addr() as i64 } else { 1 });
                }),
            ),
            ("a type that is none", generic(T(77))),
        ] {
            assert_eq!(add(driver, own, &[], &mut { params }).0, IV, "{what}");
        }
        let mut node = null_mut();
        unsafe {
            assert_eq!(driver.cuGraphAddNode(null_mut(), own, null(), 0, &mut other), IV);
            assert_eq!(driver.cuGraphAddNode(&mut node, own, null(), 0, null_mut()), IV);
            assert_eq!(driver.cuGraphAddNode(&mut node, null_mut(), null(), 0, &mut other), IV);
            // A block of zeros is no graph.
            let zeros = [0u64; 64];
            assert_eq!(
                driver.cuGraphAddNode(&mut node, zeros.as_ptr().cast_mut().cast(), null(), 0, &mut other),
                IV
            );
            assert_eq!(nodes(driver, own).len(), 1);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuGraphDestroy(child), OK);
            assert_eq!(driver.cuEventDestroy(event), OK);
        }
    });
}

#[test]
fn getters_and_setters_know_their_type() {
    leaves_nothing("node_types::getters_and_setters_know_their_type", || {
        let driver = &session();
        let own = graph(driver);
        let (node, gone) = (empty(driver, own, &[]), empty(driver, own, &[]));
        unsafe {
            assert_eq!(driver.cuGraphDestroyNode(gone), OK);
            for node in [node, null_mut(), gone] {
                assert_eq!(driver.cuGraphKernelNodeGetParams(node, &mut Default::default()), IV);
                assert_eq!(driver.cuGraphMemcpyNodeGetParams(node, &mut Default::default()), IV);
                assert_eq!(driver.cuGraphMemsetNodeGetParams(node, &mut Default::default()), IV);
                assert_eq!(driver.cuGraphHostNodeGetParams(node, &mut Default::default()), IV);
                assert_eq!(driver.cuGraphChildGraphNodeGetGraph(node, &mut null_mut()), IV);
                assert_eq!(driver.cuGraphEventRecordNodeGetEvent(node, &mut null_mut()), IV);
                assert_eq!(driver.cuGraphEventWaitNodeGetEvent(node, &mut null_mut()), IV);
                assert_eq!(driver.cuGraphBatchMemOpNodeGetParams(node, &mut Default::default()), IV);
                assert_eq!(
                    driver.cuGraphExternalSemaphoresSignalNodeGetParams(node, &mut Default::default()),
                    IV
                );
                assert_eq!(
                    driver.cuGraphExternalSemaphoresWaitNodeGetParams(node, &mut Default::default()),
                    IV
                );
                assert_eq!(driver.cuGraphMemAllocNodeGetParams(node, &mut Default::default()), IV);
                assert_eq!(driver.cuGraphMemFreeNodeGetParams(node, &mut 0), IV);
                assert_eq!(driver.cuGraphKernelNodeSetParams(node, &Default::default()), IV);
                assert_eq!(driver.cuGraphMemcpyNodeSetParams(node, &Default::default()), IV);
                assert_eq!(driver.cuGraphMemsetNodeSetParams(node, &Default::default()), IV);
                assert_eq!(driver.cuGraphHostNodeSetParams(node, &Default::default()), IV);
                assert_eq!(driver.cuGraphEventRecordNodeSetEvent(node, null_mut()), IV);
                assert_eq!(driver.cuGraphEventWaitNodeSetEvent(node, null_mut()), IV);
                assert_eq!(driver.cuGraphBatchMemOpNodeSetParams(node, &Default::default()), IV);
                let mut params = generic(T::CU_GRAPH_NODE_TYPE_HOST);
                assert_eq!(driver.cuGraphNodeSetParams(node, &mut params), IV);
            }
            assert_eq!(driver.cuGraphNodeGetType(node, null_mut()), IV);
            assert_eq!(driver.cuGraphNodeGetType(null_mut(), &mut T(0)), IV);
            assert_eq!(driver.cuGraphDestroy(own), OK);
        }
    });
}
