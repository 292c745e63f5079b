//! A transformer block that is captured as it is.

#[path = "../../../../crates/graph/examples/capture/layer.rs"]
mod layer;
#[path = "../../../../crates/graph/examples/capture/program.rs"]
mod program;
#[path = "../../../../crates/graph/examples/capture/reference.rs"]
mod reference;
#[path = "../../../../crates/graph/examples/capture/task.rs"]
mod task;

use cuda_graph::{Graph, NodeKind};
use cuda_handles::Context;
use cuda_handles::capture::CaptureMode;
use cuda_tests::{count, no_leaks, setup};

use self::layer::Layer;
use self::program::Transformer;
use self::task::Task;
use super::assert_drawn;

/// No size is a multiple of a block.
const TASK: Task = Task { tokens: 5, heads: 3, size: 6, layers: 2 };

fn layers() -> Vec<Layer<Vec<f32>>> {
    (1..=TASK.layers as u64).map(|seed| Layer::by_chance(TASK, seed)).collect()
}

fn transformer(context: &Context) -> Transformer {
    Transformer::new(context, TASK, &layers()).unwrap()
}

pub(super) fn graph(context: &Context) -> Graph {
    transformer(context).capture(CaptureMode::ThreadLocal).unwrap()
}

#[test]
fn steps_and_replays_in_turn_are_as_on_the_host() {
    let context = setup();
    no_leaks(|| {
        let transformer = transformer(&context);
        for (seed, mode) in
            [(7, CaptureMode::ThreadLocal), (8, CaptureMode::Global), (9, CaptureMode::Relaxed)]
        {
            let prompt = layer::prompt(TASK, seed);
            transformer.load(&prompt).unwrap();
            transformer.step(transformer.stream()).unwrap();
            let mut replay = transformer.capture(mode).unwrap().instantiate().unwrap();
            for steps in 1..6 {
                let expected = reference::run(TASK, &layers(), &prompt, steps);
                assert_eq!(transformer.rows().unwrap(), expected, "{mode:?}, after {steps} steps");
                if steps % 2 == 0 {
                    transformer.step(transformer.stream()).unwrap();
                } else {
                    let (launched, cost) = count(|| replay.launch(transformer.stream()));
                    launched.unwrap();
                    // The first launch waits for the memory of the capture, too.
                    if steps > 1 {
                        cost.assert_calls(&[("cuGraphLaunch", 1)]);
                    }
                }
            }
        }
    });
}

#[test]
fn queries_keys_and_values_wait_for_the_norm_alone() {
    let context = setup();
    no_leaks(|| {
        let graph = graph(&context);
        let nodes = graph.nodes().unwrap();
        assert!(nodes.iter().all(|node| node.kind() == NodeKind::Kernel), "{nodes:?}");
        assert_eq!(nodes.len(), 12 * TASK.layers);
        let edges = graph.edges().unwrap();
        let forks = nodes.iter().filter(|node| edges.iter().filter(|edge| edge.from == **node).count() == 3);
        let joins = nodes.iter().filter(|node| edges.iter().filter(|edge| edge.to == **node).count() == 3);
        assert_eq!((forks.count(), joins.count()), (TASK.layers, TASK.layers), "{edges:?}");
    });
}

#[test]
fn temporaries_of_one_stream_are_used_again_in_a_capture() {
    let context = setup();
    no_leaks(|| {
        let allocations = [1, 5].map(|layers| {
            let task = Task { layers, ..TASK };
            let all: Vec<_> = (0..layers as u64).map(|seed| Layer::by_chance(task, seed + 1)).collect();
            let transformer = Transformer::new(&context, task, &all).unwrap();
            let (graph, cost) = count(|| transformer.capture(CaptureMode::ThreadLocal));
            drop(graph.unwrap());
            cost.calls("cuMemAllocAsync")
        });
        // A layer has nine. One that branches read, and those of the branches, are not used again.
        assert_eq!(allocations[1] - allocations[0], 4 * 3, "{allocations:?}");
    });
}

#[test]
fn its_picture_tells_of_it() {
    let context = setup();
    assert_drawn(&graph(&context), &["layer_norm", "linear", "attention", "gelu", "add"]);
}

#[test]
fn the_exponential_function_is_one() {
    for tenth in -790..=790 {
        let x = f64::from(tenth) / 10.0;
        let found = f64::from(reference::exponential(x as f32));
        assert!((found / x.exp() - 1.0).abs() < 1e-5, "{x}: {found}");
    }
}

/// Captured launches of typed kernels declare what they access, as nodes do.
#[test]
fn the_check_knows_what_captured_kernels_access() {
    let context = setup();
    no_leaks(|| {
        let report = graph(&context).check().unwrap();
        let found = (report.findings().len(), report.stopped(), report.opaque().len());
        assert_eq!(found, (0, None, 0), "{report}");
    });
}
