//! Which graphs are refused, and which node the refusal names.

use std::ptr::{null, null_mut};

use cuda_sys::*;
use cuda_tests::needs;

use crate::common::*;

fn edge(s: &Session, graph: CUgraph, from: CUgraphNode, to: CUgraphNode) {
    assert_eq!(unsafe { s.cuGraphAddDependencies(graph, &from, &to, 1) }, OK);
}

#[test]
fn an_embedded_graph_with_a_conditional_node_is_refused() {
    let s = session();
    needs!(Conditionals);
    let (own, inner) = (s.graph(), s.graph());
    s.empty(inner, &[]);
    let (answer, node) = s.child(own, inner);
    assert_eq!(answer, OK);
    let embedded = s.embedded(node);
    s.end(s.instantiate(embedded));
    let handle = s.condition(own, 0);
    s.conditional(embedded, &[], handle, (IF, 1));
    assert_eq!(s.refusal(embedded, 0).0, NS);
    // The graph around it is not.
    s.end(s.instantiate(own));
    s.destroy(&[own, inner]);
}

#[test]
fn a_cycle_of_two_is_named_by_the_second() {
    let s = session();
    for reversed in [false, true] {
        let own = s.graph();
        let (first, second) = (s.empty(own, &[]), s.empty(own, &[]));
        let ends =
            if reversed { [(second, first), (first, second)] } else { [(first, second), (second, first)] };
        for (from, to) in ends {
            edge(&s, own, from, to);
        }
        assert_eq!(s.refusal(own, 0), (IV, 2, second), "reversed: {reversed}");
        s.destroy(&[own]);
    }
}

#[test]
fn free_nodes_take_no_parameters() {
    let s = session();
    let own = s.graph();
    let (alloc, address) = crate::graph_memory::nodes::alloc(&s, own, &[], 4096);
    let free = crate::graph_memory::nodes::free(&s, own, &[alloc], address);
    let mut params =
        CUgraphNodeParams { type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE, ..Default::default() };
    let plain = s.words(1);
    // Of graph memory the node is found, and refused for its type.
    for (dptr, refused) in [(0, IV), (plain, IV), (address, NS)] {
        params.__bindgen_anon_1.free = CUDA_MEM_FREE_NODE_PARAMS { dptr };
        assert_eq!(unsafe { s.cuGraphNodeSetParams(free, &mut params) }, refused, "{dptr:#x}");
    }
    s.destroy(&[own]);
    s.free(plain);
}

#[test]
fn edge_data_without_room_for_the_ends_is_refused() {
    let s = session();
    let own = s.graph();
    let first = s.empty(own, &[]);
    s.empty(own, &[first]);
    let mut data = [CUgraphEdgeData::default(); 10];
    let mut count = 10;
    let answer =
        unsafe { s.cuGraphGetEdges_v12030(own, null_mut(), null_mut(), data.as_mut_ptr(), &mut count) };
    match answer {
        Ok(answer) => assert_eq!((answer, count), (IV, 10)),
        Err(_) => println!("skipped: no edge data"),
    }
    s.destroy(&[own]);
}

#[test]
fn an_attribute_that_cannot_be_read_can_be_set() {
    let s = session();
    let own = s.graph();
    let node = s.kernel(own, &[], "add", [0; 2]);
    let attribute = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING;
    let mut value = CUlaunchAttributeValue { pad: [0; 64] };
    unsafe {
        s.cuGraphKernelNodeGetAttribute(node, attribute, &mut value);
        if s.has(13, 0) {
            assert_eq!(s.cuGraphKernelNodeSetAttribute(node, attribute, &value), OK);
        }
        assert_eq!(s.cuGraphKernelNodeSetAttribute(node, attribute, null()), IV);
        assert_eq!(s.cuGraphKernelNodeSetAttribute(null_mut(), attribute, &value), IV);
    }
    s.destroy(&[own]);
}

#[test]
fn a_launch_outside_of_a_capture_makes_no_device_updatable_node() {
    let s = session();
    let updatable = || {
        let mut value = CUlaunchAttributeValue { pad: [0; 64] };
        value.deviceUpdatableKernelNode.deviceUpdatable = 1;
        CUlaunchAttribute {
            id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
            value,
            ..Default::default()
        }
    };
    let mut attribute = updatable();
    let config = CUlaunchConfig {
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        hStream: s.stream,
        attrs: &mut attribute,
        numAttrs: 1,
        ..Default::default()
    };
    let (mut address, mut add) = (s.words(1), 1u64);
    let (function, mut pointers) = (s.function("add"), [(&raw mut address).cast(), (&raw mut add).cast()]);
    let mut launch = || unsafe { s.cuLaunchKernelEx(&config, function, pointers.as_mut_ptr(), null_mut()) };
    assert_eq!(launch(), NS);
    s.wait();
    assert_eq!(s.read(address), 0);
    s.free(address);
}

#[test]
fn a_captured_row_from_the_host_has_no_pitch() {
    let s = session();
    let (word, value) = (s.words(1), 7u32);
    let (mut graph, mut params) = (null_mut(), CUDA_MEMCPY3D_v2::default());
    unsafe {
        assert_eq!(s.cuStreamBeginCapture(s.stream, CUstreamCaptureMode(2)), OK);
        assert_eq!(s.cuMemcpyHtoDAsync(word, (&raw const value).cast(), 4, s.stream), OK);
        assert_eq!(s.cuStreamEndCapture(s.stream, &mut graph), OK);
        assert_eq!(s.cuGraphMemcpyNodeGetParams(s.nodes(graph)[0], &mut params), OK);
    }
    assert_eq!((params.srcPitch, params.dstPitch, params.WidthInBytes), (0, 0, 4));
    // What was read can be set.
    assert_eq!(unsafe { s.cuGraphMemcpyNodeSetParams(s.nodes(graph)[0], &params) }, OK);
    let exec = s.instantiate(graph);
    s.run(exec);
    assert_eq!(s.read(word), 7);
    s.end(exec);
    s.destroy(&[graph]);
    s.free(word);
}
