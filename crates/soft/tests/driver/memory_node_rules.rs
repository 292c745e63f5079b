//! The rules for allocation and free nodes.

use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_sys::*;

fn alloc_node(driver: &Driver, graph: CUgraph) -> (CUgraphNode, CUdeviceptr) {
    let (mut node, mut params) =
        (null_mut(), CUDA_MEM_ALLOC_NODE_PARAMS { bytesize: 64, ..Default::default() });
    params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    assert_eq!(unsafe { driver.cuGraphAddMemAllocNode(&mut node, graph, null(), 0, &mut params) }, OK);
    (node, params.dptr)
}

fn free_node(driver: &Driver, graph: CUgraph, after: &[CUgraphNode], address: CUdeviceptr) -> CUresult {
    unsafe { driver.cuGraphAddMemFreeNode(&mut null_mut(), graph, after.as_ptr(), after.len(), address) }
}

#[test]
fn a_refused_allocation_takes_nothing() {
    leaves_nothing("memory_node_rules::a_refused_allocation_takes_nothing", || {
        let driver = &session();
        let own = graph(driver);
        let mut base = CUDA_MEM_ALLOC_NODE_PARAMS { bytesize: 64, ..Default::default() };
        base.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        base.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        type P = CUDA_MEM_ALLOC_NODE_PARAMS;
        let with = |change: &dyn Fn(&mut P)| {
            let mut params = base;
            change(&mut params);
            params
        };
        let access = |device: i32, flags: u32| {
            let mut access = CUmemAccessDesc::default();
            access.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
            access.location.__bindgen_anon_1.id = device;
            access.flags.0 = flags;
            access
        };
        let (own_access, read_only, far) = (access(0, 3), access(0, 1), access(99, 3));
        let with_access = |access: &CUmemAccessDesc| P { accessDescs: access, accessDescCount: 1, ..base };
        for (what, mut params, answer) in [
            ("plain", base, OK),
            ("its own device, for reads and writes", with_access(&own_access), OK),
            ("a wished address", P { dptr: 1 << 40, ..base }, OK),
            ("more than the device has", P { bytesize: 100 << 30, ..base }, OK),
            ("1 TiB", P { bytesize: 1 << 40, ..base }, CUresult::CUDA_ERROR_OUT_OF_MEMORY),
            ("size 0", P { bytesize: 0, ..base }, IV),
            ("device 99", with(&|params| params.poolProps.location.__bindgen_anon_1.id = 99), IV),
            ("type 0", with(&|params| params.poolProps.allocType.0 = 0), IV),
            (
                "on the host",
                with(&|params| {
                    params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST
                }),
                NS,
            ),
            ("shareable", with(&|params| params.poolProps.handleTypes.0 = 1), NS),
            ("its own device, for reads alone", with_access(&read_only), NS),
            ("access for device 99", with_access(&far), CUresult::CUDA_ERROR_INVALID_DEVICE),
        ] {
            let before = nodes(driver, own).len();
            let found =
                unsafe { driver.cuGraphAddMemAllocNode(&mut null_mut(), own, null(), 0, &mut params) };
            assert_eq!(found, answer, "{what}");
            assert_eq!(nodes(driver, own).len(), before + usize::from(answer == OK), "{what}");
        }
        assert_eq!(unsafe { driver.cuGraphDestroy(own) }, OK);
    });
}

#[test]
fn one_graph_frees_an_allocation_once() {
    leaves_nothing("memory_node_rules::one_graph_frees_an_allocation_once", || {
        let driver = &session();
        let (own, other, third) = (graph(driver), graph(driver), graph(driver));
        let plain = words(driver, 4);
        let (first, address) = alloc_node(driver, own);
        for (what, bad) in
            [("inside", address + 8), ("another allocation", plain), ("made up", 1 << 50), ("null", 0)]
        {
            assert_eq!(free_node(driver, own, &[first], bad), IV, "{what}");
        }
        assert_eq!(free_node(driver, own, &[first], address), OK);
        assert_eq!(free_node(driver, own, &[first], address), IV);
        assert_eq!(free_node(driver, other, &[], address), IV);
        // One that its own graph does not free others may, each once; then its own may not.
        let (_, address) = alloc_node(driver, own);
        assert_eq!(free_node(driver, other, &[], address), OK);
        assert_eq!(free_node(driver, other, &[], address), IV);
        assert_eq!(free_node(driver, third, &[], address), OK);
        assert_eq!(free_node(driver, own, &[], address), IV);
        unsafe {
            for graph in [own, other, third] {
                assert_eq!(driver.cuGraphDestroy(graph), OK);
            }
            assert_eq!(driver.cuMemFree(plain), OK);
        }
    });
}

#[test]
fn memory_outlives_its_graph_and_is_freed_by_another() {
    leaves_nothing("memory_node_rules::memory_outlives_its_graph_and_is_freed_by_another", || {
        let driver = &session();
        let (own, late, stream) = (graph(driver), graph(driver), stream(driver));
        let (_, address) = alloc_node(driver, own);
        let exec = instantiate(driver, own);
        run(driver, exec, stream);
        unsafe {
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(own), OK);
        }
        // The graph is gone, its memory is not; a free node for it may still be made.
        assert_eq!(read(driver, address, 4).len(), 4);
        assert_eq!(free_node(driver, late, &[], address), OK);
        let exec = instantiate(driver, late);
        run(driver, exec, stream);
        unsafe {
            // Nothing is live any more.
            assert_eq!(driver.cuGraphLaunch(exec, stream), IV);
            assert_eq!(driver.cuMemFree(address), IV);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(late), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

#[test]
fn a_graph_with_memory_nodes_forbids_much() {
    leaves_nothing("memory_node_rules::a_graph_with_memory_nodes_forbids_much", || {
        let driver = &session();
        for frees in [false, true] {
            let (source, own) = (graph(driver), graph(driver));
            let (_, address) = alloc_node(driver, source);
            let first = if frees {
                assert_eq!(free_node(driver, own, &[], address), OK);
                nodes(driver, own)[0]
            } else {
                alloc_node(driver, own).0
            };
            let second = empty(driver, own, &[first]);
            let outer = graph(driver);
            let mut out = null_mut();
            unsafe {
                assert_eq!(driver.cuGraphRemoveDependencies(own, &first, &second, 1), NS);
                assert_eq!(driver.cuGraphDestroyNode(second), NS);
                assert_eq!(driver.cuGraphDestroyNode(first), NS);
                assert_eq!(driver.cuGraphClone(&mut out, own), NS);
                assert_eq!(driver.cuGraphAddChildGraphNode(&mut null_mut(), outer, null(), 0, own), NS);
                let exec = instantiate(driver, own);
                assert_eq!(refusal(driver, own, 0).0, NS);
                let third = empty(driver, own, &[]);
                assert_eq!(driver.cuGraphAddDependencies(own, &second, &third, 1), OK);
                assert_eq!(driver.cuGraphExecDestroy(exec), OK);
                let exec = instantiate(driver, own);
                assert_eq!(driver.cuGraphExecDestroy(exec), OK);
                let mut set = generic(CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE);
                if frees {
                    // The memory comes first.
                    assert_eq!(driver.cuGraphNodeSetParams(first, &mut set), IV);
                    assert_eq!(
                        driver.cuGraphMemFreeNodeGetParams(first, &mut set.__bindgen_anon_1.free.dptr),
                        OK
                    );
                    assert_eq!(driver.cuGraphNodeSetParams(first, &mut set), NS);
                }
                for graph in [own, outer, source] {
                    assert_eq!(driver.cuGraphDestroy(graph), OK);
                }
            }
        }
    });
}
