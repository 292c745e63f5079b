//! Graphs: nodes, edges, queries, clones and children.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_sys::*;

fn edge_count(driver: &Driver, graph: CUgraph) -> usize {
    let mut count = 0;
    assert_eq!(unsafe { driver.cuGraphGetEdges(graph, null_mut(), null_mut(), &mut count) }, OK);
    count
}

fn edge(driver: &Driver, graph: CUgraph, from: CUgraphNode, to: CUgraphNode) -> CUresult {
    unsafe { driver.cuGraphAddDependencies(graph, &from, &to, 1) }
}

#[test]
fn a_graph_runs_in_the_order_of_its_edges() {
    let driver = &session();
    let library = library(driver);
    let (add, multiply) = (function(driver, library, "add"), function(driver, library, "multiply"));
    let (address, stream, graph) = (words(driver, 1), stream(driver), graph(driver));
    // Created against the order: (1 + 2) * 5 needs the edges.
    let last = word_node(driver, graph, &[], multiply, address, 5);
    let middle = word_node(driver, graph, &[], add, address, 2);
    let first = {
        let mut node = null_mut();
        let params = CUDA_MEMSET_NODE_PARAMS_v1 {
            dst: address,
            value: 1,
            elementSize: 4,
            width: 1,
            height: 1,
            pitch: 0,
        };
        let answer =
            unsafe { driver.cuGraphAddMemsetNode(&mut node, graph, null(), 0, &params, context(driver)) };
        assert_eq!(answer, OK);
        node
    };
    assert_eq!(edge(driver, graph, middle, last), OK);
    assert_eq!(edge(driver, graph, first, middle), OK);
    let exec = instantiate(driver, graph);
    unsafe {
        for _ in 0..3 {
            assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        }
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(read(driver, address, 1), [15]);
        assert_eq!(driver.cuGraphDestroy(graph), OK);
        assert_eq!(driver.cuGraphDestroy(graph), IV);
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!(driver.cuGraphExecDestroy(exec), OK);
        assert_eq!(driver.cuGraphExecDestroy(exec), IV);
        assert_eq!(driver.cuGraphLaunch(exec, stream), IV);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
    }
}

#[test]
fn a_refused_add_changes_nothing() {
    let driver = &session();
    let (own, other) = (graph(driver), graph(driver));
    let (a, foreign) = (empty(driver, own, &[]), empty(driver, other, &[]));
    let gone = empty(driver, own, &[]);
    unsafe {
        assert_eq!(driver.cuGraphDestroyNode(gone), OK);
        let mut kind = CUgraphNodeType(99);
        assert_eq!(driver.cuGraphNodeGetType(gone, &mut kind), OK);
        assert_eq!(kind, CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY);
        let mut node = null_mut();
        for bad in [vec![null_mut()], vec![foreign], vec![a, a], vec![gone], vec![a, foreign]] {
            assert_eq!(driver.cuGraphAddEmptyNode(&mut node, own, bad.as_ptr(), bad.len()), IV);
        }
        assert_eq!(driver.cuGraphAddEmptyNode(&mut node, own, null(), 1), IV);
        assert_eq!(driver.cuGraphAddEmptyNode(null_mut(), own, null(), 0), IV);
        assert_eq!(driver.cuGraphAddEmptyNode(&mut node, null_mut(), null(), 0), IV);
        let mut params =
            CUgraphNodeParams { type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY, ..Default::default() };
        params.reserved0[1] = 1;
        assert_eq!(driver.cuGraphAddNode(&mut node, own, null(), 0, &mut params), IV);
        params.reserved0[1] = 0;
        params.__bindgen_anon_1.reserved1[28] = 1;
        assert_eq!(driver.cuGraphAddNode(&mut node, own, null(), 0, &mut params), IV);
        params.__bindgen_anon_1.reserved1[28] = 0;
        params.type_ = CUgraphNodeType(77);
        assert_eq!(driver.cuGraphAddNode(&mut node, own, null(), 0, &mut params), IV);
    }
    assert_eq!(nodes(driver, own), [a]);
    // The handle of a destroyed node is reused by the next one.
    assert_eq!(empty(driver, own, &[]), gone);
}

