//! Nodes are added, listed, removed and refused.

use cuda_graph::{ContextExt, Error, Graph, NodeError, NodeKind};
use cuda_launch::{LaunchConfig, params, per};
use cuda_sys::CUgraphNodeType;
use cuda_tests::{alone, count, kernel, no_leaks, other_device, raw, setup};

use crate::common::driver_view::Drawn;

#[test]
fn a_new_graph_is_empty() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        assert_eq!((graph.len().unwrap(), graph.is_empty().unwrap()), (0, true));
        assert!(graph.nodes().unwrap().is_empty() && graph.edges().unwrap().is_empty());
        assert_eq!(graph.context(), &*context);
        assert!(graph.view().nodes.is_empty());
        assert_ne!(graph.graph, Graph::new(&context).unwrap());
    });
}

#[test]
fn nodes_are_what_they_were_added_as_in_the_order_of_their_creation() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (a, b) = (stream.zeros::<u32>(8).unwrap(), stream.zeros::<u32>(8).unwrap());
        let graph = Drawn::new(&context);
        let start = graph.root().empty().unwrap();
        let fill = start.then().fill(&a, 5).unwrap();
        let copy = fill.then().copy(&a, &b).unwrap();
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        let launch = unsafe {
            copy.then().launch_untyped(&kernel(&context, "increment"), per(8, 32), params![&b, 8_u32])
        };
        let launch = launch.unwrap();
        let nodes = graph.nodes().unwrap();
        assert_eq!(nodes, [(*start).clone(), (*fill).clone(), (*copy).clone(), (*launch).clone()]);
        let kinds: Vec<_> = nodes.iter().map(|node| node.kind()).collect();
        assert_eq!(kinds, [NodeKind::Empty, NodeKind::Memset, NodeKind::Memcpy, NodeKind::Kernel]);
        let raw_kinds: Vec<_> = raw::nodes(graph.raw).into_iter().map(raw::kind).collect();
        let expected = [
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL,
        ];
        assert_eq!(raw_kinds, expected);
        assert_eq!(graph.view().edges, [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(launch.graph(), &graph.graph);
        assert_eq!(graph.len().unwrap(), 4);
    });
}

#[test]
fn a_graph_computes_what_its_nodes_say() {
    let context = setup();
    no_leaks(|| {
        let (offset, increment) = (kernel(&context, "offset_copy"), kernel(&context, "increment"));
        let stream = context.stream().unwrap();
        let (a, b, c) = (
            stream.zeros::<u32>(100).unwrap(),
            stream.zeros::<u32>(100).unwrap(),
            stream.zeros::<u32>(100).unwrap(),
        );
        let graph = context.graph().unwrap();
        let left = graph.root().fill(&a, 7).unwrap();
        let right = graph.root().fill(b.slice(50..).unwrap(), 3).unwrap();
        // SAFETY: the arguments are the kernels', the counts are the buffers', and the joins order
        // what touches the same memory.
        unsafe {
            let both = graph.after([&left, &right]).unwrap();
            let sum = both.launch_untyped(&offset, per(100, 64), params![&b, &c, 10_u32, 100_u32]).unwrap();
            let more = sum.then().launch_untyped(&increment, per(100, 64), params![&c, 100_u32]).unwrap();
            more.then().copy(a.slice(..10).unwrap(), c.slice(90..).unwrap()).unwrap();
        }
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        let mut expected = vec![11; 50];
        expected.extend([14; 40]);
        expected.extend([7; 10]);
        assert_eq!(c.read_blocking(&stream).unwrap(), expected);
    });
}

