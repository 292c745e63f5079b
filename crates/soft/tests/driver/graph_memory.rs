//! Where this driver is stricter than a GPU about the memory of graphs: each use before the allocation node or after the free node is caught.

use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_soft::control;
use cuda_sys::*;

fn alloc_node(driver: &Driver, graph: CUgraph, after: &[CUgraphNode]) -> (CUgraphNode, CUdeviceptr) {
    let (mut node, mut params) =
        (null_mut(), CUDA_MEM_ALLOC_NODE_PARAMS { bytesize: 64, ..Default::default() });
    params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    let (count, after) = (after.len(), after.as_ptr());
    assert_eq!(unsafe { driver.cuGraphAddMemAllocNode(&mut node, graph, after, count, &mut params) }, OK);
    (node, params.dptr)
}

fn free_node(driver: &Driver, graph: CUgraph, after: &[CUgraphNode], address: CUdeviceptr) -> CUgraphNode {
    let mut node = null_mut();
    let (count, after) = (after.len(), after.as_ptr());
    assert_eq!(unsafe { driver.cuGraphAddMemFreeNode(&mut node, graph, after, count, address) }, OK);
    node
}

/// Makes a node wait for one that is created last, so that everything else comes before it.
fn put_off(driver: &Driver, graph: CUgraph, node: CUgraphNode) {
    let last = empty(driver, graph, &[]);
    assert_eq!(unsafe { driver.cuGraphAddDependencies(graph, &last, &node, 1) }, OK);
}

