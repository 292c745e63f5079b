//! Allocation and free nodes: addresses, lifetimes, and refused operations.

use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_sys::*;
use cuda_tests::{SOON, needs, until};

pub(crate) fn alloc_params(bytesize: usize) -> CUDA_MEM_ALLOC_NODE_PARAMS {
    let mut params = CUDA_MEM_ALLOC_NODE_PARAMS { bytesize, ..Default::default() };
    params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    params
}

/// An allocation node and its address.
pub(crate) fn alloc(
    driver: &Session,
    graph: CUgraph,
    after: &[CUgraphNode],
    len: usize,
) -> (CUgraphNode, CUdeviceptr) {
    let (mut node, mut params) = (null_mut(), alloc_params(len));
    let (count, after) = (after.len(), after.as_ptr());
    assert_eq!(unsafe { driver.cuGraphAddMemAllocNode(&mut node, graph, after, count, &mut params) }, OK);
    (node, params.dptr)
}

pub(crate) fn try_free(
    driver: &Session,
    graph: CUgraph,
    after: &[CUgraphNode],
    address: CUdeviceptr,
) -> (CUresult, CUgraphNode) {
    let mut node = null_mut();
    let (count, after) = (after.len(), after.as_ptr());
    (unsafe { driver.cuGraphAddMemFreeNode(&mut node, graph, after, count, address) }, node)
}

pub(crate) fn free(
    driver: &Session,
    graph: CUgraph,
    after: &[CUgraphNode],
    address: CUdeviceptr,
) -> CUgraphNode {
    let (answer, node) = try_free(driver, graph, after, address);
    assert_eq!(answer, OK);
    node
}

/// The driver's answers to a query of the pointer and to a copy.
fn seen(driver: &Session, address: CUdeviceptr) -> (CUresult, CUresult) {
    let (mut kind, mut word) = (CUmemorytype(0), 0u32);
    let attribute = CUpointer_attribute_enum::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    let query = unsafe { driver.cuPointerGetAttribute((&raw mut kind).cast(), attribute, address) };
    (query, driver.try_read(address, &mut word))
}

#[test]
fn addresses_are_shared_by_what_comes_after_a_free() {
    let driver = session();
    let (own, other) = (driver.graph(), driver.graph());
    let (first, one) = alloc(&driver, own, &[], 64);
    let (_, two) = alloc(&driver, own, &[], 64);
    assert_eq!(one.abs_diff(two), 512);
    let freed = free(&driver, own, &[first], one);
    // After the free, by way of another node.
    let between = driver.empty(own, &[freed]);
    let (third, three) = alloc(&driver, own, &[between], 64);
    assert_eq!(three, one);
    // Not after it, or after it but that address is taken: another one.
    let (_, four) = alloc(&driver, own, &[first], 64);
    let (_, five) = alloc(&driver, own, &[freed], 64);
    let (_, far) = alloc(&driver, other, &[], 64);
    let mut all = vec![one, two, four, five, far];
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 5);
    // Once that is freed as well, the next one gets it.
    let freed = free(&driver, own, &[third], three);
    assert_eq!(try_free(&driver, own, &[third], three).0, IV);
    assert_eq!(alloc(&driver, own, &[freed], 64).1, one);
    driver.destroy(&[own, other]);
}

#[test]
fn memory_at_a_shared_address_lives_one_after_the_other() {
    let driver = session();
    let (own, out) = (driver.graph(), driver.words(2));
    let (first, address) = alloc(&driver, own, &[], 64);
    let filled = driver.fill(own, &[first], address, 5);
    let kept = copy(&driver, own, &[filled], address, out);
    let freed = free(&driver, own, &[kept], address);
    let (second, again) = alloc(&driver, own, &[freed], 64);
    assert_eq!(address, again);
    let filled = driver.fill(own, &[second], again, 6);
    copy(&driver, own, &[filled], again, out + 4);
    let exec = driver.instantiate(own);
    for _ in 0..2 {
        driver.run(exec);
        assert_eq!((driver.read(out), driver.read(out + 4)), (5, 6));
        // The second one lives.
        assert_eq!(driver.read(again), 6);
        assert_eq!(driver.launch(exec), IV);
        driver.free(again);
        assert_eq!(seen(&driver, again), (IV, IV));
    }
    driver.end(exec);
    driver.destroy(&[own]);
    driver.free(out);
}

