//! The bodies of conditional nodes: permitted nodes and operations.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_sys::*;

#[test]
fn the_graph_of_a_body_belongs_to_its_node() {
    let driver = session();
    cuda_tests::needs!(Conditionals);
    let (own, other) = (driver.graph(), driver.graph());
    let handle = driver.condition(own, 0);
    let (node, bodies) = driver.conditional(own, &[], handle, (IF, 1));
    let body = bodies[0];
    let (outside, inside) = (driver.empty(own, &[]), driver.empty(body, &[]));
    unsafe {
        assert_eq!(driver.cuGraphDestroy(body), IV);
        assert_eq!(driver.cuGraphClone(&mut null_mut(), body), NS);
        assert_eq!(driver.refusal(body, 0).0, NS);
        for graph in [own, other] {
            assert_eq!(driver.child(graph, body).0, NS);
            if driver.has(12, 9) {
                assert_eq!(driver.embed(graph, body, 1).0, NS);
            }
        }
        for graph in [own, body] {
            assert_eq!(driver.cuGraphAddDependencies(graph, &outside, &inside, 1), IV);
        }
        // Nodes and edges come and go.
        let second = driver.empty(body, &[]);
        assert_eq!(driver.cuGraphAddDependencies(body, &inside, &second, 1), OK);
        assert_eq!(driver.cuGraphRemoveDependencies(body, &inside, &second, 1), OK);
        assert_eq!(driver.cuGraphDestroyNode(inside), OK);
        assert_eq!(driver.count(body), Ok(1));
        assert_eq!(driver.cuGraphDestroyNode(node), OK);
        assert_eq!(driver.count(body), Err(IV));
        assert_eq!(driver.cuGraphAddEmptyNode(&mut null_mut(), body, null(), 0), IV);
    }
    driver.destroy(&[own, other]);
}

unsafe extern "C" fn nothing(_: *mut c_void) {}

fn copy(driver: &Session, graph: CUgraph, from: CUdeviceptr, to: *mut c_void) -> CUgraphNode {
    let mut node = null_mut();
    let params = CUDA_MEMCPY3D_v2 {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcDevice: from,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        dstHost: to,
        WidthInBytes: 4,
        Height: 1,
        Depth: 1,
        ..Default::default()
    };
    assert_eq!(
        unsafe { driver.cuGraphAddMemcpyNode(&mut node, graph, null(), 0, &params, driver.context) },
        OK
    );
    node
}

fn host(driver: &Session, graph: CUgraph) -> CUgraphNode {
    let mut node = null_mut();
    let params = CUDA_HOST_NODE_PARAMS_v1 { fn_: Some(nothing), userData: null_mut() };
    assert_eq!(unsafe { driver.cuGraphAddHostNode(&mut node, graph, null(), 0, &params) }, OK);
    node
}

fn alloc(driver: &Session, graph: CUgraph) -> CUgraphNode {
    let mut node = null_mut();
    let mut params = CUDA_MEM_ALLOC_NODE_PARAMS { bytesize: 64, ..Default::default() };
    params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    assert_eq!(unsafe { driver.cuGraphAddMemAllocNode(&mut node, graph, null(), 0, &mut params) }, OK);
    node
}

