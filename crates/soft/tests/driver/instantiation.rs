//! Instantiation: flags, errors, the nodes that bodies may hold, and ids.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_soft::Config;
use cuda_sys::CUgraphNodeType as T;
use cuda_sys::*;

const AUTO_FREE: u64 = 1;
const UPLOAD: u64 = 2;
const DEVICE_LAUNCH: u64 = 4;
const PRIORITY: u64 = 8;

unsafe extern "C" fn nothing(_: *mut c_void) {}

fn host(driver: &Driver, graph: CUgraph) -> CUgraphNode {
    let (mut node, params) =
        (null_mut(), CUDA_HOST_NODE_PARAMS_v1 { fn_: Some(nothing), userData: null_mut() });
    assert_eq!(unsafe { driver.cuGraphAddHostNode(&mut node, graph, null(), 0, &params) }, OK);
    node
}

fn alloc(driver: &Driver, graph: CUgraph) -> CUgraphNode {
    let (mut node, mut params) =
        (null_mut(), CUDA_MEM_ALLOC_NODE_PARAMS { bytesize: 64, ..Default::default() });
    params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    assert_eq!(unsafe { driver.cuGraphAddMemAllocNode(&mut node, graph, null(), 0, &mut params) }, OK);
    node
}

fn batch(driver: &Driver, graph: CUgraph) -> CUgraphNode {
    let (mut node, params) =
        (null_mut(), CUDA_BATCH_MEM_OP_NODE_PARAMS { ctx: context(driver), ..Default::default() });
    assert_eq!(unsafe { driver.cuGraphAddBatchMemOpNode(&mut node, graph, null(), 0, &params) }, OK);
    node
}

fn fill(driver: &Driver, graph: CUgraph, address: CUdeviceptr) -> CUgraphNode {
    let (mut node, params) = (
        null_mut(),
        CUDA_MEMSET_NODE_PARAMS_v1 { dst: address, elementSize: 4, width: 1, height: 1, value: 3, pitch: 0 },
    );
    assert_eq!(
        unsafe { driver.cuGraphAddMemsetNode(&mut node, graph, null(), 0, &params, context(driver)) },
        OK
    );
    node
}

fn copy(driver: &Driver, graph: CUgraph, from: CUdeviceptr, to: *mut c_void) -> CUgraphNode {
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
    let mut node = null_mut();
    assert_eq!(
        unsafe { driver.cuGraphAddMemcpyNode(&mut node, graph, null(), 0, &params, context(driver)) },
        OK
    );
    node
}

/// An IF node and its body.
fn branch(driver: &Driver, graph: CUgraph) -> (CUgraphNode, CUgraph) {
    let mut handle = 0;
    unsafe {
        assert_eq!(driver.cuGraphConditionalHandleCreate(&mut handle, graph, context(driver), 1, 1), Ok(OK));
        let mut params = generic(T::CU_GRAPH_NODE_TYPE_CONDITIONAL);
        params.__bindgen_anon_1.conditional =
            CUDA_CONDITIONAL_NODE_PARAMS { handle, size: 1, ctx: context(driver), ..Default::default() };
        let (answer, node) = add(driver, graph, &[], &mut params);
        assert_eq!(answer, OK);
        (node, params.__bindgen_anon_1.conditional.phGraph_out.read())
    }
}