/// A copy of a word.
fn copy_params(from: CUdeviceptr, to: CUdeviceptr) -> CUDA_MEMCPY3D_v2 {
    CUDA_MEMCPY3D_v2 {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcDevice: from,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: to,
        WidthInBytes: 4,
        Height: 1,
        Depth: 1,
        ..Default::default()
    }
}

fn copy(
    driver: &Session,
    graph: CUgraph,
    after: &[CUgraphNode],
    from: CUdeviceptr,
    to: CUdeviceptr,
) -> CUgraphNode {
    let (mut node, params) = (null_mut(), copy_params(from, to));
    let (count, after) = (after.len(), after.as_ptr());
    let answer =
        unsafe { driver.cuGraphAddMemcpyNode(&mut node, graph, after, count, &params, driver.context) };
    assert_eq!(answer, OK);
    node
}

#[test]
fn memory_is_seen_while_it_lives() {
    let driver = session();
    let own = driver.graph();
    let (first, address) = alloc(&driver, own, &[], 64);
    driver.fill(own, &[first], address, 3);
    assert_eq!(seen(&driver, address), (IV, IV));
    let exec = driver.instantiate(own);
    assert_eq!(seen(&driver, address), (IV, IV));
    let frees = driver.graph();
    free(&driver, frees, &[], address);
    let freeing = driver.instantiate(frees);
    for (what, end) in [
        ("cuMemFree", &(|| unsafe { driver.cuMemFree(address) }) as &dyn Fn() -> CUresult),
        ("cuMemFreeAsync", &|| unsafe { driver.cuMemFreeAsync(address, driver.stream) }),
        ("a free node", &|| driver.launch(freeing)),
    ] {
        driver.run(exec);
        assert_eq!((seen(&driver, address), driver.read(address)), ((OK, OK), 3), "{what}");
        assert_eq!(end(), OK, "{what}");
        driver.wait();
        assert_eq!(seen(&driver, address), (IV, IV), "{what}");
        assert_eq!(unsafe { driver.cuMemFree(address) }, IV, "{what}");
        assert_eq!(unsafe { driver.cuMemFreeAsync(address, driver.stream) }, IV, "{what}");
        assert_eq!(driver.launch(freeing), IV, "{what}");
    }
    driver.end(exec);
    driver.end(freeing);
    driver.destroy(&[own, frees]);
}

#[test]
fn an_executable_whose_memory_lives_is_not_launched_again() {
    let driver = session();
    let (own, address) = (driver.graph(), driver.words(1));
    let (first, memory) = alloc(&driver, own, &[], 64);
    driver.fill(own, &[first], memory, 3);
    driver.kernel(own, &[], "add", [address, 1]);
    let exec = driver.instantiate(own);
    driver.run(exec);
    // Refused, and the stream is none the worse.
    assert_eq!(driver.launch(exec), IV);
    driver.end(exec);
    let exec = driver.instantiate(own);
    assert_eq!(driver.launch(exec), IV);
    driver.wait();
    assert_eq!(driver.read(address), 1);
    driver.end(exec);
    // One that frees by itself.
    let exec = driver.instantiate_with(own, 1);
    for _ in 0..3 {
        assert_eq!(driver.launch(exec), OK);
    }
    driver.wait();
    assert_eq!((driver.read(address), driver.read(memory)), (4, 3));
    driver.end(exec);
    driver.destroy(&[own]);
    // The memory outlives both.
    assert_eq!(driver.read(memory), 3);
    driver.free(memory);
    driver.free(address);
}

#[test]
fn a_launch_waits_for_a_free_that_is_queued_elsewhere() {
    let driver = session();
    let own = driver.graph();
    let (first, memory) = alloc(&driver, own, &[], 64);
    driver.fill(own, &[first], memory, 3);
    let exec = driver.instantiate(own);
    driver.run(exec);
    let mut other = null_mut();
    unsafe {
        assert_eq!(driver.cuStreamCreate(&mut other, 1), OK);
        let gate = Gate::close(&driver, other);
        assert_eq!(driver.cuMemFreeAsync(memory, other), OK);
        // The call does not wait, its stream does.
        assert_eq!(driver.launch(exec), OK);
        let is_over = || driver.cuStreamQuery(driver.stream) != CUresult::CUDA_ERROR_NOT_READY;
        assert!(!until(SOON / 50, is_over));
        gate.open();
        assert_eq!(driver.cuStreamSynchronize(other), OK);
        driver.wait();
        // That free belonged to the allocation before.
        assert_eq!(driver.read(memory), 3);
        assert_eq!(driver.launch(exec), IV);
        assert_eq!(driver.cuMemFreeAsync(memory, other), OK);
        assert_eq!(driver.cuStreamSynchronize(other), OK);
        assert_eq!(driver.cuStreamDestroy(other), OK);
    }
    assert_eq!(seen(&driver, memory), (IV, IV));
    driver.end(exec);
    driver.destroy(&[own]);
}

