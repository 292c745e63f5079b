//! Calls that the driver refuses leave the graph as it was.

use cuda_graph::{ContextExt, Error};
use cuda_launch::{params, per};
use cuda_sys::{CUresult, Call};
use cuda_tests::{every_failure, fail, kernel, no_leaks, setup};

use crate::common::driver_view::Drawn;

#[test]
fn whatever_call_fails_nothing_stays_behind() {
    let context = setup();
    let increment = kernel(&context, "increment");
    let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
    let operation = || -> cuda_graph::Result<()> {
        let graph = context.graph()?;
        let buffer = home.zeros::<u32>(8)?;
        let fill = graph.root().fill(&buffer, 1)?;
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        unsafe { fill.then().launch_untyped(&increment, per(8, 8), params![&buffer, 8_u32]) }?;
        let mut exec = graph.instantiate()?;
        exec.launch(&other)?;
        assert_eq!(buffer.read_blocking(&other)?, [2; 8]);
        Ok(())
    };
    // Both streams get what they keep for as long as they live.
    other.fill(&home.zeros::<u32>(8).unwrap(), 1).unwrap();
    let calls = every_failure(operation);
    assert!(calls >= 10, "{calls}");
}

#[test]
fn an_add_that_the_driver_refuses_leaves_the_graph_as_it_was() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(8).unwrap();
        let graph = Drawn::new(&context);
        let node = graph.root().empty().unwrap();
        let before = graph.view();
        let injection = cuda_tests::fail_any(1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let error = node.then().fill(&buffer, 1).unwrap_err();
        let call = injection.hit_call().unwrap();
        drop(injection);
        assert_eq!(
            error,
            Error::Handles(cuda_handles::Error::Driver { call, code: CUresult::CUDA_ERROR_OUT_OF_MEMORY })
        );
        assert_eq!(graph.view(), before);
        assert_eq!(graph.nodes().unwrap().len(), 1);
        node.then().fill(&buffer, 1).unwrap();
    });
}

#[test]
fn a_removal_that_the_driver_refuses_leaves_the_node() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let graph = Drawn::new(&context);
        let fill = graph.root().fill(&stream.zeros::<u32>(8).unwrap(), 3).unwrap();
        let injection = fail(Call::cuGraphDestroyNode, 1, CUresult::CUDA_ERROR_NOT_SUPPORTED);
        assert!(fill.remove().is_err());
        drop(injection);
        assert!(!fill.is_removed());
        assert_eq!(fill.value().unwrap(), 3);
        graph.instantiate().unwrap().launch(&stream).unwrap();
        fill.remove().unwrap();
    });
}

#[test]
fn a_first_launch_that_failed_waits_again_at_the_next() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let gate = cuda_tests::Gate::close(&home);
        let buffer = home.zeros::<u32>(8).unwrap();
        let graph = context.graph().unwrap();
        graph.root().fill(&buffer, 4).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let injection = fail(Call::cuStreamWaitEvent, 1, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
        assert!(exec.launch(&other).is_err());
        assert!(injection.hit());
        assert!(other.query().unwrap(), "nothing was launched");
        exec.launch(&other).unwrap();
        assert!(!other.query().unwrap(), "the launch waits for the home stream");
        gate.open();
        assert_eq!(buffer.read_blocking(&other).unwrap(), [4; 8]);
    });
}

#[test]
fn a_launch_that_failed_after_its_waits_makes_the_next_one_no_less_safe() {
    let context = setup();
    no_leaks(|| {
        let (home, first, second) =
            (context.stream().unwrap(), context.stream().unwrap(), context.stream().unwrap());
        let gate = cuda_tests::Gate::close(&home);
        let buffer = home.zeros::<u32>(8).unwrap();
        let graph = context.graph().unwrap();
        graph.root().fill(&buffer, 4).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let injection = fail(Call::cuGraphLaunch, 1, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
        assert!(exec.launch(&first).is_err());
        assert!(injection.hit());
        exec.launch(&second).unwrap();
        assert!(!second.query().unwrap(), "this stream has not waited yet and must");
        gate.open();
        assert_eq!(buffer.read_blocking(&second).unwrap(), [4; 8]);
    });
}
