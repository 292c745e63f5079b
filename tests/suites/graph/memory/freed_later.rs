//! What a launch left, and an executable made later, of the graph with a free node for that memory.

use cuda_graph::{ContextExt, Error, InstantiateOptions};
use cuda_tests::{Gate, SOON, until};

use super::outputs::leaving;
use super::{N, traceless};

#[test]
fn an_executable_that_frees_memory_is_not_launched_over_what_is_left_of_it() {
    for options in [InstantiateOptions::new().auto_free(), InstantiateOptions::new()] {
        traceless(|context, stream| {
            let (graph, memory) = leaving(context);
            let other = context.graph().unwrap();
            let mut exec = graph.instantiate().unwrap();
            let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
            let out = stream.zeros::<u32>(N).unwrap();
            let copy = other.root().copy(&output, &out).unwrap();
            drop(output);
            drop(exec);
            let free = graph.free(&memory).unwrap();
            let mut exec = graph.instantiate_with(options.clone()).unwrap();
            let error = exec.launch(stream).unwrap_err();
            assert!(matches!(error, Error::OutputInUse { .. }), "{error}");
            assert!(exec.launch_with_outputs(stream).is_err());
            other.instantiate().unwrap().launch(stream).unwrap();
            assert_eq!(out.read_blocking(stream).unwrap(), [5; N]);
            copy.remove().unwrap();
            // The executable of the other graph goes once the driver has let go of it.
            assert!(until(SOON, || exec.launch(stream).is_ok()));
            assert!(exec.launch_with_outputs(stream).unwrap().is_empty());
            drop(free);
        });
    }
}

#[test]
fn an_executable_that_frees_memory_waits_for_what_was_left_of_it() {
    traceless(|context, stream| {
        let (graph, memory) = leaving(context);
        let mut exec = graph.instantiate().unwrap();
        let gate = Gate::close(stream);
        // Freed behind the gate.
        exec.launch(stream).unwrap();
        drop(exec);
        graph.free(&memory).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let next = context.stream().unwrap();
        exec.launch(&next).unwrap();
        assert!(!next.query().unwrap());
        gate.open();
        next.synchronize_blocking().unwrap();
        // It has waited once and for all.
        let (launched, cost) = cuda_tests::count(|| exec.launch(&next));
        launched.unwrap();
        cost.assert_calls(&[("cuGraphLaunch", 1)]);
    });
}