#[test]
fn launches_and_frees_are_queued_without_waiting() {
    let driver = session();
    let (own, out) = (driver.graph(), driver.words(1));
    let (first, memory) = alloc(&driver, own, &[], 64);
    driver.fill(own, &[first], memory, 3);
    let exec = driver.instantiate(own);
    // Everything is called before anything runs.
    let gate = Gate::close(&driver, driver.stream);
    for _ in 0..3 {
        assert_eq!(driver.launch(exec), OK);
        assert_eq!(driver.launch(exec), IV);
        unsafe {
            assert_eq!(driver.cuMemcpyDtoDAsync(out, memory, 4, driver.stream), OK);
            assert_eq!(driver.cuMemFreeAsync(memory, driver.stream), OK);
            assert_eq!(driver.cuMemFreeAsync(memory, driver.stream), IV);
        }
    }
    gate.open();
    driver.wait();
    assert_eq!((driver.read(out), seen(&driver, memory)), (3, (IV, IV)));
    driver.end(exec);
    driver.destroy(&[own]);
    driver.free(out);
}

#[test]
fn a_launch_may_be_called_just_as_the_free_before_it_is_reached() {
    let driver = session();
    let own = driver.graph();
    let (first, memory) = alloc(&driver, own, &[], 64);
    driver.fill(own, &[first], memory, 3);
    let exec = driver.instantiate(own);
    for round in 0..20_000 {
        assert_eq!(driver.launch(exec), OK, "round {round}");
        assert_eq!(unsafe { driver.cuMemFreeAsync(memory, driver.stream) }, OK, "round {round}");
        // The stream gets ahead of the calls by as much, so that it meets them at some place.
        (0..round % 512).for_each(|_| std::hint::spin_loop());
    }
    driver.wait();
    assert_eq!(seen(&driver, memory), (IV, IV));
    driver.end(exec);
    driver.destroy(&[own]);
}

#[test]
fn free_nodes_are_for_starts_of_graph_memory() {
    let driver = session();
    let (own, plain, mut pooled, mut pinned) = (driver.graph(), driver.words(4), 0, null_mut());
    unsafe {
        assert_eq!(driver.cuMemAllocAsync(&mut pooled, 64, driver.stream), OK);
        assert_eq!(driver.cuMemHostAlloc(&mut pinned, 64, 0), OK);
    }
    let (first, address) = alloc(&driver, own, &[], 64);
    for (what, bad) in [
        ("inside", address + 8),
        ("cuMemAlloc", plain),
        ("cuMemAllocAsync", pooled),
        ("pinned", pinned.addr() as u64),
        ("made up", 1 << 40),
        ("null", 0),
    ] {
        assert_eq!(try_free(&driver, own, &[first], bad).0, IV, "{what}");
    }
    assert_eq!(driver.count(own), Ok(1));
    driver.destroy(&[own]);
    unsafe {
        assert_eq!(driver.cuMemFreeAsync(pooled, driver.stream), OK);
        assert_eq!(driver.cuMemFreeHost(pinned), OK);
    }
    driver.free(plain);
}

#[test]
fn each_graph_frees_an_allocation_once() {
    let driver = session();
    let (own, other, third) = (driver.graph(), driver.graph(), driver.graph());
    let (first, address) = alloc(&driver, own, &[], 64);
    free(&driver, own, &[first], address);
    assert_eq!(try_free(&driver, own, &[first], address).0, IV);
    assert_eq!(try_free(&driver, other, &[], address).0, IV);
    // One that its own graph does not free, several others may; then its own may not.
    let (_, address) = alloc(&driver, own, &[], 64);
    free(&driver, other, &[], address);
    assert_eq!(try_free(&driver, other, &[], address).0, IV);
    free(&driver, third, &[], address);
    assert_eq!(try_free(&driver, own, &[], address).0, IV);
    driver.destroy(&[own, other, third]);
}

