//! Executables that are made again where an update is refused.

use core::time::Duration;

use cuda_graph::{ContextExt, Error, ExecError, InstantiateOptions, RefusalReason};
use cuda_handles::Error as HandleError;
use cuda_launch::per;
use cuda_sys::{CUresult, Call};
use cuda_tests::{Gate, fail, needs, no_leaks, setup, until};

use super::adding::{Adding, run};
use crate::capture::N;
use crate::conditions::branches_and_loops::Kernels;

#[test]
fn a_refused_update_makes_a_new_executable_with_the_same_options() {
    let context = setup();
    no_leaks(|| {
        let Adding { stream, add, numbers } = Adding::new(&context);
        let graph = context.graph().unwrap();
        let node = graph.root().launch(&add, per(1, 1), (1, &numbers)).unwrap();
        let options = InstantiateOptions::new().node_priorities();
        let mut exec = graph.instantiate_with(options).unwrap();
        assert_eq!(exec.update_or_rebuild(&graph).unwrap(), None);
        let new = context.graph().unwrap();
        let first = new.root().launch(&add, per(1, 1), (10, &numbers)).unwrap();
        first.then().launch(&add, per(1, 1), (20, &numbers)).unwrap();
        let why = exec.update_or_rebuild(&new).unwrap().unwrap();
        assert_eq!(why.reason, RefusalReason::Topology);
        assert!(exec.options().has_node_priorities());
        assert_eq!(exec.graph(), Some(new));
        assert!(exec.node(&node).set_enabled(false).is_err());
        exec.node(&first).set(&add, per(1, 1), (11, &numbers)).unwrap();
        assert_eq!(run(&mut exec, &numbers, &stream), 31);
    });
}

#[test]
fn the_first_launch_of_the_new_one_waits_for_a_stream_without_a_handle() {
    let context = setup();
    no_leaks(|| {
        let (first, second) = (context.stream().unwrap(), context.stream().unwrap());
        let graph = context.graph().unwrap();
        graph.root().empty().unwrap();
        let mut exec = graph.instantiate().unwrap();
        let gate = Gate::close(&first);
        exec.launch(&first).unwrap();
        drop(first);
        // Also if the new one was never launched.
        for _ in 0..2 {
            graph.root().empty().unwrap();
            assert!(exec.update_or_rebuild(&graph).unwrap().is_some());
        }
        // And if it is updated.
        assert!(exec.update(&graph).unwrap().is_updated());
        exec.launch(&second).unwrap();
        let event = context.event().unwrap();
        second.record(&event).unwrap();
        let overtakes = until(Duration::from_millis(40), || event.query().unwrap());
        gate.open();
        second.synchronize_blocking().unwrap();
        assert!(!overtakes);
    });
}

#[test]
fn a_failure_leaves_the_executable_as_it_was() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        graph.root().fill(&numbers, 1).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let new = context.graph().unwrap();
        new.root().fill(&numbers, 2).unwrap().then().empty().unwrap();
        let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        for call in [Call::cuGraphExecUpdate, Call::cuGraphInstantiateWithParams] {
            let injection = fail(call, 1, code);
            exec.update_or_rebuild(&new).unwrap_err();
            assert!(injection.hit());
            drop(injection);
            exec.launch(&stream).unwrap();
            assert_eq!(numbers.read_blocking(&stream).unwrap(), [1; N]);
        }
        assert!(exec.update_or_rebuild(&new).unwrap().is_some());
    });
}

#[test]
fn the_only_executable_of_a_graph_with_memory_nodes_is_given_up_first() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let to = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let (node, memory) = graph.root().alloc::<u32>(N).unwrap();
        let fill = node.then().fill(&memory, 1).unwrap();
        let copy = fill.then().copy(&memory, &to).unwrap();
        copy.then().free(&memory).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        fill.set(&memory, 2).unwrap();
        let why = exec.update_or_rebuild(&graph).unwrap().unwrap();
        assert_eq!(why.reason, RefusalReason::MemoryNodes);
        exec.launch(&stream).unwrap();
        assert_eq!(to.read_blocking(&stream).unwrap(), [2; N]);
        // Without an executable, every use says so, and the next call makes one.
        let injection = fail(Call::cuGraphInstantiateWithParams, 1, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
        exec.update_or_rebuild(&graph).unwrap_err();
        assert!(injection.hit());
        drop(injection);
        let none = |outcome: Error| {
            assert!(matches!(outcome, Error::Exec(ExecError::NotRebuilt { .. })), "{outcome}");
            assert!(outcome.to_string().contains("CUDA_ERROR_OPERATING_SYSTEM"), "{outcome}");
        };
        none(exec.launch(&stream).unwrap_err());
        none(exec.upload(&stream).unwrap_err());
        none(exec.update(&graph).unwrap_err());
        none(exec.node(&fill).set(&to, 1).unwrap_err());
        none(exec.driver_options().unwrap_err());
        assert!(exec.as_raw().is_null());
        fill.set(&memory, 3).unwrap();
        assert_eq!(exec.update_or_rebuild(&graph).unwrap().unwrap(), why);
        exec.launch(&stream).unwrap();
        assert_eq!(to.read_blocking(&stream).unwrap(), [3; N]);
    });
}

#[test]
fn a_loop_in_flight_is_made_again_once_its_run_is_over() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        let counter = kernels.stream.upload(&[2_u32]).unwrap();
        let graph = context.graph().unwrap();
        let going = graph.condition_with_default(1).unwrap();
        let node = graph.root().while_node(&going).unwrap();
        let counted = kernels.count(&node.body().unwrap().root(), 1);
        kernels.decide(&counted.then(), &counter, &going).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let gate = Gate::close(&kernels.stream);
        exec.launch(&kernels.stream).unwrap();
        // Another node: the driver refuses the update.
        kernels.count(&node.then(), 100);
        let running = exec.update_or_rebuild(&graph).unwrap_err();
        assert!(matches!(running, Error::Handles(HandleError::StillRunning { .. })), "{running}");
        let none = exec.launch(&kernels.stream).unwrap_err();
        assert!(matches!(none, Error::Exec(ExecError::NotRebuilt { .. })), "{none}");
        gate.open();
        assert_eq!(kernels.counted(), 2);
        let why = exec.update_or_rebuild(&graph).unwrap().unwrap();
        assert_eq!(why.reason, RefusalReason::Topology);
        kernels.stream.fill(&counter, 3).unwrap();
        exec.launch(&kernels.stream).unwrap();
        assert_eq!(kernels.counted(), 103);
    });
}
