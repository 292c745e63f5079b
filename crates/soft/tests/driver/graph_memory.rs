//! Memory of graphs, where this driver is stricter than a GPU: every use before the allocation node
//! or after the free node is caught.

use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_soft::{Config, control};
use cuda_sys::*;

fn alloc_node(driver: &Driver, graph: CUgraph, after: &[CUgraphNode]) -> (CUgraphNode, CUdeviceptr) {
    alloc_bytes(driver, graph, after, 64)
}

fn alloc_bytes(
    driver: &Driver,
    graph: CUgraph,
    after: &[CUgraphNode],
    bytesize: usize,
) -> (CUgraphNode, CUdeviceptr) {
    let (mut node, mut params) = (null_mut(), CUDA_MEM_ALLOC_NODE_PARAMS { bytesize, ..Default::default() });
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
        let before = room(driver);
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
            // What the graph has mapped stays so until a trim.
            assert_eq!(before - room(driver), 32 << 20);
            assert_eq!(driver.cuDeviceGraphMemTrim(0), OK);
            assert_eq!(room(driver), before);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

/// Bytes of the device that are free.
fn room(driver: &Driver) -> usize {
    let (mut free, mut total) = (0, 0);
    assert_eq!(unsafe { driver.cuMemGetInfo(&mut free, &mut total) }, OK);
    free
}

#[test]
fn addresses_come_to_an_end_with_an_error() {
    leaves_nothing("graph_memory::addresses_come_to_an_end_with_an_error", || {
        let driver = &session();
        let own = graph(driver);
        let mut answers = Vec::new();
        for _ in 0..300 {
            let mut params = CUDA_MEM_ALLOC_NODE_PARAMS { bytesize: (1 << 40) - 1, ..Default::default() };
            params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
            params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
            let mut node = null_mut();
            answers.push(unsafe { driver.cuGraphAddMemAllocNode(&mut node, own, null(), 0, &mut params) });
        }
        let there = answers.iter().position(|answer| *answer != OK).unwrap();
        assert!(there > 200);
        let out_of_memory = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        assert!(answers[there..].iter().all(|answer| *answer == out_of_memory), "{:?}", &answers[there..]);
        assert_eq!(unsafe { driver.cuGraphDestroy(own) }, OK);
    });
}

#[test]
fn what_graphs_have_mapped_makes_way_for_other_memory() {
    leaves_nothing("graph_memory::what_graphs_have_mapped_makes_way_for_other_memory", || {
        let driver = &session_with(Config::new().memory(256 << 20));
        let stream = stream(driver);
        // Each of these takes more than half of the device, one after the other.
        let execs: Vec<_> = (0..4)
            .map(|_| {
                let own = graph(driver);
                let (made, address) = alloc_bytes(driver, own, &[], 160 << 20);
                free_node(driver, own, &[made], address);
                (own, instantiate(driver, own))
            })
            .collect();
        for (_, exec) in &execs {
            run(driver, *exec, stream);
            assert_eq!(room(driver), 96 << 20);
        }
        let mut address = 0;
        unsafe {
            assert_eq!(driver.cuMemAlloc(&mut address, 160 << 20), OK);
            assert_eq!(room(driver), 96 << 20);
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(room(driver), 256 << 20);
        }
        run(driver, execs[0].1, stream);
        unsafe {
            assert_eq!(driver.cuMemAllocAsync(&mut address, 160 << 20, stream), OK);
            assert_eq!(driver.cuMemFreeAsync(address, stream), OK);
            assert_eq!(driver.cuStreamSynchronize(stream), OK);
            for (own, exec) in execs {
                assert_eq!(driver.cuGraphExecDestroy(exec), OK);
                assert_eq!(driver.cuGraphDestroy(own), OK);
            }
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

#[test]
fn memory_of_several_sizes_shares_addresses_one_after_the_other() {
    leaves_nothing("graph_memory::memory_of_several_sizes_shares_addresses_one_after_the_other", || {
        let driver = &session();
        let (stream, library) = (stream(driver), library(driver));
        let add = function(driver, library, "add");
        let before = room(driver);
        for flags in [0, 1] {
            let own = graph(driver);
            // A large one, then two small ones where it was, and a third of which both are freed;
            // what is left by a launch is the last of these and one more.
            let (made, large) = alloc_bytes(driver, own, &[], 4096);
            let used = word_node(driver, own, &[made], add, large + 4092, 1);
            let freed = free_node(driver, own, &[used], large);
            let (first, one) = alloc_bytes(driver, own, &[freed], 512);
            let (second, two) = alloc_bytes(driver, own, &[first], 100);
            let (kept, three) = alloc_bytes(driver, own, &[second], 1024);
            assert_eq!((one, two, three), (large, large + 512, large + 1024));
            let used = word_node(driver, own, &[kept], add, two, 1);
            let used = word_node(driver, own, &[used], add, three + 1020, 5);
            let freed = [one, two].map(|address| free_node(driver, own, &[used], address));
            let (last, four) = alloc_bytes(driver, own, &freed, 1000);
            assert_eq!(four, large);
            word_node(driver, own, &[last], add, four + 996, 7);
            // What does not fit lies elsewhere.
            let (_, far) = alloc_bytes(driver, own, &freed, 4096);
            assert!(far >= large + 4096);
            let mut exec = null_mut();
            unsafe {
                assert_eq!(driver.cuGraphInstantiateWithFlags(&mut exec, own, flags), OK);
                for round in 0..3 {
                    run(driver, exec, stream);
                    let unwritten = 0xCDCD_CDCD_u32;
                    assert_eq!(read(driver, four + 992, 2), [unwritten, unwritten.wrapping_add(7)]);
                    assert_eq!(read(driver, three + 1020, 1), [unwritten.wrapping_add(5)]);
                    let (mut start, mut size) = (0, 0);
                    assert_eq!(driver.cuMemGetAddressRange(&mut start, &mut size, four + 8), OK);
                    assert_eq!((start, size), (four, 1000));
                    if flags == 0 || round == 2 {
                        for address in [three, four, far] {
                            assert_eq!(driver.cuMemFree(address), OK);
                        }
                        assert_eq!(driver.cuDeviceGraphMemTrim(0), OK);
                        assert_eq!(room(driver), before);
                    }
                }
                assert_eq!(driver.cuGraphExecDestroy(exec), OK);
                assert_eq!(driver.cuGraphDestroy(own), OK);
            }
        }
        unsafe {
            assert_eq!(driver.cuStreamDestroy(stream), OK);
            assert_eq!(driver.cuLibraryUnload(library), OK);
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