#[test]
fn a_graph_frees_nothing_late_that_an_executable_of_it_allocates() {
    let driver = session();
    needs!(Conditionals);
    let (own, other) = (driver.graph(), driver.graph());
    let (first, address) = alloc(&driver, own, &[], 64);
    // One that could not be made does not count.
    let unused = driver.condition(own, 0);
    assert_eq!(driver.refusal(own, 0).0, IV);
    let (_, between) = alloc(&driver, own, &[], 64);
    free(&driver, own, &[first], between);
    driver.conditional(own, &[], unused, (IF, 1));
    driver.end(driver.instantiate(own));
    // One that never ran and is gone does, for good.
    assert_eq!(try_free(&driver, own, &[first], address).0, IV);
    // But not for what came later, and not for other graphs.
    let (second, later) = alloc(&driver, own, &[], 64);
    free(&driver, own, &[second], later);
    free(&driver, other, &[], address);
    driver.end(driver.instantiate(own));
    driver.destroy(&[own, other]);
}

/// The answers to copies from and to memory and to a fill of it, as new nodes of a graph.
fn copied_and_filled(driver: &Session, place: CUgraph, address: u64, out: u64) -> [CUresult; 3] {
    let fill = fill_params(address + 4, 7);
    let copy = |from, to| {
        let params = copy_params(from, to);
        unsafe { driver.cuGraphAddMemcpyNode(&mut null_mut(), place, null(), 0, &params, driver.context) }
    };
    let filled =
        unsafe { driver.cuGraphAddMemsetNode(&mut null_mut(), place, null(), 0, &fill, driver.context) };
    [copy(address, out), copy(out, address + 60), filled]
}

/// The graph that allocates, two others, and one that is embedded in the last of these.
fn places(driver: &Session) -> ([CUgraph; 4], CUgraph) {
    let [own, second, far, plain] = [(); 4].map(|()| driver.graph());
    let (answer, child) = driver.child(far, plain);
    assert_eq!(answer, OK);
    ([own, second, far, driver.embedded(child)], plain)
}

#[test]
fn memory_with_a_free_node_is_copied_and_filled_by_no_later_node() {
    let driver = session();
    let ([own, second, far, embedded], plain) = places(&driver);
    let out = driver.words(2);
    let (first, address) = alloc(&driver, own, &[], 64);
    let filled = driver.fill(own, &[first], address, 3);
    for place in [second, far, embedded] {
        assert_eq!(copied_and_filled(&driver, place, address, out), [OK; 3]);
    }
    free(&driver, own, &[filled], address);
    let tried = || [own, second, far, embedded].map(|place| copied_and_filled(&driver, place, address, out));
    assert_eq!(tried(), [[IV; 3]; 4]);
    // What is there already may be set, and a kernel has but numbers.
    let params = fill_params(address, 4);
    assert_eq!(unsafe { driver.cuGraphMemsetNodeSetParams(filled, &params) }, OK);
    driver.kernel(second, &[], "add", [address, 1]);
    let exec = driver.instantiate(own);
    driver.run(exec);
    driver.end(exec);
    // For good.
    assert_eq!(tried(), [[IV; 3]; 4]);
    driver.destroy(&[own, second, far, plain]);
    driver.free(out);
}

#[test]
fn memory_that_another_graph_frees_is_copied_and_filled_by_later_nodes() {
    let driver = session();
    let ([own, second, far, embedded], plain) = places(&driver);
    let out = driver.words(2);
    let (_, address) = alloc(&driver, own, &[], 64);
    free(&driver, second, &[], address);
    let tried = [own, second, far, embedded].map(|place| copied_and_filled(&driver, place, address, out));
    assert_eq!(tried, [[OK; 3]; 4], "its own graph, the one that frees it, another, one in a child node");
    driver.destroy(&[own, second, far, plain]);
    driver.free(out);
}