#[test]
fn arguments_are_kept_by_value_whatever_their_number_and_width() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (out, many) = (stream.zeros::<u64>(8).unwrap(), stream.zeros::<u64>(20).unwrap());
        let graph = context.graph().unwrap();
        let config = LaunchConfig::new(1, 1);
        {
            let mut three = [11_u64, 12, 13];
            let owned = params![0xFE_u8, three, 0xFEDC_u16, [21_u64, 22], 0xFEDC_BA98_u32, &out].into_owned();
            three.fill(0);
            // SAFETY: the arguments are the kernel's, and the buffer has the eight elements it
            // writes.
            unsafe { graph.root().launch_untyped(&kernel(&context, "structures"), config, &owned) }.unwrap();
            let mut params = params![&many];
            for index in 1..20_u64 {
                match (index - 1) % 4 {
                    0 => params.push(index as u8),
                    1 => params.push(index as u16),
                    2 => params.push(index as u32),
                    _ => params.push(index),
                }
            }
            // SAFETY: the arguments are the kernel's, and there is a slot for each.
            unsafe { graph.root().launch_untyped(&kernel(&context, "many20"), config, params) }.unwrap();
        }
        let mut exec = graph.instantiate().unwrap();
        for _ in 0..3 {
            out.write_blocking(&stream, &[0; 8]).unwrap();
            many.write_blocking(&stream, &[0; 20]).unwrap();
            exec.launch(&stream).unwrap();
            assert_eq!(out.read_blocking(&stream).unwrap(), [0xFE, 11, 12, 13, 0xFEDC, 21, 22, 0xFEDC_BA98]);
            assert_eq!(many.read_blocking(&stream).unwrap()[1..], (1..20).collect::<Vec<u64>>());
        }
    });
}

#[test]
fn a_node_that_was_removed_is_gone_with_its_edges_and_says_so() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let (a, c) = (graph.root().empty().unwrap(), graph.root().empty().unwrap());
        let b = graph.after([&a]).unwrap().empty().unwrap().named("middle");
        graph.add_edge(&b, &c).unwrap();
        assert!(!b.is_removed());
        let (removed, cost) = count(|| b.remove());
        removed.unwrap();
        cost.assert_calls(&[("cuGraphDestroyNode", 1)]);
        assert!(b.is_removed());
        assert_eq!(graph.nodes().unwrap(), [(*a).clone(), (*c).clone()]);
        assert!(graph.view().edges.is_empty());
        let before = graph.view();
        assert!(matches!(b.remove(), Err(Error::Node(NodeError::Removed { .. }))));
        assert!(matches!(b.predecessors(), Err(Error::Node(NodeError::Removed { .. }))));
        assert!(matches!(b.successors(), Err(Error::Node(NodeError::Removed { .. }))));
        assert!(matches!(b.then().empty(), Err(Error::Node(NodeError::Removed { .. }))));
        assert!(matches!(graph.after([&a, &b]), Err(Error::Node(NodeError::Removed { .. }))));
        assert!(matches!(graph.add_edge(&a, &b), Err(Error::Node(NodeError::Removed { .. }))));
        assert!(matches!(graph.add_edge(&b, &a), Err(Error::Node(NodeError::Removed { .. }))));
        assert!(matches!(graph.remove_edges(&[(&a, &b)]), Err(Error::Node(NodeError::Removed { .. }))));
        assert_eq!(graph.view(), before);
    });
}

#[test]
fn a_frontier_whose_node_is_removed_meanwhile_is_an_error() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let (a, b) = (graph.root().empty().unwrap(), graph.root().empty().unwrap());
        let frontier = graph.after([&a, &b]).unwrap();
        b.remove().unwrap();
        let before = graph.view();
        let (added, cost) = count(|| frontier.empty());
        assert!(matches!(added, Err(Error::Node(NodeError::Removed { .. }))));
        cost.assert_calls(&[]);
        assert_eq!(graph.view(), before);
    });
}

#[test]
fn a_removed_node_never_stands_for_a_new_one_at_its_address() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let old = graph.root().empty().unwrap();
        let address = graph.view().nodes[0];
        old.remove().unwrap();
        let mut reused = false;
        for _ in 0..20 {
            let new = graph.root().empty().unwrap();
            reused |= graph.view().nodes[0] == address;
            assert_ne!(*new, *old);
            assert!(old.is_removed() && !new.is_removed());
            assert!(matches!(graph.add_edge(&old, &new), Err(Error::Node(NodeError::Removed { .. }))));
            new.remove().unwrap();
        }
        assert!(reused, "the driver gives addresses of nodes out again, or this test shows nothing");
    });
}

