//! Adds that fail change nothing.

use cuda_graph::{ContextExt, EdgeError, Error};
use cuda_handles::capture::CaptureMode;
use cuda_sys::{CUresult, Call};
use cuda_tests::{fail, no_leaks, setup};

use super::assert_waits;
use crate::capture::N;

#[test]
fn a_failed_add_leaves_no_trace() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let x = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let first = graph.root().fill(&x, 1).unwrap();
        let flow = graph.dataflow().unwrap();
        for call in [Call::cuGraphGetNodes, Call::cuGraphAddNode] {
            let failure = fail(call, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            assert!(flow.fill(&x, 2).is_err());
            assert!(failure.hit(), "{call:?}");
        }
        let failure = fail(Call::cuGraphAddNode, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        assert!(flow.host(|| ()).is_err() && failure.hit());
        drop(failure);
        let second = flow.fill(&x, 2).unwrap();
        let third = flow.fill(&x, 3).unwrap();
        assert_waits(&second, &[&first]);
        assert_waits(&third, &[&second]);
        assert_eq!(graph.len().unwrap(), 3);
    });
}

#[test]
fn what_has_an_order_of_its_own_is_refused() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let graph = context.graph().unwrap();
        let flow = graph.dataflow().unwrap();
        let first = flow.empty().unwrap();
        let before = (*flow).clone().before([&first]).map(drop);
        let captured = flow.capture(&stream, CaptureMode::ThreadLocal, |_| Ok::<_, Error>(()));
        for refused in [before, captured] {
            assert!(matches!(refused, Err(Error::Edge(EdgeError::Dataflow { .. }))), "{refused:?}");
        }
    });
}
