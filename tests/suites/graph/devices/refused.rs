//! What graphs of several devices refuse, and of what they were not made for.

use cuda_graph::{ConditionError, ContextExt, Error, ParamError, Test};
use cuda_handles::Error as HandleError;
use cuda_launch::per;
use cuda_tests::{count, needs, on_two_devices};

use super::{LEN, N, Two};

fn wrong<T: core::fmt::Debug>(outcome: Result<T, Error>) -> String {
    match outcome {
        Err(error @ Error::Handles(HandleError::WrongContext(_))) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_context_that_was_not_stated_stays_out() {
    on_two_devices!();
    let two = Two::new();
    let far = &two.memory[1];
    two.reach();
    let graph = two.here.graph().unwrap();
    let root = graph.root();
    let ((), cost) = count(|| {
        let text = wrong(root.launch(&two.increments[1], per(LEN, 32), (far, N)));
        assert!(text.ends_with("load it for that context, or make the graph for both (`Graph::spanning`)"));
        wrong(root.fill(far, 1));
        wrong(root.copy(far, &two.memory[0]));
    });
    cost.assert_calls(&[]);
    wrong(root.child(&two.graph()));
    wrong(root.record(&two.there.event().unwrap()));
    root.fill(&two.memory[0], 1).unwrap();
    let mut exec = graph.instantiate().unwrap();
    wrong(exec.launch(&two.streams[1]));
    // An executable is updated by no graph that spans more.
    let wide = two.graph();
    wide.root().fill(&two.memory[0], 2).unwrap();
    wrong(exec.update(&wide));
    assert!(wide.instantiate().unwrap().update(&graph).unwrap().is_updated());
}

#[test]
fn conditions_loops_and_branches_are_for_one_context() {
    on_two_devices!();
    let two = Two::new();
    let graph = two.graph();
    let several = |error: Error| assert_eq!(error, Error::Condition(ConditionError::SeveralContexts));
    several(graph.condition().unwrap_err());
    several(graph.condition_with_default(1).unwrap_err());
    let number = two.memory[0].slice(..1).unwrap();
    several(graph.root().while_loop(Test::equal(number, 1), |_| Ok::<_, Error>(())).unwrap_err());
    assert!(graph.is_empty().unwrap());
}

#[test]
fn parameters_are_memory_of_the_home() {
    on_two_devices!();
    let two = Two::new();
    let [near, far] = &two.memory;
    two.there.enable_peer_access(&two.here).unwrap();
    let graph = two.graph();
    wrong(graph.param(far));
    let memory = graph.param(near).unwrap();
    let error = graph.root().launch(&two.increments[1], per(LEN, 32), (&memory, N)).unwrap_err();
    assert!(matches!(error, Error::Param(ParamError::MemoryElsewhere { .. })), "{error:?}");
    // Values go to nodes of both devices, and memory to those of the home.
    let value = graph.param(5_u32).unwrap();
    let fill = graph.root().fill(far, &value).unwrap();
    let count = graph.param(N).unwrap();
    let step = fill.then().launch(&two.increments[1], per(LEN, 32), (far, &count)).unwrap();
    step.then().copy(far, &memory).unwrap();
    let mut exec = graph.instantiate().unwrap();
    let other = two.more(0);
    exec.set(&value, 30).unwrap();
    exec.set(&memory, &other).unwrap();
    exec.launch(&two.streams[1]).unwrap();
    two.streams[1].synchronize_blocking().unwrap();
    assert_eq!([two.first(0, &other), two.first(0, near), two.first(1, far)], [31, 0, 31]);
}

#[test]
fn a_launch_that_leaves_memory_is_on_a_stream_of_the_home() {
    on_two_devices!();
    let two = Two::new();
    let graph = two.graph();
    let (alloc, memory) = graph.root().alloc::<u32>(LEN).unwrap();
    alloc.then().fill(&memory, 1).unwrap();
    let mut exec = graph.instantiate().unwrap();
    assert!(wrong(exec.launch(&two.streams[1])).ends_with("free it in the graph"));
    wrong(exec.launch_with_outputs(&two.streams[1]).map(|_| ()));
    let output = exec.launch_with_outputs(&two.streams[0]).unwrap().take(&memory).unwrap();
    assert_eq!(output.read_blocking(&two.streams[0]).unwrap(), [1; LEN]);
}

#[test]
fn pools_out_of_reach_are_named() {
    on_two_devices!();
    let two = Two::new();
    let pools = [0, 1].map(|device| two.streams[device].zeros::<u32>(LEN).unwrap());
    let graph = two.graph();
    let error = graph.root().copy(&pools[1], &pools[0]).unwrap_err();
    assert!(matches!(error, Error::Memory(_)), "{error:?}");
    two.there.default_pool().unwrap().grant_access(two.here.device()).unwrap();
    graph.root().copy(&pools[1], &pools[0]).unwrap();
    graph.instantiate().unwrap().launch(&two.streams[1]).unwrap();
    two.streams[1].synchronize_blocking().unwrap();
}

#[test]
fn memory_of_a_graph_that_was_moved_in_is_left_on_a_stream_of_its_context() {
    on_two_devices!();
    needs!(MovedGraphs);
    let two = Two::new();
    let inner = two.there.graph().unwrap();
    let (alloc, memory) = inner.root().alloc::<u32>(LEN).unwrap();
    alloc.then().fill(&memory, 1).unwrap();
    let graph = two.graph();
    graph.root().child_moved(inner).unwrap();
    let mut exec = graph.instantiate().unwrap();
    // The first device does not reach the memory.
    assert!(wrong(exec.launch(&two.streams[0])).ends_with("free it in the graph"));
    wrong(exec.launch_with_outputs(&two.streams[0]).map(|_| ()));
    let output = exec.launch_with_outputs(&two.streams[1]).unwrap().take(&memory).unwrap();
    two.increments[1].launch(&two.streams[1], per(LEN, 32), (&output, N)).unwrap();
    assert_eq!(output.read_blocking(&two.streams[1]).unwrap(), [2; LEN]);
}