#[test]
fn a_late_free_node_frees_memory_whose_graph_is_gone() {
    let driver = session();
    let (own, late) = (driver.graph(), driver.graph());
    let (_, address) = alloc(&driver, own, &[], 64);
    let exec = driver.instantiate(own);
    driver.run(exec);
    driver.end(exec);
    driver.destroy(&[own]);
    free(&driver, late, &[], address);
    let exec = driver.instantiate(late);
    driver.run(exec);
    assert_eq!(driver.launch(exec), IV);
    assert_eq!(unsafe { driver.cuMemFree(address) }, IV);
    driver.end(exec);
    driver.destroy(&[late]);
}

#[test]
fn much_is_refused_to_graphs_with_memory_nodes() {
    let driver = session();
    for frees in [false, true] {
        let (source, own, outer) = (driver.graph(), driver.graph(), driver.graph());
        let (_, address) = alloc(&driver, source, &[], 64);
        let node = if frees { free(&driver, own, &[], address) } else { alloc(&driver, own, &[], 64).0 };
        let (second, memory) = (driver.empty(own, &[node]), driver.words(1));
        let kernel = driver.kernel(own, &[second], "add", [memory, 1]);
        unsafe {
            assert_eq!(driver.cuGraphRemoveDependencies(own, &node, &second, 1), NS);
            for node in [node, second] {
                assert_eq!(driver.cuGraphDestroyNode(node), NS);
            }
            assert_eq!(driver.cuGraphClone(&mut null_mut(), own), NS);
            assert_eq!(driver.child(outer, own).0, NS);
            let exec = driver.instantiate(own);
            assert_eq!(driver.refusal(own, 0).0, NS);
            // Nodes and edges may still come.
            let third = driver.empty(own, &[]);
            assert_eq!(driver.cuGraphAddDependencies(own, &second, &third, 1), OK);
            // Neither can be disabled or set.
            assert_eq!(driver.cuGraphNodeSetEnabled(exec, node, 0), IV);
            type T = CUgraphNodeType;
            let kind = if frees { T::CU_GRAPH_NODE_TYPE_MEM_FREE } else { T::CU_GRAPH_NODE_TYPE_MEM_ALLOC };
            let mut params = CUgraphNodeParams { type_: kind, ..Default::default() };
            let plain = alloc_params(64);
            if frees {
                params.__bindgen_anon_1.free.dptr = address;
            } else {
                params.__bindgen_anon_1.alloc.poolProps = plain.poolProps;
                params.__bindgen_anon_1.alloc.bytesize = plain.bytesize;
            }
            assert_eq!(driver.cuGraphNodeSetParams(node, &mut params), NS);
            assert_eq!(driver.cuGraphExecNodeSetParams(exec, node, &mut params), NS);
            // A kernel can.
            assert_eq!(driver.set_kernel(exec, kernel, "add", [memory, 2]), OK);
            assert_eq!(driver.cuGraphNodeSetEnabled(exec, kernel, 0), OK);
            driver.end(exec);
        }
        driver.end(driver.instantiate(own));
        driver.destroy(&[own, outer, source]);
        driver.free(memory);
    }
}

#[test]
fn a_moved_child_brings_its_memory_nodes() {
    let driver = session();
    cuda_tests::needs!(MovedGraphs);
    let (own, inner, plain) = (driver.graph(), driver.graph(), driver.graph());
    let (first, address) = alloc(&driver, inner, &[], 64);
    driver.fill(inner, &[first], address, 3);
    let (_, cloned) = driver.child(own, plain);
    let embedded = driver.embedded(cloned);
    let mut params = alloc_params(64);
    unsafe {
        // The graph of a cloned child takes none.
        let refused = driver.cuGraphAddMemAllocNode(&mut null_mut(), embedded, null(), 0, &mut params);
        assert_eq!(refused, NS);
    }
    let (answer, node) = driver.embed(own, inner, 1);
    assert_eq!(answer, OK);
    unsafe {
        assert_eq!(driver.cuGraphAddMemAllocNode(&mut null_mut(), inner, null(), 0, &mut params), NS);
        assert_eq!(driver.cuGraphClone(&mut null_mut(), own), NS);
        assert_eq!(driver.cuGraphDestroyNode(node), NS);
    }
    free(&driver, own, &[node], address);
    assert_eq!(try_free(&driver, inner, &[], address).0, NS);
    let exec = driver.instantiate(own);
    assert_eq!(driver.refusal(own, 0).0, NS);
    driver.run(exec);
    driver.run(exec);
    driver.end(exec);
    driver.destroy(&[own, plain]);
}

