//! Runs by the host that fail half-way.

use std::sync::Arc;

use cuda_graph::{ContextExt, Error, Fallback, HostLoopError, HostRound, InstantiateOptions, Test};
use cuda_handles::Error as HandleError;
use cuda_launch::{params, per};
use cuda_sys::{CUresult, CUstreamCaptureMode, CUstreamCaptureStatus, Call};
use cuda_tests::{
    Gate, SOON, alone, count, fail, kernel, no_leaks, raw, settle, setup, sweep, until, used_stream,
};

use super::{By, ONE_LESS, Steps};
use crate::conditions::branches_and_loops::increment_by;
use crate::loops::ready_made::a_loop_and_a_branch;

/// The loops that an error tells of, with their rounds.
fn within(error: &Error) -> Vec<(&str, Option<u64>)> {
    let Error::HostLoop(error) = error else { panic!("{error}") };
    let HostLoopError { within, .. } = &**error;
    within.iter().map(|HostRound { node, round, .. }| (node.as_str(), *round)).collect()
}

#[test]
fn a_failure_tells_loop_and_round() {
    let context = setup();
    no_leaks(|| {
        let steps = Steps::new(&context, By::Host);
        let (graph, outer, inner) = (steps.graph(), steps.number(0), steps.number(0));
        let start = graph.root().fill(&outer, 3).unwrap();
        let rounds = start.then().while_loop(cuda_graph::Test::nonzero(&outer), |body| {
            let start = body.root().fill(&inner, 2)?;
            let nested = start
                .then()
                .while_loop(cuda_graph::Test::nonzero(&inner), |body| steps.round(body, inner.as_slice()))?;
            let nested = nested.named("inner");
            let less = steps.add(&nested.then(), ONE_LESS, outer.as_slice())?;
            let branch = less
                .then()
                .if_then(cuda_graph::Test::nonzero(&outer), |body| steps.count(&body.root(), 100))?;
            Ok::<_, Error>(branch.named("branch"))
        });
        let rounds = rounds.unwrap().named("outer");
        steps.count(&rounds.then(), 1000).unwrap();
        let mut exec = steps.exec(&graph);
        // A run launches the fill, in each round a fill, two inner rounds, a step and perhaps the
        // branch, and the end.
        let outer = |round| ("outer", Some(round));
        let inner = |round| ("inner", Some(round));
        let cases = [
            (Call::cuGraphLaunch, 1, vec![], "launching"),
            (Call::cuGraphLaunch, 2, vec![outer(1)], "launching"),
            (Call::cuGraphLaunch, 4, vec![outer(1), inner(2)], "launching"),
            (Call::cuGraphLaunch, 6, vec![outer(1), ("branch", None)], "launching"),
            (Call::cuGraphLaunch, 14, vec![outer(3), inner(2)], "launching"),
            (Call::cuGraphLaunch, 16, vec![], "launching"),
            (Call::cuMemcpyDtoHAsync, 1, vec![], "deciding about `outer`"),
            (Call::cuMemcpyDtoHAsync, 2, vec![outer(1)], "deciding about `inner`"),
            (Call::cuMemcpyDtoHAsync, 4, vec![outer(1), inner(2)], "deciding about `inner`"),
            (Call::cuMemsetD32Async, 6, vec![outer(2)], "deciding about `inner`"),
            (Call::cuStreamSynchronize, 33, vec![], "waiting for the end"),
        ];
        for (call, nth, rounds, doing) in cases {
            let failing = fail(call, nth, CUresult::CUDA_ERROR_INVALID_VALUE);
            let error = exec.run_blocking(&steps.stream).unwrap_err();
            assert!(failing.hit(), "{call:?} number {nth}");
            drop(failing);
            let text = error.to_string();
            assert_eq!(within(&error), rounds, "{call:?} number {nth}: {text}");
            let name = call.symbol().to_str().unwrap();
            assert!(text.contains(doing) && text.contains(name), "{text}");
            for (node, round) in &rounds {
                let told =
                    round.map_or_else(|| format!("in `{node}`"), |n| format!("in round {n} of `{node}`"));
                assert!(text.contains(&told), "{text}");
            }
            steps.counted();
            exec.run_blocking(&steps.stream).unwrap();
            assert_eq!(steps.counted(), 6 + 200 + 1000, "after {text}");
        }
    });
}