#[test]
fn edges_are_added_and_removed_one_by_one() {
    let driver = &session();
    let (own, other) = (graph(driver), graph(driver));
    let [a, b, c] = [(); 3].map(|()| empty(driver, own, &[]));
    let foreign = empty(driver, other, &[]);
    unsafe {
        let (from, to) = ([a, a, b], [b, a, c]);
        assert_eq!(driver.cuGraphAddDependencies(own, from.as_ptr(), to.as_ptr(), 3), IV);
        assert_eq!(edge_count(driver, own), 1);
        assert_eq!(edge(driver, own, a, b), IV);
        assert_eq!(edge(driver, own, a, foreign), IV);
        assert_eq!(edge(driver, other, a, c), IV);
        assert_eq!(edge(driver, own, a, null_mut()), IV);
        assert_eq!(driver.cuGraphRemoveDependencies(own, &b, &c, 1), IV);
        assert_eq!(edge(driver, own, b, c), OK);
        let (from, to) = ([a, a], [b, c]);
        assert_eq!(driver.cuGraphRemoveDependencies(own, from.as_ptr(), to.as_ptr(), 2), IV);
        assert_eq!(edge_count(driver, own), 1);
        // A cycle is found by instantiate alone.
        assert_eq!(edge(driver, own, c, b), OK);
        let (answer, result, node) = refusal(driver, own, 0);
        assert_eq!((answer, result), (IV, 2));
        assert!([b, c].contains(&node));
        let mut clone = null_mut();
        assert_eq!(driver.cuGraphClone(&mut clone, own), OK);
        assert_eq!(edge_count(driver, clone), 2);
        // Destroying a node takes its edges.
        assert_eq!(driver.cuGraphDestroyNode(b), OK);
        assert_eq!(edge_count(driver, own), 0);
        assert_eq!(nodes(driver, own), [a, c]);
    }
}

#[test]
fn queries_clamp_and_say_what_they_wrote() {
    let driver = &session();
    let own = graph(driver);
    let a = empty(driver, own, &[]);
    let b = empty(driver, own, &[a]);
    let c = empty(driver, own, &[b, a]);
    unsafe {
        let mut out = [1usize as CUgraphNode; 4];
        let mut count = 2;
        assert_eq!(driver.cuGraphGetNodes(own, out.as_mut_ptr(), &mut count), OK);
        assert_eq!((count, out[0], out[1], out[2].addr()), (2, a, b, 1));
        count = 4;
        assert_eq!(driver.cuGraphGetNodes(own, out.as_mut_ptr(), &mut count), OK);
        assert_eq!((count, out), (3, [a, b, c, null_mut()]));
        count = 0;
        assert_eq!(driver.cuGraphGetNodes(own, out.as_mut_ptr(), &mut count), IV);
        assert_eq!(driver.cuGraphGetNodes(own, null_mut(), null_mut()), IV);
        count = 4;
        assert_eq!(driver.cuGraphGetRootNodes(own, out.as_mut_ptr(), &mut count), OK);
        assert_eq!((count, out[0]), (1, a));
        count = 4;
        assert_eq!(driver.cuGraphNodeGetDependencies(c, out.as_mut_ptr(), &mut count), OK);
        assert_eq!((count, out[0], out[1]), (2, b, a));
        count = 4;
        assert_eq!(driver.cuGraphNodeGetDependentNodes(a, out.as_mut_ptr(), &mut count), OK);
        assert_eq!((count, out[0], out[1]), (2, b, c));
        let mut to = [null_mut(); 4];
        count = 4;
        assert_eq!(driver.cuGraphGetEdges(own, out.as_mut_ptr(), null_mut(), &mut count), IV);
        assert_eq!(driver.cuGraphGetEdges(own, out.as_mut_ptr(), to.as_mut_ptr(), &mut count), OK);
        assert_eq!(count, 3);
        let found: Vec<_> = out.iter().zip(to).take(3).map(|(from, to)| (*from, to)).collect();
        assert_eq!(found, [(a, b), (b, c), (a, c)]);
    }
}