#[test]
fn flags_are_taken_and_told() {
    leaves_nothing("instantiation::flags_are_taken_and_told", || {
        let driver = &session();
        let library = library(driver);
        let (own, address, stream) = (graph(driver), words(driver, 1), stream(driver));
        word_node(driver, own, &[], function(driver, library, "add"), address, 1);
        for flags in 0..16 {
            let mut exec = null_mut();
            let mut params =
                CUDA_GRAPH_INSTANTIATE_PARAMS { flags, hUploadStream: stream, ..Default::default() };
            let refused = flags & AUTO_FREE != 0 && flags & DEVICE_LAUNCH != 0;
            unsafe {
                let answer = driver.cuGraphInstantiateWithParams(&mut exec, own, &mut params);
                assert_eq!(answer, if refused { IV } else { OK }, "{flags}");
                assert_eq!(params.result_out.0, u32::from(refused), "{flags}");
                assert!(params.hErrNode_out.is_null());
                if !refused {
                    let mut told = 99;
                    assert_eq!(driver.cuGraphExecGetFlags(exec, &mut told), OK);
                    assert_eq!(told, flags & (AUTO_FREE | DEVICE_LAUNCH), "{flags}");
                    run(driver, exec, stream);
                    assert_eq!(driver.cuGraphExecDestroy(exec), OK);
                }
                // The short call takes no upload.
                let answer = driver.cuGraphInstantiateWithFlags(&mut exec, own, flags);
                assert_eq!(answer, if refused || flags & UPLOAD != 0 { IV } else { OK }, "{flags}");
                if answer == OK {
                    assert_eq!(driver.cuGraphExecDestroy(exec), OK);
                }
            }
        }
        assert_eq!(refusal(driver, own, 16), (IV, 1, null_mut()));
        assert_eq!(refusal(driver, own, PRIORITY | 1 << 40), (IV, 1, null_mut()));
        assert_eq!(read(driver, address, 1), [12]);
        unsafe {
            // Into a capturing stream nothing is uploaded, and no executable made.
            let (mut exec, mut captured) = (null_mut(), null_mut());
            let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
            assert_eq!(driver.cuStreamBeginCapture(stream, mode), OK);
            let mut params =
                CUDA_GRAPH_INSTANTIATE_PARAMS { flags: UPLOAD, hUploadStream: stream, ..Default::default() };
            let answer = driver.cuGraphInstantiateWithParams(&mut exec, own, &mut params);
            assert_eq!(answer, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
            let ended = driver.cuStreamEndCapture(stream, &mut captured);
            assert_eq!(ended, CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
            for (exec, graph) in [(null_mut(), own), (&raw mut exec, null_mut())] {
                assert_eq!(driver.cuGraphInstantiateWithFlags(exec, graph, 0), IV);
                assert_eq!(driver.cuGraphInstantiateWithParams(exec, graph, &mut params), IV);
            }
            assert_eq!(driver.cuGraphInstantiateWithParams(&mut exec, own, null_mut()), IV);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(driver.cuLibraryUnload(library), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

#[test]
fn uploaded_executables_end_late() {
    leaves_nothing("instantiation::uploaded_executables_end_late", || {
        let driver = &session();
        let (own, stream) = (graph(driver), stream(driver));
        let (object, ended) = user_object(driver, 1);
        let (mut exec, mut params) = (
            null_mut(),
            CUDA_GRAPH_INSTANTIATE_PARAMS { flags: UPLOAD, hUploadStream: stream, ..Default::default() },
        );
        unsafe {
            assert_eq!(driver.cuGraphRetainUserObject(own, object, 1, 1), OK);
            assert_eq!(driver.cuGraphInstantiateWithParams(&mut exec, own, &mut params), OK);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            let there = ended.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
            assert_ne!(there, std::thread::current().id());
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

#[test]
fn a_graph_for_the_device_holds_little() {
    leaves_nothing("instantiation::a_graph_for_the_device_holds_little", || {
        let driver = &session();
        let library = library(driver);
        let (kernel, address) = (function(driver, library, "nothing"), words(driver, 4));
        let (mut word, mut pinned) = (0u32, null_mut());
        unsafe { assert_eq!(driver.cuMemHostAlloc(&mut pinned, 4, 0), OK) };
        let launch = |graph| {
            let (mut node, params) = (null_mut(), params(kernel, &mut []));
            assert_eq!(unsafe { driver.cuGraphAddKernelNode(&mut node, graph, null(), 0, &params) }, OK);
            node
        };
        let nested = |graph, inside: &dyn Fn(CUgraph) -> CUgraphNode| {
            let inner = crate::common::graph(driver);
            inside(inner);
            let (mut node, mut child) = (null_mut(), null_mut());
            unsafe {
                assert_eq!(driver.cuGraphAddChildGraphNode(&mut node, graph, null(), 0, inner), OK);
                assert_eq!(driver.cuGraphDestroy(inner), OK);
                assert_eq!(driver.cuGraphChildGraphNodeGetGraph(node, &mut child), OK);
            }
            nodes(driver, child)[0]
        };
        let word: *mut c_void = (&raw mut word).cast();
        // What is in it, and whether the driver takes it; if not, whether it says which node.
        type Make<'a> = &'a dyn Fn(CUgraph) -> CUgraphNode;
        let rows: [(&str, Make<'_>, CUresult, u32, bool); 12] = [
            ("nothing", &|_| null_mut(), IV, 1, false),
            ("a kernel", &launch, OK, 0, false),
            ("a fill", &|graph| fill(driver, graph, address), OK, 0, false),
            ("a copy to pinned memory", &|graph| copy(driver, graph, address, pinned), OK, 0, false),
            ("a child", &|graph| nested(graph, &launch), OK, 0, false),
            ("an empty node", &|graph| empty(driver, graph, &[]), IV, 3, false),
            ("a host function", &|graph| host(driver, graph), IV, 3, true),
            ("an allocation", &|graph| alloc(driver, graph), IV, 3, true),
            ("a memory operation", &|graph| batch(driver, graph), IV, 3, true),
            ("a conditional", &|graph| branch(driver, graph).0, IV, 3, false),
            ("a copy to pageable memory", &|graph| copy(driver, graph, address, word), IV, 3, true),
            ("a host function in a child", &|graph| nested(graph, &|inner| host(driver, inner)), IV, 3, true),
        ];
        for (what, make, answer, reason, named) in rows {
            let own = graph(driver);
            let node = make(own);
            if answer == OK {
                // Two of them, launched by the host as others are.
                let mut execs = [null_mut(); 2];
                for exec in &mut execs {
                    let answer = unsafe { driver.cuGraphInstantiateWithFlags(exec, own, DEVICE_LAUNCH) };
                    assert_eq!(answer, OK, "{what}");
                }
                let stream = stream(driver);
                for exec in execs {
                    run(driver, exec, stream);
                    assert_eq!(unsafe { driver.cuGraphExecDestroy(exec) }, OK);
                }
                assert_eq!(refusal(driver, own, DEVICE_LAUNCH | AUTO_FREE), (IV, 1, null_mut()), "{what}");
                assert_eq!(unsafe { driver.cuStreamDestroy(stream) }, OK);
            } else {
                let node = if named { node } else { null_mut() };
                assert_eq!(refusal(driver, own, DEVICE_LAUNCH), (answer, reason, node), "{what}");
            }
            assert_eq!(unsafe { driver.cuGraphDestroy(own) }, OK);
        }
        unsafe {
            assert_eq!(driver.cuMemFreeHost(pinned), OK);
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(driver.cuLibraryUnload(library), OK);
        }
    });
}

#[test]
fn a_body_holds_what_the_device_can_do_alone() {
    leaves_nothing("instantiation::a_body_holds_what_the_device_can_do_alone", || {
        let driver = &session();
        let address = words(driver, 4);
        let mut event = null_mut();
        let (mut word, mut pinned) = (0u32, null_mut());
        unsafe {
            assert_eq!(driver.cuEventCreate(&mut event, 0), OK);
            assert_eq!(driver.cuMemHostAlloc(&mut pinned, 4, 0), OK);
        }
        let word: *mut c_void = (&raw mut word).cast();
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
            ("nothing", &|_| null_mut(), 0),
            ("an empty node", &|graph| empty(driver, graph, &[]), 0),
            ("a fill", &|graph| fill(driver, graph, address), 0),
            ("a copy to pinned memory", &|graph| copy(driver, graph, address, pinned), 0),
            ("a copy to pageable memory", &|graph| copy(driver, graph, address, word), 4),
            ("a host function", &|graph| host(driver, graph), 3),
            ("a wait", &wait, 3),
            ("a record", &record, 3),
            ("a memory operation", &|graph| batch(driver, graph), 3),
            ("an allocation", &|graph| alloc(driver, graph), 3),
        ];
        for (what, make, reason) in rows {
            for in_child in [false, true] {
                if in_child && what == "an allocation" {
                    continue;
                }
                let own = graph(driver);
                let (_, body) = branch(driver, own);
                let mut place = body;
                if in_child {
                    let (inner, mut node) = (graph(driver), null_mut());
                    unsafe {
                        assert_eq!(driver.cuGraphAddChildGraphNode(&mut node, body, null(), 0, inner), OK);
                        assert_eq!(driver.cuGraphDestroy(inner), OK);
                        assert_eq!(driver.cuGraphChildGraphNodeGetGraph(node, &mut place), OK);
                    }
                }
                let node = make(place);
                if reason == 0 {
                    let exec = instantiate(driver, own);
                    assert_eq!(unsafe { driver.cuGraphExecDestroy(exec) }, OK);
                } else {
                    assert_eq!(refusal(driver, own, 0), (IV, reason, node), "{what}, {in_child}");
                    // The short call says as much as it can.
                    let mut exec = null_mut();
                    assert_eq!(unsafe { driver.cuGraphInstantiateWithFlags(&mut exec, own, 0) }, IV);
                }
                assert_eq!(unsafe { driver.cuGraphDestroy(own) }, OK);
            }
        }
        unsafe {
            assert_eq!(driver.cuMemFreeHost(pinned), OK);
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(driver.cuEventDestroy(event), OK);
        }
    });
}

#[test]
fn newer_drivers_number_graphs_and_nodes() {
    leaves_nothing("instantiation::newer_drivers_number_graphs_and_nodes", || {
        let driver = &session_with(Config::new().version(Version::new(13, 2)));
        let (own, other) = (graph(driver), graph(driver));
        let [a, b, c] = [(); 3].map(|()| empty(driver, own, &[]));
        let foreign = empty(driver, other, &[]);
        let exec = instantiate(driver, own);
        let local = |node| {
            let mut id = 99;
            assert_eq!(unsafe { driver.cuGraphNodeGetLocalId(node, &mut id) }, Ok(OK));
            id
        };
        let tools = |node| {
            let mut id = 0;
            assert_eq!(unsafe { driver.cuGraphNodeGetToolsId(node, &mut id) }, Ok(OK));
            id
        };
        let graph_id = |graph| {
            let mut id = 0;
            assert_eq!(unsafe { driver.cuGraphGetId(graph, &mut id) }, Ok(OK));
            id
        };
        assert_eq!([a, b, c, foreign].map(local), [0, 1, 2, 0]);
        assert_ne!(tools(a), tools(foreign));
        assert_ne!(graph_id(own), graph_id(other));
        unsafe {
            let (mut place, mut id) = (null_mut(), 0);
            assert_eq!(driver.cuGraphNodeGetContainingGraph(b, &mut place), Ok(OK));
            assert_eq!(place, own);
            assert_eq!(driver.cuGraphExecGetId(exec, &mut id), Ok(OK));
            assert_ne!(id, graph_id(own));
            // A number stays with its node, and no other node gets it.
            assert_eq!(driver.cuGraphDestroyNode(b), OK);
            let d = empty(driver, own, &[]);
            assert_eq!([a, c, d].map(local), [0, 2, 3]);
            assert_eq!(driver.cuGraphNodeGetLocalId(null_mut(), &mut id), Ok(IV));
            assert_eq!(driver.cuGraphNodeGetContainingGraph(null_mut(), &mut place), Ok(IV));
            assert_eq!(driver.cuGraphGetId(null_mut(), &mut id), Ok(IV));
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphExecGetId(exec, &mut id), Ok(IV));
            // The text names them so.
            let path = std::env::temp_dir().join(format!("cuda-soft-numbers-{}.dot", std::process::id()));
            let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
            assert_eq!(driver.cuGraphDebugDotPrint(own, name.as_ptr(), 0), OK);
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::remove_file(path).unwrap();
            assert!(text.contains(&format!("\"graph_{}_node_3\"", graph_id(own))), "{text}");
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuGraphDestroy(other), OK);
        }
    });
}

#[test]
fn the_text_tells_what_its_flags_ask_for() {
    leaves_nothing("instantiation::the_text_tells_what_its_flags_ask_for", || {
        let driver = &session();
        let library = library(driver);
        let (own, address) = (graph(driver), words(driver, 4));
        let mut event = null_mut();
        let first = word_node(driver, own, &[], function(driver, library, "add"), address, 1);
        let second = word_node(driver, own, &[], function(driver, library, "add"), address, 1);
        fill(driver, own, address);
        host(driver, own);
        batch(driver, own);
        branch(driver, own);
        unsafe {
            assert_eq!(driver.cuEventCreate(&mut event, 0), OK);
            assert_eq!(driver.cuGraphAddEventRecordNode(&mut null_mut(), own, null(), 0, event), OK);
            let data = CUgraphEdgeData { from_port: 1, type_: 1, ..Default::default() };
            assert_eq!(driver.cuGraphAddDependencies_v12030(own, &first, &second, &data, 1), Ok(OK));
            let value = CUlaunchAttributeValue { priority: -2 };
            let priority = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY;
            assert_eq!(driver.cuGraphKernelNodeSetAttribute(first, priority, &value), OK);
        }
        let path = std::env::temp_dir().join(format!("cuda-soft-flags-{}.dot", std::process::id()));
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        let text = |flags| {
            assert_eq!(unsafe { driver.cuGraphDebugDotPrint(own, name.as_ptr(), flags) }, OK);
            std::fs::read_to_string(&path).unwrap()
        };
        let plain = text(0);
        for word in ["add", "MEMSET", "HOST", "BATCH_MEM_OP", "CONDITIONAL", "EVENT_RECORD", " -> "] {
            assert!(plain.contains(word), "{word}: {plain}");
        }
        let everything = text(1);
        for (flag, word) in [
            (1 << 2, "<<<(1, 1, 1), (1, 1, 1), 0>>>"),
            (1 << 4, "1 x 1 of 4 bytes"),
            (1 << 5, "(0x0)"),
            (1 << 6, "event 0x"),
            (1 << 9, "attribute 8"),
            (1 << 10, "node 0x"),
            (1 << 13, "[]"),
            (1 << 14, "from port 1, type 1"),
            (1 << 15, "If, handle 1, 1 bodies"),
        ] {
            assert!(!plain.contains(word), "{word}: {plain}");
            assert!(everything.contains(word), "{word}: {everything}");
            assert!(text(flag).contains(word), "{flag} {word}: {}", text(flag));
        }
        std::fs::remove_file(path).unwrap();
        unsafe {
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuEventDestroy(event), OK);
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(driver.cuLibraryUnload(library), OK);
        }
    });
}