#[test]
fn a_fault_in_a_round_is_told_with_it_and_loses_the_context() {
    alone!();
    let context = setup();
    let steps = Steps::new(&context, By::Host);
    let (graph, number) = (steps.graph(), steps.number(0));
    let poke = kernel(&context, "poke");
    let start = graph.root().fill(&number, 5).unwrap();
    let rounds = start.then().while_loop(cuda_graph::Test::nonzero(&number), |body| {
        let less = steps.round(body, number.as_slice())?;
        less.then().if_then(Test::equal(&number, 2), |body| {
            // SAFETY: not at all: the kernel writes where nothing is, which ends the context and
            // this process's use of it.
            unsafe { body.root().launch_untyped(&poke, per(1, 1), params![0x40_u64, 7_u32]) }
        })
    });
    let rounds = rounds.unwrap().named("rounds");
    let mut exec = steps.exec(&graph);
    settle();
    let error = exec.run_blocking(&steps.stream).unwrap_err();
    assert_eq!(within(&error), [("rounds", Some(3))], "{error}");
    let Error::HostLoop(told) = error else { panic!("{error}") };
    let Error::Handles(HandleError::ContextLost(cause)) = &told.cause else { panic!("{told}") };
    assert_eq!(cause.code, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    let lost = told.cause.clone();
    assert_eq!(exec.run_blocking(&steps.stream).unwrap_err(), lost);
    let memory = Arc::downgrade(rounds.rounds_done().allocation());
    let fallback = Fallback::HostLoopAlways;
    drop(exec);
    let ((), cost) = count(|| {
        let again = graph.instantiate_with_fallback(fallback, InstantiateOptions::new());
        assert_eq!(again.unwrap_err(), lost);
        drop((graph, rounds, start, number, poke, steps));
        settle();
    });
    assert_eq!(cost.total_anywhere(), 0, "drops after the loss call nothing: {cost}");
    assert!(until(SOON, || memory.strong_count() == 0), "nothing else owns it");
}

#[test]
fn what_was_enqueued_before_a_failure_ends_with_all_that_it_uses() {
    let context = setup();
    no_leaks(|| {
        let steps = Steps::new(&context, By::Host);
        let copy = |nth| (Call::cuMemcpyDtoHAsync, nth);
        for (call, nth) in [(Call::cuStreamSynchronize, 1), copy(1), copy(2), copy(3)] {
            let graph = steps.graph();
            let (number, target) = (steps.number(3), steps.stream.zeros::<u32>(1 << 16).unwrap());
            let rounds = graph.root().while_loop(cuda_graph::Test::nonzero(&number), |body| {
                let fill = body.root().fill(&target, 7)?;
                steps.add(&fill.then(), ONE_LESS, number.as_slice())
            });
            drop(rounds.unwrap());
            let mut exec = steps.exec(&graph);
            let gate = Gate::close(&steps.stream);
            // In the first case all waits behind the gate, as the wait for it fails. A copy comes
            // after such a wait.
            let failing = fail(call, nth, CUresult::CUDA_ERROR_INVALID_VALUE);
            if call == Call::cuMemcpyDtoHAsync {
                gate.open();
            }
            exec.run_blocking(&steps.stream).unwrap_err();
            assert!(failing.hit());
            drop((exec, graph, number, target, failing));
            gate.open();
            steps.stream.synchronize_blocking().unwrap();
        }
    });
}

#[test]
fn a_run_on_a_capturing_stream_is_refused_and_the_capture_goes_on() {
    let context = setup();
    no_leaks(|| {
        let steps = Steps::new(&context, By::Host);
        let (graph, number) = (steps.graph(), steps.number(3));
        graph
            .root()
            .while_loop(cuda_graph::Test::nonzero(&number), |body| steps.round(body, number.as_slice()))
            .unwrap();
        let mut exec = steps.exec(&graph);
        let capturing = context.stream().unwrap();
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        let (mut status, mut captured) =
            (CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE, core::ptr::null_mut());
        // SAFETY: the stream lives.
        raw::ok(unsafe { raw::driver().cuStreamBeginCapture(capturing.lend(), mode) });
        let error = exec.run_blocking(&capturing).unwrap_err();
        assert!(matches!(error, Error::Handles(HandleError::Capturing { .. })), "{error}");
        // On another stream it runs, beside the capture.
        exec.run_blocking(&steps.stream).unwrap();
        assert_eq!((steps.counted(), exec.counts().runs), (3, 1));
        // SAFETY: the stream lives, and the out pointers are valid; the graph that comes back is
        // destroyed.
        unsafe {
            raw::ok(raw::driver().cuStreamIsCapturing(capturing.as_raw(), &raw mut status));
            raw::ok(raw::driver().cuStreamEndCapture(capturing.as_raw(), &raw mut captured));
            raw::ok(raw::driver().cuGraphDestroy(captured));
        }
        assert_eq!(status, CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE);
    });
}

/// Drawing, instantiating and running loops and branches, each call failing in turn.
fn swept(fallback: Fallback) -> u64 {
    let context = setup();
    let home = used_stream(&context);
    let add = increment_by::load(&context).unwrap();
    sweep("loops and branches by the host", || -> Result<(), Error> {
        let (number, runs) = (home.zeros::<u32>(1)?, home.zeros::<u32>(1)?);
        let graph = context.graph()?;
        let rounds = a_loop_and_a_branch(&graph, &add, &number, &runs)?;
        rounds.then().copy(&number, runs.slice(..1)?)?.remove()?;
        let mut exec = graph.instantiate_with_fallback(fallback, InstantiateOptions::new())?;
        exec.run_blocking(&home)?;
        assert!(exec.is_on_host());
        assert_eq!((rounds.rounds_done_blocking(&home)?, runs.read_blocking(&home)?), (3, vec![2]));
        Ok(())
    })
}

#[test]
fn sweeping_loops_by_the_host() {
    // The object that a failing call was to end stays, and other tests of the process would see it.
    alone!();
    let cases = swept(Fallback::HostLoopAlways);
    assert!(cases >= 150, "{cases}");
}

#[test]
fn sweeping_place_holders() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    let cases = swept(Fallback::HostLoop);
    assert!(cases >= 150, "{cases}");
}