#[test]
fn edge_data_connects_kernels_and_is_never_lost_silently() {
    let driver = &session();
    let function = function(driver, library(driver), "add");
    let (own, address) = (graph(driver), words(driver, 1));
    let [a, b, c] = [(); 3].map(|()| word_node(driver, own, &[], function, address, 1));
    let plain = empty(driver, own, &[]);
    let data = |from_port, type_| CUgraphEdgeData { from_port, type_, ..Default::default() };
    let with = |from: CUgraphNode, to: CUgraphNode, data: CUgraphEdgeData| unsafe {
        driver.cuGraphAddDependencies_v12030(own, &from, &to, &data, 1).unwrap()
    };
    assert_eq!(with(a, b, data(1, 0)), IV);
    assert_eq!(with(a, b, data(0, 2)), IV);
    assert_eq!(with(a, b, CUgraphEdgeData { to_port: 1, ..data(1, 1) }), IV);
    assert_eq!(with(a, plain, data(1, 1)), IV);
    assert_eq!(with(a, b, data(1, 1)), OK);
    assert_eq!(with(a, b, data(0, 0)), IV);
    assert_eq!(with(a, c, data(2, 0)), OK);
    assert_eq!(with(a, plain, data(0, 0)), OK);
    unsafe {
        let (mut out, mut edges, mut count) = ([null_mut(); 3], [CUgraphEdgeData::default(); 3], 3);
        let lossy = driver.cuGraphNodeGetDependentNodes(a, out.as_mut_ptr(), &mut count);
        assert_eq!(lossy, CUresult::CUDA_ERROR_LOSSY_QUERY);
        assert_eq!(driver.cuGraphNodeGetDependentNodes(a, null_mut(), &mut count), OK);
        assert_eq!(count, 3);
        let full =
            driver.cuGraphNodeGetDependentNodes_v12030(a, out.as_mut_ptr(), edges.as_mut_ptr(), &mut count);
        assert_eq!(full.unwrap(), OK);
        assert_eq!(edges, [data(1, 1), data(2, 0), data(0, 0)]);
        // Removing does not look at the data.
        assert_eq!(driver.cuGraphRemoveDependencies_v12030(own, &a, &b, &data(0, 0), 1).unwrap(), OK);
    }
}

#[test]
fn clones_know_their_nodes() {
    let driver = &session();
    let own = graph(driver);
    let a = empty(driver, own, &[]);
    let b = empty(driver, own, &[a]);
    unsafe {
        let (mut clone, mut second, mut found) = (null_mut(), null_mut(), null_mut());
        assert_eq!(driver.cuGraphClone(&mut clone, own), OK);
        assert_eq!(driver.cuGraphClone(&mut second, clone), OK);
        assert_eq!(driver.cuGraphNodeFindInClone(&mut found, b, clone), OK);
        assert_eq!(found, nodes(driver, clone)[1]);
        assert_eq!(driver.cuGraphNodeFindInClone(&mut found, b, second), IV);
        assert_eq!(driver.cuGraphNodeFindInClone(&mut found, nodes(driver, clone)[1], own), IV);
        let late = empty(driver, own, &[]);
        assert_eq!(driver.cuGraphNodeFindInClone(&mut found, late, clone), IV);
        assert_eq!(driver.cuGraphDestroyNode(nodes(driver, clone)[1]), OK);
        assert_eq!(driver.cuGraphNodeFindInClone(&mut found, b, clone), IV);
        assert_eq!(edge_count(driver, clone), 0);
        assert_eq!(edge_count(driver, own), 1);
    }
}

#[test]
fn children_are_clones_that_belong_to_their_node() {
    let driver = &session();
    let function = function(driver, library(driver), "add");
    let (own, child, address) = (graph(driver), graph(driver), words(driver, 1));
    let inner = word_node(driver, child, &[], function, address, 3);
    unsafe {
        let (mut node, mut embedded, mut found) = (null_mut(), null_mut(), null_mut());
        assert_eq!(driver.cuGraphAddChildGraphNode(&mut node, own, null(), 0, child), OK);
        assert_eq!(driver.cuGraphChildGraphNodeGetGraph(node, &mut embedded), OK);
        assert_ne!(embedded, child);
        assert_eq!(driver.cuGraphDestroy(embedded), IV);
        assert_eq!(driver.cuGraphNodeFindInClone(&mut found, inner, embedded), OK);
        let extra = word_node(driver, embedded, &[found], function, address, 4);
        assert!(!extra.is_null());
        assert_eq!(driver.cuGraphDestroy(child), OK);
        let (exec, stream) = (instantiate(driver, own), stream(driver));
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(read(driver, address, 1), [7]);
        // Its nodes are keys of the executable.
        assert_eq!(driver.cuGraphNodeSetEnabled(exec, extra, 0), OK);
        assert_eq!(driver.cuGraphNodeSetEnabled(exec, node, 0), IV);
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(read(driver, address, 1), [10]);
        assert_eq!(driver.cuGraphDestroyNode(node), OK);
        assert_eq!(driver.cuGraphGetNodes(embedded, null_mut(), &mut 0), IV);
    }
}