#[test]
fn what_a_body_holds_is_checked_when_it_is_instantiated() {
    let driver = session();
    cuda_tests::needs!(Conditionals);
    let (mut event, mut pinned, mut word) = (null_mut(), null_mut(), 0u32);
    let address = driver.words(1);
    unsafe {
        assert_eq!(driver.cuEventCreate(&mut event, 0), OK);
        assert_eq!(driver.cuMemHostAlloc(&mut pinned, 4, 0), OK);
    }
    let word: *mut c_void = (&raw mut word).cast();
    let batch = |graph| {
        let (mut node, mut op) = (null_mut(), CUstreamBatchMemOpParams::default());
        op.memoryBarrier.operation = CUstreamBatchMemOpType::CU_STREAM_MEM_OP_BARRIER;
        let params = CUDA_BATCH_MEM_OP_NODE_PARAMS {
            ctx: driver.context,
            count: 1,
            paramArray: &raw mut op,
            flags: 0,
        };
        assert_eq!(unsafe { driver.cuGraphAddBatchMemOpNode(&mut node, graph, null(), 0, &params) }, OK);
        node
    };
    let wait = |graph| {
        let mut node = null_mut();
        assert_eq!(unsafe { driver.cuGraphAddEventWaitNode(&mut node, graph, null(), 0, event) }, OK);
        node
    };
    let record = |graph| {
        let mut node = null_mut();
        assert_eq!(unsafe { driver.cuGraphAddEventRecordNode(&mut node, graph, null(), 0, event) }, OK);
        node
    };
    type Make<'a> = &'a dyn Fn(CUgraph) -> CUgraphNode;
    let rows: [(&str, Make<'_>, u32); 10] = [
        ("an empty node", &|graph| driver.empty(graph, &[]), 0),
        ("a kernel", &|graph| driver.kernel(graph, &[], "add", [address, 1]), 0),
        ("a fill", &|graph| driver.fill(graph, &[], address, 1), 0),
        ("a copy to pinned memory", &|graph| copy(&driver, graph, address, pinned), 0),
        ("a copy to pageable memory", &|graph| copy(&driver, graph, address, word), 4),
        ("a host function", &|graph| host(&driver, graph), 3),
        ("a wait", &wait, 3),
        ("a record", &record, 3),
        ("memory operations", &batch, 3),
        ("an allocation", &|graph| alloc(&driver, graph), 3),
    ];
    for (what, make, reason) in rows {
        for in_child in [false, true] {
            // The graph of a cloned child takes no allocation at all.
            if in_child && what == "an allocation" {
                continue;
            }
            let (own, inner) = (driver.graph(), driver.graph());
            let handle = driver.condition(own, 0);
            let (_, bodies) = driver.conditional(own, &[], handle, (IF, 1));
            let place = if in_child { driver.embedded(driver.child(bodies[0], inner).1) } else { bodies[0] };
            let node = make(place);
            if reason == 0 {
                driver.end(driver.instantiate(own));
            } else {
                assert_eq!(driver.refusal(own, 0), (IV, reason, node), "{what}, in a child: {in_child}");
                let mut exec = null_mut();
                assert_eq!(unsafe { driver.cuGraphInstantiateWithFlags(&mut exec, own, 0) }, IV, "{what}");
            }
            driver.destroy(&[own, inner]);
        }
    }
    unsafe {
        assert_eq!(driver.cuMemFreeHost(pinned), OK);
        assert_eq!(driver.cuEventDestroy(event), OK);
    }
    driver.free(address);
}

#[test]
fn a_free_node_in_a_body_is_refused_as_late() {
    let driver = session();
    cuda_tests::needs!(Conditionals);
    let (source, own) = (driver.graph(), driver.graph());
    let mut params = CUDA_MEM_ALLOC_NODE_PARAMS { bytesize: 64, ..Default::default() };
    params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    let handle = driver.condition(own, 0);
    let (_, bodies) = driver.conditional(own, &[], handle, (IF, 1));
    let mut node = null_mut();
    unsafe {
        assert_eq!(driver.cuGraphAddMemAllocNode(&mut node, source, null(), 0, &mut params), OK);
        assert_eq!(driver.cuGraphAddMemFreeNode(&mut node, bodies[0], null(), 0, params.dptr), OK);
    }
    assert_eq!(driver.refusal(own, 0), (IV, 3, node));
    driver.destroy(&[own, source]);
}

#[test]
fn a_body_uses_memory_that_its_graph_allocates() {
    let driver = session();
    cuda_tests::needs!(Conditionals);
    let (own, address) = (driver.graph(), driver.words(1));
    let mut params = CUDA_MEM_ALLOC_NODE_PARAMS { bytesize: 64, ..Default::default() };
    params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    let (mut made, mut freed) = (null_mut(), null_mut());
    let handle = driver.condition(own, 1);
    unsafe {
        assert_eq!(driver.cuGraphAddMemAllocNode(&mut made, own, null(), 0, &mut params), OK);
        let left = driver.fill(own, &[made], params.dptr, 3);
        let (node, bodies) = driver.conditional(own, &[left], handle, (WHILE, 1));
        let first = driver.kernel(bodies[0], &[], "add", [address, 1]);
        driver.kernel(bodies[0], &[first], "count_down", [params.dptr, handle]);
        assert_eq!(driver.cuGraphAddMemFreeNode(&mut freed, own, &node, 1, params.dptr), OK);
    }
    let exec = driver.instantiate(own);
    driver.run(exec);
    driver.run(exec);
    assert_eq!(driver.read(address), 6);
    driver.end(exec);
    driver.destroy(&[own]);
    driver.free(address);
}
