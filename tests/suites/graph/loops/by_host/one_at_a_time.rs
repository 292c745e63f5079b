//! One executable a graph, and one run at a time, also if the host decides.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};

use cuda_graph::{ContextExt, Fallback, Graph, InstantiateOptions};
use cuda_sys::{CUresult, Call};
use cuda_tests::{SOON, count, fail, needs, no_leaks, setup, until};

use super::{By, Steps};
use crate::common::other;

#[test]
fn a_run_waits_for_what_a_failed_one_left_on_another_stream() {
    let context = setup();
    no_leaks(|| {
        let steps = Steps::new(&context, By::Host);
        let (graph, number) = (steps.graph(), steps.number(1));
        let (starts, (let_go, held)) = (Arc::new(AtomicU32::new(0)), mpsc::channel::<()>());
        let held = std::sync::Mutex::new(held);
        let started = Arc::clone(&starts);
        let first = graph
            .root()
            .host(move || {
                started.fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
        let branch = first
            .then()
            .if_then(cuda_graph::Test::nonzero(&number), |body| steps.count(&body.root(), 1))
            .unwrap();
        let slow = branch
            .then()
            .host(move || {
                let _ = held.lock().unwrap().recv_timeout(SOON);
            })
            .unwrap();
        slow.then()
            .if_then(cuda_graph::Test::nonzero(&number), |body| steps.count(&body.root(), 10))
            .unwrap();
        let mut exec = steps.exec(&graph);
        // The wait in front of the second decision.
        let failing = fail(Call::cuStreamSynchronize, 3, CUresult::CUDA_ERROR_INVALID_VALUE);
        exec.run_blocking(&steps.stream).unwrap_err();
        assert!(failing.hit());
        drop(failing);
        // The slow part is still running, or is yet to.
        let next = context.stream().unwrap();
        std::thread::scope(|scope| {
            let again = scope.spawn(|| exec.run_blocking(&next));
            assert!(until(SOON, || !next.query().unwrap()), "it waits");
            let waiting = starts.load(Ordering::Relaxed);
            let_go.send(()).unwrap();
            let_go.send(()).unwrap();
            again.join().unwrap().unwrap();
            assert_eq!((waiting, starts.load(Ordering::Relaxed)), (1, 2));
        });
        assert_eq!(steps.counted(), 12);
    });
}

#[test]
fn a_dropped_executable_of_the_device_makes_room_for_one_of_the_host() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let steps = Steps::new(&context, By::Host);
        let (graph, number) = (steps.graph(), steps.number(3));
        graph
            .root()
            .while_loop(cuda_graph::Test::nonzero(&number), |body| steps.round(body, number.as_slice()))
            .unwrap();
        let exec = graph.instantiate().unwrap();
        // Its end is put off until somebody drains, or needs it.
        let ((), cost) = count(|| drop(exec));
        assert_eq!(cost.calls_anywhere("cuGraphExecDestroy"), 0, "{cost}");
        let (rounds, cost) = count(|| steps.run(&graph));
        assert_eq!(rounds, 3);
        assert!(cost.calls("cuGraphExecDestroy") >= 1, "{cost}");
    });
}

#[test]
fn a_graph_of_other_code_may_go_before_the_executable() {
    let context = setup();
    no_leaks(|| {
        for (fallback, by) in [(Fallback::HostLoopAlways, By::Host), (Fallback::HostLoop, By::Device)] {
            let steps = Steps::new(&context, by);
            let foreign = other::graph();
            // SAFETY: the graph lives longer than the handles, and other code's calls come one
            // after the other.
            let graph = unsafe { Graph::from_raw(&context, foreign) }.unwrap();
            steps.count(&graph.root(), 1).unwrap();
            let mut exec = graph.instantiate_with_fallback(fallback, InstantiateOptions::new()).unwrap();
            assert_eq!(exec.graph().as_ref(), Some(&graph));
            drop(graph);
            assert!(exec.graph().is_none());
            other::destroy(foreign);
            exec.run_blocking(&steps.stream).unwrap();
            assert_eq!(steps.counted(), 1);
            let graph = context.graph().unwrap();
            steps.count(&graph.root(), 1).unwrap();
            let exec = graph.instantiate_with_fallback(fallback, InstantiateOptions::new()).unwrap();
            drop(graph);
            assert_eq!(exec.graph().unwrap().len().unwrap(), 1);
        }
    });
}

#[test]
fn a_decision_that_was_given_another_kernel_is_none() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        for by in [By::Device, By::Host] {
            let steps = Steps::new(&context, by);
            let (graph, number) = (steps.graph(), steps.number(1));
            let branch = graph
                .root()
                .if_then(cuda_graph::Test::nonzero(&number), |body| steps.count(&body.root(), 10))
                .unwrap();
            let decides = branch.predecessors().unwrap().remove(0);
            let decides = cuda_graph::KernelNode::try_from(decides).unwrap();
            decides.set(&steps.add, cuda_launch::per(1, 1), (1, &steps.runs)).unwrap();
            assert_eq!(steps.run(&graph), 1, "{by:?}");
        }
    });
}