#[test]
fn kernel_parameters_read_back_in_a_block_that_stays() {
    let driver = &session();
    let library = library(driver);
    let (own, address) = (graph(driver), words(driver, 1));
    let (kern, func) = (kernel(driver, library, "add"), function(driver, library, "add"));
    unsafe {
        let (mut target, mut value, mut node) = (address, 5u32, null_mut());
        let mut arguments: [*mut c_void; 2] = [(&raw mut target).cast(), (&raw mut value).cast()];
        let params = CUDA_KERNEL_NODE_PARAMS_v2 {
            func: null_mut(),
            kern,
            ctx: context(driver),
            ..params(null_mut(), &mut arguments)
        };
        assert_eq!(driver.cuGraphAddKernelNode(&mut node, own, null(), 0, &params), OK);
        let mut back = CUDA_KERNEL_NODE_PARAMS_v2::default();
        assert_eq!(driver.cuGraphKernelNodeGetParams(node, &mut back), OK);
        assert_eq!((back.func, back.kern, back.ctx), (func, kern, context(driver)));
        let values = *back.kernelParams.add(1).cast::<*mut u32>();
        assert_eq!(*values, 5);
        (&raw mut value).write(6);
        assert_eq!(driver.cuGraphKernelNodeSetParams(node, &params), OK);
        assert_eq!(*values, 6);
        // What was read back may be passed back.
        assert_eq!(driver.cuGraphKernelNodeSetParams(node, &back), OK);
        assert_eq!(*values, 6);
        let as_function = CUDA_KERNEL_NODE_PARAMS_v2 { func: kern.cast(), kern: null_mut(), ..params };
        assert_eq!(
            driver.cuGraphAddKernelNode(&mut node, own, null(), 0, &as_function),
            CUresult::CUDA_ERROR_INVALID_HANDLE
        );
        let nobody = CUDA_KERNEL_NODE_PARAMS_v2 { kern: null_mut(), ..params };
        assert_eq!(
            driver.cuGraphAddKernelNode(&mut node, own, null(), 0, &nobody),
            CUresult::CUDA_ERROR_INVALID_HANDLE
        );
        let no_block = CUDA_KERNEL_NODE_PARAMS_v2 { blockDimX: 0, ..params };
        assert_eq!(driver.cuGraphAddKernelNode(&mut node, own, null(), 0, &no_block), IV);
        let mut got = CUDA_MEMSET_NODE_PARAMS_v1::default();
        assert_eq!(driver.cuGraphMemsetNodeGetParams(node, &mut got), IV);
    }
}

#[test]
fn fills_and_copies_check_their_parameters() {
    let driver = &session();
    let (own, address) = (graph(driver), words(driver, 16));
    let mut host = [3u32; 16];
    let fill = CUDA_MEMSET_NODE_PARAMS_v1 {
        dst: address,
        value: 0x1ff,
        elementSize: 1,
        width: 8,
        height: 2,
        pitch: 16,
    };
    let add_fill = |params: CUDA_MEMSET_NODE_PARAMS_v1| unsafe {
        let mut node = null_mut();
        (driver.cuGraphAddMemsetNode(&mut node, own, null(), 0, &params, null_mut()), node)
    };
    assert_eq!(add_fill(CUDA_MEMSET_NODE_PARAMS_v1 { elementSize: 3, ..fill }).0, IV);
    assert_eq!(add_fill(CUDA_MEMSET_NODE_PARAMS_v1 { width: 0, ..fill }).0, IV);
    assert_eq!(add_fill(CUDA_MEMSET_NODE_PARAMS_v1 { height: 0, ..fill }).0, IV);
    assert_eq!(add_fill(CUDA_MEMSET_NODE_PARAMS_v1 { pitch: 4, ..fill }).0, IV);
    assert_eq!(add_fill(CUDA_MEMSET_NODE_PARAMS_v1 { height: 5, ..fill }).0, IV);
    assert_eq!(add_fill(CUDA_MEMSET_NODE_PARAMS_v1 { dst: address + 1, elementSize: 2, ..fill }).0, IV);
    assert_eq!(add_fill(CUDA_MEMSET_NODE_PARAMS_v1 { dst: 0, ..fill }).0, IV);
    assert_eq!(add_fill(CUDA_MEMSET_NODE_PARAMS_v1 { dst: host.as_ptr().addr() as u64, ..fill }).0, IV);
    let (answer, node) = add_fill(fill);
    assert_eq!(answer, OK);
    let mut back = CUDA_MEMSET_NODE_PARAMS_v1::default();
    assert_eq!(unsafe { driver.cuGraphMemsetNodeGetParams(node, &mut back) }, OK);
    assert_eq!(back, fill);
    let copy = CUDA_MEMCPY3D_v2 {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcDevice: address,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        dstHost: host.as_mut_ptr().cast(),
        WidthInBytes: 64,
        Height: 1,
        Depth: 1,
        ..Default::default()
    };
    let add_copy = |params: CUDA_MEMCPY3D_v2, after: &[CUgraphNode]| unsafe {
        let mut node = null_mut();
        driver.cuGraphAddMemcpyNode(&mut node, own, after.as_ptr(), after.len(), &params, null_mut())
    };
    assert_eq!(add_copy(CUDA_MEMCPY3D_v2 { Depth: 0, ..copy }, &[]), IV);
    assert_eq!(add_copy(CUDA_MEMCPY3D_v2 { WidthInBytes: 65, ..copy }, &[]), IV);
    assert_eq!(add_copy(CUDA_MEMCPY3D_v2 { srcDevice: 0, ..copy }, &[]), IV);
    assert_eq!(add_copy(CUDA_MEMCPY3D_v2 { srcDevice: 77, ..copy }, &[]), IV);
    assert_eq!(add_copy(CUDA_MEMCPY3D_v2 { srcMemoryType: CUmemorytype(9), ..copy }, &[]), IV);
    assert_eq!(add_copy(CUDA_MEMCPY3D_v2 { WidthInBytes: 8, Height: 2, srcPitch: 4, ..copy }, &[]), IV);
    assert_eq!(add_copy(copy, &[node]), OK);
    let (exec, stream) = (instantiate(driver, own), stream(driver));
    // Pageable memory is written before the launch returns.
    assert_eq!(unsafe { driver.cuGraphLaunch(exec, stream) }, OK);
    assert_eq!(host[..8], [u32::MAX, u32::MAX, 0, 0, u32::MAX, u32::MAX, 0, 0]);
}

