//! Batches of memory operations of the device that a graph was made for before it was embedded.

use cuda_graph::{BatchNode, ContextExt, Error, Graph};
use cuda_handles::{Batch, Buffer, Error as HandleError};
use cuda_sys::CUDA_BATCH_MEM_OP_NODE_PARAMS;
use cuda_tests::{needs, on_two_devices};

use super::{Two, leaves_nothing};

fn writes(memory: &Buffer<u32>, values: &[u32]) -> Batch {
    let mut batch = Batch::new();
    for (index, value) in values.iter().enumerate() {
        batch.write(memory, index, *value).unwrap();
    }
    batch
}

fn first_two(two: &Two, device: usize, memory: &Buffer<u32>) -> Vec<u32> {
    memory.read_blocking(&two.streams[device]).unwrap()[..2].to_vec()
}

#[track_caller]
fn is_of(two: &Two, node: &BatchNode, device: usize) {
    let mut params = CUDA_BATCH_MEM_OP_NODE_PARAMS::default();
    // SAFETY: a live batch node, and the out pointer is valid.
    let answer =
        unsafe { two.here.driver().cuGraphBatchMemOpNodeGetParams(node.as_raw().unwrap(), &raw mut params) };
    assert!(answer.is_success());
    assert_eq!(params.ctx, [&*two.here, &two.there][device].as_raw());
}

/// A graph of both devices, with the batch of a graph of the second one.
fn embedded(two: &Two) -> (Graph, BatchNode) {
    let inner = two.there.graph().unwrap();
    inner.root().batch(&writes(&two.memory[1], &[1, 2])).unwrap();
    let graph = two.graph();
    let child = graph.root().child(&inner).unwrap();
    let node = child.embedded().unwrap().nodes().unwrap().remove(0);
    (graph, BatchNode::try_from(node).unwrap())
}

#[test]
fn a_changed_batch_stays_in_the_context_that_it_was_made_with() {
    on_two_devices!();
    let two = Two::new();
    let far = &two.memory[1];
    leaves_nothing(|| {
        two.reset();
        let (graph, node) = embedded(&two);
        is_of(&two, &node, 1);
        let launched = |graph: &Graph| {
            graph.instantiate().unwrap().launch(&two.streams[0]).unwrap();
            two.streams[0].synchronize_blocking().unwrap();
        };
        node.set_operation(1, &writes(far, &[7])).unwrap();
        is_of(&two, &node, 1);
        launched(&graph);
        assert_eq!(first_two(&two, 1, far), [7, 0]);
        node.set(&writes(far, &[3, 4])).unwrap();
        is_of(&two, &node, 1);
        launched(&graph);
        assert_eq!(first_two(&two, 1, far), [3, 4]);
        let mut exec = graph.instantiate().unwrap();
        exec.node(&node).set(&writes(far, &[5, 6])).unwrap();
        exec.launch(&two.streams[0]).unwrap();
        two.streams[0].synchronize_blocking().unwrap();
        assert_eq!(first_two(&two, 1, far), [5, 6]);
        let clone = graph.clone_graph().unwrap();
        launched(&clone);
        assert_eq!(first_two(&two, 1, far), [3, 4]);
    });
}

#[test]
fn memory_of_the_home_is_refused_by_a_batch_of_another_device() {
    on_two_devices!();
    let two = Two::new();
    let [near, far] = &two.memory;
    let (graph, node) = embedded(&two);
    let mut exec = graph.instantiate().unwrap();
    let foreign = writes(near, &[8, 9]);
    for refused in [
        node.set(&foreign),
        node.set_operation(0, &writes(near, &[8])),
        exec.node(&node).set(&foreign),
        graph.root().batch(&writes(far, &[8])).map(drop),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::Handles(HandleError::WrongContext(_))), "{error:?}");
    }
    is_of(&two, &node, 1);
    assert_eq!(node.operations().unwrap().len(), 2);
    exec.launch(&two.streams[1]).unwrap();
    assert_eq!(first_two(&two, 1, far), [1, 2]);
    assert_eq!(first_two(&two, 0, near), [0, 0]);
}

#[test]
fn a_batch_of_a_graph_that_was_moved_in_stays_on_its_device() {
    on_two_devices!();
    needs!(MovedGraphs);
    let two = Two::new();
    let inner = two.there.graph().unwrap();
    let node = inner.root().batch(&writes(&two.memory[1], &[1, 2])).unwrap();
    let graph = two.graph();
    let child = graph.root().child_moved(inner).unwrap();
    drop(node);
    let node = child.embedded().unwrap().nodes().unwrap().remove(0);
    let node = BatchNode::try_from(node).unwrap();
    node.set_operation(0, &writes(&two.memory[1], &[4])).unwrap();
    is_of(&two, &node, 1);
    graph.instantiate().unwrap().launch(&two.streams[0]).unwrap();
    two.streams[0].synchronize_blocking().unwrap();
    assert_eq!(first_two(&two, 1, &two.memory[1]), [4, 2]);
}
