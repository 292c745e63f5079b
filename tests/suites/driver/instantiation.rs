//! Which graphs are refused, and which node the refusal names.

use std::cell::Cell;
use std::ptr::{null, null_mut};

use cuda_sys::*;
use cuda_tests::needs;

use crate::common::*;

fn edge(s: &Session, graph: CUgraph, from: CUgraphNode, to: CUgraphNode) {
    assert_eq!(unsafe { s.cuGraphAddDependencies(graph, &from, &to, 1) }, OK);
}

#[test]
fn an_embedded_graph_is_refused_and_the_graph_around_it_is_not() {
    let s = session();
    needs!(Conditionals);
    let (own, inner) = (s.graph(), s.graph());
    s.empty(inner, &[]);
    let (answer, node) = s.child(own, inner);
    assert_eq!(answer, OK);
    let embedded = s.embedded(node);
    assert_eq!(s.refusal(embedded, 0), (NS, 1, null_mut()));
    s.end(s.instantiate(own));
    let handle = s.condition(own, 0);
    s.conditional(embedded, &[], handle, (IF, 1));
    assert_eq!(s.refusal(embedded, 0), (NS, 1, null_mut()));
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
fn memory_nodes_take_no_parameters() {
    let s = session();
    let own = s.graph();
    let (alloc, address) = crate::graph_memory::nodes::alloc(&s, own, &[], 4096);
    let free = crate::graph_memory::nodes::free(&s, own, &[alloc], address);
    let (plain, exec) = (s.words(1), s.instantiate(own));
    let set = |node, mut params: CUgraphNodeParams| unsafe {
        [s.cuGraphNodeSetParams(node, &mut params), s.cuGraphExecNodeSetParams(exec, node, &mut params)]
    };
    // Not even bad ones are looked at.
    for dptr in [0, plain, plain + 4, address, address + 4] {
        let mut params =
            CUgraphNodeParams { type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE, ..Default::default() };
        params.__bindgen_anon_1.free = CUDA_MEM_FREE_NODE_PARAMS { dptr };
        assert_eq!(set(free, params), [NS; 2], "{dptr:#x}");
    }
    let params =
        CUgraphNodeParams { type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC, ..Default::default() };
    assert_eq!(set(alloc, params), [NS; 2]);
    s.end(exec);
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
            for (number, answer) in [(0, OK), (1, OK), (2, IV)] {
                value.nvlinkUtilCentricScheduling = number;
                assert_eq!(s.cuGraphKernelNodeSetAttribute(node, attribute, &value), answer, "{number}");
            }
        }
        if cuda_tests::is_soft() {
            // A GPU's driver crashes.
            assert_eq!(s.cuGraphKernelNodeSetAttribute(node, attribute, null()), IV);
        }
        assert_eq!(s.cuGraphKernelNodeSetAttribute(null_mut(), attribute, &value), IV);
    }
    s.destroy(&[own]);
}

#[test]
fn an_updatable_node_is_so_by_one() {
    let s = session();
    let own = s.graph();
    let node = s.kernel(own, &[], "add", [0; 2]);
    let attribute = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
    for (number, answer) in [(0, OK), (1, OK), (2, IV)] {
        let mut value = CUlaunchAttributeValue { pad: [0; 64] };
        value.deviceUpdatableKernelNode.deviceUpdatable = number;
        let set = unsafe { s.cuGraphKernelNodeSetAttribute(node, attribute, &value) };
        assert_eq!(set, answer, "{number}");
    }
    s.destroy(&[own]);
}

#[test]
fn only_captured_launches_make_device_updatable_nodes() {
    let s = session();
    let updatable = |is: i32| {
        let mut value = CUlaunchAttributeValue { pad: [0; 64] };
        value.deviceUpdatableKernelNode.deviceUpdatable = is;
        CUlaunchAttribute {
            id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
            value,
            ..Default::default()
        }
    };
    let attribute = Cell::new(updatable(0));
    let config = CUlaunchConfig {
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        hStream: s.stream,
        attrs: attribute.as_ptr(),
        numAttrs: 1,
        ..Default::default()
    };
    let (mut address, mut add) = (s.words(1), 1u64);
    let (function, mut pointers) = (s.function("add"), [(&raw mut address).cast(), (&raw mut add).cast()]);
    let mut launch = |is| {
        attribute.set(updatable(is));
        unsafe { s.cuLaunchKernelEx(&config, function, pointers.as_mut_ptr(), null_mut()) }
    };
    // Whatever the attribute says.
    assert_eq!([0, 1].map(&mut launch), [NS; 2]);
    s.wait();
    assert_eq!(s.read(address), 0);
    for is in [0, 1] {
        let mut graph = null_mut();
        unsafe {
            assert_eq!(s.cuStreamBeginCapture(s.stream, CUstreamCaptureMode(2)), OK);
            assert_eq!(launch(is), OK);
            assert_eq!(s.cuStreamEndCapture(s.stream, &mut graph), OK);
            // The call writes the node's handle for the device into the attribute.
            let given = attribute.get().value.deviceUpdatableKernelNode.devNode;
            assert_eq!(given.is_null(), is == 0);
        }
        s.destroy(&[graph]);
    }
    s.free(address);
}

#[test]
fn a_captured_row_has_no_pitches_and_no_heights() {
    let s = session();
    let (words, value, mut seen) = (s.words(2), 7u32, 0u32);
    type Copied<'a> = &'a mut dyn FnMut() -> CUresult;
    let captured = |copy: Copied<'_>| {
        let (mut graph, mut params) = (null_mut(), CUDA_MEMCPY3D_v2::default());
        unsafe {
            assert_eq!(s.cuStreamBeginCapture(s.stream, CUstreamCaptureMode(2)), OK);
            assert_eq!(copy(), OK);
            assert_eq!(s.cuStreamEndCapture(s.stream, &mut graph), OK);
            assert_eq!(s.cuGraphMemcpyNodeGetParams(s.nodes(graph)[0], &mut params), OK);
        }
        assert_eq!((params.srcPitch, params.srcHeight, params.dstPitch, params.dstHeight), (0, 0, 0, 0));
        assert_eq!((params.WidthInBytes, params.Height, params.Depth), (4, 1, 1));
        // What was read can be set.
        assert_eq!(unsafe { s.cuGraphMemcpyNodeSetParams(s.nodes(graph)[0], &params) }, OK);
        let exec = s.instantiate(graph);
        s.run(exec);
        s.end(exec);
        s.destroy(&[graph]);
    };
    unsafe {
        captured(&mut || s.cuMemcpyHtoDAsync(words, (&raw const value).cast(), 4, s.stream));
        captured(&mut || s.cuMemcpyDtoDAsync(words + 4, words, 4, s.stream));
        captured(&mut || s.cuMemcpyAsync(words, words + 4, 4, s.stream));
        captured(&mut || s.cuMemcpyDtoHAsync((&raw mut seen).cast(), words, 4, s.stream));
    }
    assert_eq!(seen, 7);
    s.free(words);
}