#[test]
fn instantiate_reports_flags_and_refusals() {
    let driver = &session();
    let own = graph(driver);
    assert_eq!(refusal(driver, own, 1 << 9), (IV, 1, null_mut()));
    assert_eq!(refusal(driver, own, 4), (IV, 1, null_mut()));
    let node = {
        let mut node = null_mut();
        unsafe extern "C" fn nothing(_: *mut c_void) {}
        let params = CUDA_HOST_NODE_PARAMS_v1 { fn_: Some(nothing), userData: null_mut() };
        assert_eq!(unsafe { driver.cuGraphAddHostNode(&mut node, own, null(), 0, &params) }, OK);
        node
    };
    assert_eq!(refusal(driver, own, 4), (IV, 3, node));
    unsafe {
        let mut exec = null_mut();
        assert_eq!(driver.cuGraphInstantiateWithFlags(&mut exec, own, 2), IV);
        assert_eq!(driver.cuGraphInstantiateWithFlags(&mut exec, own, 9), OK);
        let mut flags = 0;
        assert_eq!(driver.cuGraphExecGetFlags(exec, &mut flags), OK);
        assert_eq!(flags, 1);
        assert_eq!(driver.cuCtxSetCurrent(null_mut()), OK);
        let none = driver.cuGraphInstantiateWithFlags(&mut exec, own, 0);
        assert_eq!(none, CUresult::CUDA_ERROR_INVALID_CONTEXT);
    }
}

#[test]
fn dot_is_written_to_a_file() {
    let driver = &session();
    let own = graph(driver);
    empty(driver, own, &[]);
    let path = std::env::temp_dir().join(format!("cuda-soft-{}.dot", std::process::id()));
    let text = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    unsafe {
        assert_eq!(driver.cuGraphDebugDotPrint(own, text.as_ptr(), 0), OK);
        assert_eq!(driver.cuGraphDebugDotPrint(own, null(), 0), IV);
        let bad = driver.cuGraphDebugDotPrint(own, c"/no/such/folder/x.dot".as_ptr(), 0);
        assert_eq!(bad, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
    }
    assert!(std::fs::read_to_string(&path).unwrap().contains("EMPTY"));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_destroyed_node_cannot_be_destroyed_again() {
    aborts("graphs::a_destroyed_node_cannot_be_destroyed_again", "destroyed twice", || {
        let driver = &session();
        let node = empty(driver, graph(driver), &[]);
        unsafe {
            assert_eq!(driver.cuGraphDestroyNode(node), OK);
            let _ = driver.cuGraphDestroyNode(node);
        }
    });
}

#[test]
fn a_graph_cannot_be_embedded_in_itself() {
    aborts("graphs::a_graph_cannot_be_embedded_in_itself", "embedded in itself", || {
        let driver = &session();
        let (own, mut node) = (graph(driver), null_mut());
        let _ = unsafe { driver.cuGraphAddChildGraphNode(&mut node, own, null(), 0, own) };
    });
}
