//! Graphs that are left as drawn, with the reason.

use cuda_graph::{ContextExt, Graph, InstantiateOptions, Shape};
use cuda_sys::{CUgraphConditionalNodeType as Class, CUresult, Call};
use cuda_tests::{alone, count, fail, no_leaks, setup};

use super::shaped;
use crate::capture::N;
use crate::common::other;

/// Instantiates the graph and expects a reason.
fn left(graph: &Graph, options: InstantiateOptions, reason: &str) {
    let exec = graph.instantiate_with(options.shape(Shape::Reduced)).unwrap();
    let report = exec.shape_report().unwrap();
    let why = report.reason_to_leave().unwrap_or_else(|| panic!("{report}"));
    assert!(why.contains(reason), "{why}");
    assert_eq!(report.to_string(), format!("as drawn: {why}"));
    assert!(report.before().is_none() && report.after().is_none() && report.notes().is_empty());
}

#[test]
fn memory_of_graphs_and_graphs_that_other_code_knows() {
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let (node, memory) = graph.root().alloc::<u32>(8).unwrap();
        let fill = node.then().fill(&memory, 1).unwrap();
        fill.then().free(&memory).unwrap();
        left(&graph, InstantiateOptions::new(), "allocation or free nodes");
        let lent = context.graph().unwrap();
        lent.root().empty().unwrap();
        lent.lend().unwrap();
        left(&lent, InstantiateOptions::new(), "other code knows the graph");
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        graph.root().fill(&numbers, 1).unwrap();
        left(&graph, InstantiateOptions::new().device_launch(), "kernels launch it");
    });
    context.synchronize_blocking().unwrap();
    context.trim_graph_memory().unwrap();
}

#[test]
fn the_kernels_of_shapes_are_loaded_once_for_a_graph_that_is_left() {
    cuda_tests::as_drawn!("it counts loads of the library's own kernels");
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        graph.root().fill(&numbers, 1).unwrap();
        let loads = || {
            let options = InstantiateOptions::new().device_launch();
            let ((), cost) = count(|| left(&graph, options, "kernels launch it"));
            cost.calls("cuLibraryLoadData")
        };
        assert_eq!([loads(), loads()], [1, 0]);
    });
}

#[test]
fn conditional_nodes_of_other_code() {
    // The first driver that describes them.
    alone!("CUDA_SOFT_VERSION" = "13.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let raw = other::graph();
        let condition = other::condition(&context, raw, 1);
        other::conditional(&context, raw, condition, Class::CU_GRAPH_COND_TYPE_IF, 1);
        {
            // SAFETY: the graph lives longer than the handle.
            let graph = unsafe { Graph::from_raw(&context, raw) }.unwrap();
            left(&graph, InstantiateOptions::new(), "other code knows the graph");
        }
        other::destroy(raw);
    });
}

#[test]
fn a_driver_that_refuses_a_step_is_asked_for_the_graph_as_drawn() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        // The empty node is dissolved.
        graph.root().empty().unwrap().then().fill(&numbers, 1).unwrap();
        let steps = [
            Call::cuGraphCreate,
            Call::cuGraphAddNode,
            Call::cuGraphMemsetNodeGetParams,
            Call::cuGraphInstantiateWithParams,
        ];
        for step in steps {
            let failure = fail(step, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            let mut exec = shaped(&graph, Shape::Reduced);
            assert!(failure.hit(), "{step:?}");
            drop(failure);
            let why = exec.shape_report().unwrap().reason_to_leave().unwrap().to_owned();
            assert!(why.contains("OUT_OF_MEMORY"), "{why}");
            exec.launch(&stream).unwrap();
            assert_eq!(numbers.read_blocking(&stream).unwrap(), [1; N]);
            stream.clear(&numbers).unwrap();
        }
    });
}