#[test]
fn a_whole_update_takes_the_new_addresses() {
    let driver = session();
    let graph = |value: u32, len: usize| {
        let own = driver.graph();
        let (first, address) = alloc(&driver, own, &[], len);
        driver.fill(own, &[first], address, value);
        (own, address)
    };
    let ((own, old), (next, new), (last, _)) = (graph(1, 64), graph(2, 4096), graph(3, 64));
    let exec = driver.instantiate(own);
    driver.run(exec);
    // The old memory may live.
    assert_eq!(driver.update(exec, next), (OK, 0, null_mut()));
    driver.run(exec);
    assert_eq!((driver.read(old), driver.read(new)), (1, 2));
    // Now the executable is the new graph's.
    assert_eq!(driver.refusal(next, 0).0, NS);
    let second = driver.instantiate(own);
    assert_eq!(driver.launch(second), IV);
    let third = driver.instantiate(last);
    assert_eq!(driver.update(exec, last), (NS, 0, null_mut()));
    for exec in [exec, second, third] {
        driver.end(exec);
    }
    driver.free(old);
    driver.free(new);
    driver.destroy(&[own, next, last]);
}

#[test]
fn more_than_the_device_has_is_refused_by_the_launch() {
    cuda_tests::takes_all_memory!();
    cuda_tests::alone!();
    let driver = session();
    let (own, mut total) = (driver.graph(), 0);
    assert_eq!(unsafe { driver.cuDeviceTotalMem(&mut total, 0) }, OK);
    let (_, small) = alloc(&driver, own, &[], 64);
    let (_, large) = alloc(&driver, own, &[], (total + total / 4).min((1 << 40) - 1));
    let exec = driver.instantiate(own);
    assert_eq!(driver.launch(exec), CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    // Nothing has become of it.
    driver.wait();
    assert_eq!(seen(&driver, small), (IV, IV));
    assert_eq!(unsafe { driver.cuMemFree(large) }, IV);
    assert_eq!(driver.launch(exec), CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    // All that there is stays reserved, and plain memory is not to be had.
    let has_all = || {
        let (used, reserved) = (mapped(&driver, USED), mapped(&driver, RESERVED));
        assert_eq!(used, 0);
        assert!(reserved > total as u64 / 10 * 9 && reserved <= total as u64, "{reserved} of {total}");
        let plain = unsafe { driver.cuMemAlloc(&mut 0, 1 << 30) };
        assert_eq!(plain, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    };
    has_all();
    driver.end(exec);
    driver.destroy(&[own]);
    assert_eq!(unsafe { driver.cuDeviceGraphMemTrim(0) }, OK);
    has_all();
}

const USED: CUgraphMem_attribute = CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT;
const RESERVED: CUgraphMem_attribute = CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT;

/// The memory that graphs have of the device, in bytes.
fn mapped(driver: &Session, figure: CUgraphMem_attribute) -> u64 {
    let mut bytes = 0u64;
    let answer = unsafe { driver.cuDeviceGetGraphMemAttribute(0, figure, (&raw mut bytes).cast()) };
    assert_eq!(answer, OK);
    bytes
}

#[test]
fn captured_allocations_are_nodes_of_the_same_rules() {
    let driver = session();
    let (mut one, mut two, mut own) = (0, 0, null_mut());
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    unsafe {
        assert_eq!(driver.cuStreamBeginCapture(driver.stream, mode), OK);
        assert_eq!(driver.cuMemAllocAsync(&mut one, 64, driver.stream), OK);
        assert_eq!(driver.cuMemFreeAsync(one, driver.stream), OK);
        assert_eq!(driver.cuMemFreeAsync(one, driver.stream), IV);
        assert_eq!(driver.cuMemAllocAsync(&mut two, 64, driver.stream), OK);
        assert_eq!(driver.cuMemsetD32Async(two, 8, 1, driver.stream), OK);
        assert_eq!(driver.cuStreamEndCapture(driver.stream, &mut own), OK);
        assert_eq!((one, driver.count(own)), (two, Ok(4)));
        assert_eq!(driver.cuGraphClone(&mut null_mut(), own), NS);
    }
    let exec = driver.instantiate(own);
    assert_eq!(seen(&driver, two), (IV, IV));
    driver.run(exec);
    assert_eq!(driver.read(two), 8);
    driver.end(exec);
    driver.destroy(&[own]);
    driver.free(two);
}