#[test]
fn a_kernel_node_with_wrong_arguments_is_refused_and_the_graph_unchanged() {
    let context = setup();
    no_leaks(|| {
        let increment = kernel(&context, "increment");
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(8).unwrap();
        let graph = Drawn::new(&context);
        let node = graph.root().empty().unwrap();
        let before = graph.view();
        // SAFETY: the add is refused.
        let (added, cost) = count(|| unsafe {
            node.then().launch_untyped(&increment, LaunchConfig::new(1, 2048), params![&buffer, 8_u32])
        });
        cost.assert_calls(&[]);
        assert!(matches!(added, Err(Error::Launch(cuda_launch::Error::Limit(_)))));
        if raw::driver().version() >= cuda_sys::Version::new(12, 4) {
            // SAFETY: the add is refused.
            let added = unsafe { node.then().launch_untyped(&increment, per(8, 8), params![&buffer, 8_u64]) };
            let Err(Error::Launch(cuda_launch::Error::WrongArguments(error))) = added else {
                panic!("{added:?}")
            };
            assert!(error.to_string().contains("`increment`"), "{error}");
        }
        assert_eq!(graph.view(), before);
    });
}

#[test]
fn memory_nodes_that_the_driver_would_refuse_are_refused_before() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (a, b) = (stream.zeros::<u32>(8).unwrap(), stream.zeros::<u32>(9).unwrap());
        let graph = Drawn::new(&context);
        let root = graph.root();
        let (refusals, cost) = count(|| {
            [
                root.fill(a.slice(3..3).unwrap(), 1).map(drop),
                root.copy(&a, &b).map(drop),
                root.copy(a.slice(..0).unwrap(), b.slice(..0).unwrap()).map(drop),
                root.copy(b.slice(..8).unwrap(), b.slice(1..).unwrap()).map(drop),
            ]
        });
        cost.assert_calls(&[]);
        for (index, refusal) in refusals.into_iter().enumerate() {
            let text = refusal.expect_err(&format!("refusal {index}")).to_string();
            assert!(!text.contains("CUDA_ERROR"), "{text}");
        }
        assert!(graph.view().nodes.is_empty());
    });
}

#[test]
fn things_of_another_context_are_refused() {
    alone!("CUDA_SOFT_DEVICES" = "2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    let other = other_device().context().unwrap();
    let stream = other.stream().unwrap();
    let buffer = stream.zeros::<u32>(8).unwrap();
    let graph = Drawn::new(&context);
    let (refusals, cost) = count(|| {
        // SAFETY: the add is refused.
        let launch = unsafe { graph.root().launch_untyped(&kernel(&other, "empty"), per(1, 1), params![]) };
        [launch.map(drop), graph.root().fill(&buffer, 1).map(drop)]
    });
    assert_eq!(cost.calls("cuGraphAddNode") + cost.calls("cuGraphAddKernelNode"), 0, "{cost}");
    for refusal in refusals {
        let error = refusal.unwrap_err();
        assert!(matches!(error, Error::Handles(cuda_handles::Error::WrongContext { .. })), "{error:?}");
    }
    graph.root().empty().unwrap();
    let mut exec = graph.instantiate().unwrap();
    let error = exec.launch(&stream).unwrap_err();
    assert!(matches!(error, Error::Handles(cuda_handles::Error::WrongContext { .. })), "{error:?}");
    exec.launch(&context.stream().unwrap()).unwrap();
}

#[test]
fn many_threads_add_to_one_graph() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let (graph, start) = (&graph, graph.root().empty().unwrap());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let start = start.clone();
                scope.spawn(move || {
                    let mut last = (*start).clone();
                    for _ in 0..50 {
                        last = (*last.then().empty().unwrap()).clone();
                    }
                });
            }
        });
        assert_eq!(graph.len().unwrap(), 201);
        let view = graph.view();
        assert_eq!((view.nodes.len(), view.edges.len()), (201, 200));
        assert_eq!(start.successors().unwrap().len(), 4);
    });
}

#[test]
fn a_fill_of_memory_that_is_not_aligned_to_its_value_is_refused() {
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let stream = context.stream().unwrap();
        let bytes = stream.zeros::<u8>(16).unwrap();
        let odd = bytes.sub_buffer(1..9).unwrap().cast::<[u8; 4]>().unwrap();
        let error = graph.root().fill(&odd, [1, 2, 3, 4]).unwrap_err().to_string();
        assert!(error.contains("values of 4 bytes"), "{error}");
        assert_eq!(graph.len().unwrap(), 0);
    });
}