/// Launches once; the device is lost, by a sentence with these words.
fn loses(driver: &Driver, exec: CUgraphExec, words: &[String]) {
    let stream = stream(driver);
    unsafe {
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    let sentence = control::last_fault().unwrap();
    for word in words {
        assert!(sentence.contains(word), "`{word}` is not in: {sentence}");
    }
}

fn hex(what: &str, number: u64) -> String {
    format!("{what}{number:#x}")
}

fn node_of(what: &str, node: CUgraphNode) -> String {
    hex(what, node.addr() as u64)
}

#[test]
fn a_use_before_the_allocation_node_is_caught() {
    alone("graph_memory::a_use_before_the_allocation_node_is_caught", || {
        let driver = &session();
        let (own, add) = (graph(driver), function(driver, library(driver), "add"));
        let (made, address) = alloc_node(driver, own, &[]);
        let user = word_node(driver, own, &[], add, address, 1);
        put_off(driver, own, made);
        let exec = instantiate(driver, own);
        let words = [
            "`add`".to_owned(),
            hex("", address),
            node_of("before its allocation node ", made),
            node_of("in the graph node ", user),
        ];
        loses(driver, exec, &words);
    });
}

#[test]
fn a_use_before_the_allocation_node_is_caught_where_the_launch_frees_it() {
    alone("graph_memory::a_use_before_the_allocation_node_is_caught_where_the_launch_frees_it", || {
        let driver = &session();
        let (own, add) = (graph(driver), function(driver, library(driver), "add"));
        let (made, address) = alloc_node(driver, own, &[]);
        let user = word_node(driver, own, &[], add, address, 1);
        put_off(driver, own, made);
        free_node(driver, own, &[made], address);
        let exec = instantiate(driver, own);
        let words = [
            "`add`".to_owned(),
            node_of("allocation node ", made),
            "not been reached".to_owned(),
            node_of("in the graph node ", user),
        ];
        loses(driver, exec, &words);
    });
}

#[test]
fn a_use_of_the_memory_of_the_launch_before_is_caught() {
    alone("graph_memory::a_use_of_the_memory_of_the_launch_before_is_caught", || {
        let driver = &session();
        let (own, add) = (graph(driver), function(driver, library(driver), "add"));
        let (made, address) = alloc_node(driver, own, &[]);
        let user = word_node(driver, own, &[], add, address, 1);
        put_off(driver, own, made);
        const AUTO_FREE: u64 = 1;
        let (mut exec, stream) = (null_mut(), stream(driver));
        unsafe {
            assert_eq!(driver.cuGraphInstantiateWithFlags(&mut exec, own, AUTO_FREE), OK);
            assert_eq!(driver.cuGraphNodeSetEnabled(exec, user, 0), OK);
            run(driver, exec, stream);
            run(driver, exec, stream);
            // Between launches it may be used.
            assert_eq!(driver.cuMemsetD32(address, 4, 16), OK);
            assert_eq!(driver.cuGraphNodeSetEnabled(exec, user, 1), OK);
        }
        loses(driver, exec, &[node_of("before its allocation node ", made)]);
    });
}

#[test]
fn a_new_life_starts_unwritten() {
    let driver = &session();
    let (own, stream) = (graph(driver), stream(driver));
    let (_, address) = alloc_node(driver, own, &[]);
    let mut exec = null_mut();
    unsafe {
        assert_eq!(driver.cuGraphInstantiateWithFlags(&mut exec, own, 1), OK);
        for _ in 0..2 {
            run(driver, exec, stream);
            assert_eq!(read(driver, address, 16), [0xCDCD_CDCD; 16]);
            assert_eq!(driver.cuMemsetD32(address, 4, 16), OK);
        }
        assert_eq!(driver.cuGraphExecDestroy(exec), OK);
        assert_eq!(driver.cuGraphDestroy(own), OK);
        assert_eq!(driver.cuMemFree(address), OK);
    }
}

#[test]
fn a_use_after_the_free_node_is_caught() {
    alone("graph_memory::a_use_after_the_free_node_is_caught", || {
        let driver = &session();
        let (own, add) = (graph(driver), function(driver, library(driver), "add"));
        let (made, address) = alloc_node(driver, own, &[]);
        let freed = free_node(driver, own, &[made], address);
        let user = word_node(driver, own, &[freed], add, address, 1);
        let exec = instantiate(driver, own);
        let words = ["`add`".to_owned(), node_of("free node ", freed), node_of("in the graph node ", user)];
        loses(driver, exec, &words);
    });
}

#[test]
fn a_use_between_the_lives_of_a_shared_address_is_caught() {
    alone("graph_memory::a_use_between_the_lives_of_a_shared_address_is_caught", || {
        let driver = &session();
        let (own, add) = (graph(driver), function(driver, library(driver), "add"));
        let (made, address) = alloc_node(driver, own, &[]);
        let freed = free_node(driver, own, &[made], address);
        let (again, same) = alloc_node(driver, own, &[freed]);
        assert_eq!(address, same);
        let user = word_node(driver, own, &[freed], add, address, 1);
        assert_eq!(unsafe { driver.cuGraphAddDependencies(own, &user, &again, 1) }, OK);
        let exec = instantiate(driver, own);
        loses(driver, exec, &[node_of("freed by free node ", freed), node_of("in the graph node ", user)]);
    });
}

#[test]
fn a_use_after_the_free_node_of_another_graph_is_caught() {
    alone("graph_memory::a_use_after_the_free_node_of_another_graph_is_caught", || {
        let driver = &session();
        let (own, other, stream) = (graph(driver), graph(driver), stream(driver));
        let add = function(driver, library(driver), "add");
        let (_, address) = alloc_node(driver, own, &[]);
        run(driver, instantiate(driver, own), stream);
        let freed = free_node(driver, other, &[], address);
        word_node(driver, other, &[freed], add, address, 1);
        loses(driver, instantiate(driver, other), &[node_of("free node ", freed)]);
    });
}

#[test]
fn a_free_node_before_its_allocation_node_is_caught() {
    alone("graph_memory::a_free_node_before_its_allocation_node_is_caught", || {
        let driver = &session();
        let own = graph(driver);
        let (made, address) = alloc_node(driver, own, &[]);
        let freed = free_node(driver, own, &[], address);
        put_off(driver, own, made);
        let exec = instantiate(driver, own);
        loses(driver, exec, &[node_of("free node ", freed), node_of("before allocation node ", made)]);
    });
}

#[test]
fn the_free_nodes_of_a_graph_that_is_gone_count_no_more() {
    leaves_nothing("graph_memory::the_free_nodes_of_a_graph_that_is_gone_count_no_more", || {
        let driver = &session();
        // In the graph itself, and in one that was moved into it.
        for by_move in [false, true] {
            let (own, other, inner) = (graph(driver), graph(driver), graph(driver));
            let (made, address) = alloc_node(driver, own, &[]);
            free_node(driver, if by_move { inner } else { other }, &[], address);
            if by_move {
                let mut params = generic(CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH);
                let ownership = CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
                params.__bindgen_anon_1.graph = CUDA_CHILD_GRAPH_NODE_PARAMS { graph: inner, ownership };
                assert_eq!(add(driver, other, &[], &mut params).0, OK);
            }
            let refused = unsafe { driver.cuGraphAddMemFreeNode(&mut null_mut(), own, null(), 0, address) };
            assert_eq!(refused, IV);
            assert_eq!(unsafe { driver.cuGraphDestroy(other) }, OK);
            free_node(driver, own, &[made], address);
            assert_eq!(unsafe { driver.cuGraphDestroy(own) }, OK);
            if !by_move {
                assert_eq!(unsafe { driver.cuGraphDestroy(inner) }, OK);
            }
        }
    });
}

#[test]
fn the_devices_room_is_given_back() {
    leaves_nothing("graph_memory::the_devices_room_is_given_back", || {
        let driver = &session();
        let (own, stream) = (graph(driver), stream(driver));
        let room = || {
            let (mut free, mut total) = (0, 0);
            assert_eq!(unsafe { driver.cuMemGetInfo(&mut free, &mut total) }, OK);
            free
        };
        let before = room();
        let (_, address) = alloc_node(driver, own, &[]);
        let exec = instantiate(driver, own);
        for _ in 0..4 {
            let gate = Gate::close(driver, stream);
            unsafe {
                assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
                assert_eq!(driver.cuMemFreeAsync(address, stream), OK);
                assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
                assert_eq!(driver.cuMemFreeAsync(address, stream), OK);
            }
            gate.open();
        }
        unsafe {
            assert_eq!(driver.cuStreamSynchronize(stream), OK);
            assert_eq!(room(), before);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

#[test]
fn calls_see_no_memory_whose_free_is_queued() {
    alone("graph_memory::calls_see_no_memory_whose_free_is_queued", || {
        let driver = &session();
        let (own, stream) = (graph(driver), stream(driver));
        let (_, address) = alloc_node(driver, own, &[]);
        let exec = instantiate(driver, own);
        let gate = Gate::close(driver, stream);
        let fill = || unsafe { driver.cuMemsetD32Async(address, 1, 1, stream) };
        unsafe {
            assert_eq!(fill(), IV);
            assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
            assert_eq!(fill(), OK);
            assert_eq!(driver.cuMemFreeAsync(address, stream), OK);
            assert_eq!(fill(), IV);
            assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
            assert_eq!(fill(), OK);
        }
        gate.open();
        unsafe { assert_eq!(driver.cuStreamSynchronize(stream), OK) };
        assert_eq!(read(driver, address, 2), [1, 0xCDCD_CDCD]);
    });
}
