//! What an executable used stays until its runs are over, wherever they are, and goes then.

use core::cell::RefCell;
use core::time::Duration;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use cuda_graph::{ContextExt, Fallback, Graph, GraphExec, HostCallbackNode, InstantiateOptions, Test};
use cuda_handles::{Context, Owner, Stream, reaper};
use cuda_launch::{LaunchConfig, params};
use cuda_sys::{CUresult, CUstreamCaptureMode, Call};
use cuda_tests::states::Foreign;
use cuda_tests::{Gate, SOON, alone, fail, in_callback, kernel, no_leaks, raw, setup, until};

use crate::common::gone::{flag, soon};

const UNKNOWN: CUresult = CUresult::CUDA_ERROR_UNKNOWN;
const A_WHILE: Duration = Duration::from_millis(40);

/// A graph with a host function that keeps an owner.
fn keeping(context: &Context, owner: Owner) -> Graph {
    let graph = context.graph().unwrap();
    graph.root().host(|| ()).unwrap();
    graph.keep(owner);
    graph
}

/// An executable that alone keeps an owner.
fn alone_keeping(context: &Context, owner: Owner) -> GraphExec {
    keeping(context, owner).instantiate().unwrap()
}

/// Whether something stays for a while, although the reaper works.
fn stays(is_gone: &impl Fn() -> bool) -> bool {
    !until(A_WHILE, || {
        reaper::drain();
        is_gone()
    })
}

/// A launch that may have been made, on a stream that does not wait for the launches before.
fn launch_possibly(exec: &mut GraphExec, stream: &Stream) {
    let failing = [Call::cuGraphLaunch, Call::cuStreamWaitEvent].map(|call| fail(call, 1, UNKNOWN));
    exec.launch(stream).unwrap_err();
    assert!(failing.iter().all(cuda_tests::Injection::hit));
}

/// A launch that may have been made, on a stream that waits for the launch before if that is one.
fn launch_possibly_after(exec: &mut GraphExec, stream: &Stream) {
    let failing = fail(Call::cuGraphLaunch, 1, UNKNOWN);
    exec.launch(stream).unwrap_err();
    assert!(failing.hit());
}

/// Gives a node a closure, and tells whether that is gone.
fn set_tracked(exec: &mut GraphExec, node: &HostCallbackNode) -> impl Fn() -> bool + use<> {
    let kept = Arc::new(());
    let gone = Arc::downgrade(&kept);
    let call = move || {
        let _ = &kept;
    };
    exec.node(node).set(call).unwrap();
    move || gone.strong_count() == 0
}

/// Other code begins a capture of a stream.
fn begin_capture(stream: &Stream) {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    // SAFETY: the stream lives, and no thread enqueues on it meanwhile.
    raw::ok(unsafe { raw::driver().cuStreamBeginCapture(stream.lend(), mode) });
}

fn end_capture(stream: &Stream) {
    let mut graph = core::ptr::null_mut();
    // SAFETY: the stream lives and the out pointer is valid.
    raw::ok(unsafe { raw::driver().cuStreamEndCapture(stream.as_raw(), &raw mut graph) });
    // SAFETY: nobody else has the graph.
    raw::ok(unsafe { raw::driver().cuGraphDestroy(graph) });
}

#[test]
fn possible_runs_on_several_streams_are_all_waited_for() {
    let context = setup();
    no_leaks(|| {
        let (first, second) = (context.stream().unwrap(), context.stream().unwrap());
        let (owner, is_gone) = flag();
        let mut exec = alone_keeping(&context, owner);
        let gate = Gate::close(&first);
        exec.launch(&first).unwrap();
        let other_gate = Gate::close(&second);
        launch_possibly(&mut exec, &second);
        for _ in 0..5 {
            launch_possibly_after(&mut exec, &second);
        }
        let before = reaper::pending();
        drop(exec);
        assert_eq!(reaper::pending(), before + 2, "each stream once");
        drop((first, second));
        other_gate.open();
        assert!(stays(&is_gone));
        gate.open();
        assert!(soon(&is_gone));
    });
}

#[test]
fn what_an_update_replaces_then_goes_with_the_executable_at_last() {
    let context = setup();
    no_leaks(|| {
        let (first, second) = (context.stream().unwrap(), context.stream().unwrap());
        let graph = context.graph().unwrap();
        let node = graph.root().host(|| ()).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let is_gone = set_tracked(&mut exec, &node);
        let gate = Gate::close(&first);
        exec.launch(&first).unwrap();
        launch_possibly(&mut exec, &second);
        exec.node(&node).set(|| ()).unwrap();
        exec.release();
        drop(first);
        assert!(stays(&is_gone));
        drop(exec);
        assert!(stays(&is_gone));
        gate.open();
        assert!(soon(&is_gone));
    });
}

#[test]
fn a_launch_that_may_run_follows_the_one_before_on_a_stream_without_a_handle() {
    let context = setup();
    no_leaks(|| {
        let (first, second) = (context.stream().unwrap(), context.stream().unwrap());
        let (owner, is_gone) = flag();
        let mut exec = alone_keeping(&context, owner);
        let gate = Gate::close(&first);
        exec.launch(&first).unwrap();
        drop(first);
        launch_possibly_after(&mut exec, &second);
        drop((exec, second));
        assert!(stays(&is_gone));
        gate.open();
        assert!(soon(&is_gone));
    });
}

#[test]
fn an_upload_elsewhere_changes_nothing() {
    let context = setup();
    no_leaks(|| {
        let (first, second) = (context.stream().unwrap(), context.stream().unwrap());
        let (owner, is_gone) = flag();
        let mut exec = alone_keeping(&context, owner);
        let gate = Gate::close(&first);
        exec.launch(&first).unwrap();
        exec.upload(&second).unwrap();
        drop(exec);
        assert!(stays(&is_gone));
        gate.open();
        assert!(soon(&is_gone));
    });
}

#[test]
fn whole_updates_and_other_executables_keep_what_the_former_run_uses() {
    let context = setup();
    no_leaks(|| {
        let (first, second) = (context.stream().unwrap(), context.stream().unwrap());
        let [(owner, is_gone), (second_owner, is_second_gone)] = [flag(), flag()];
        let mut exec = alone_keeping(&context, owner);
        let gate = Gate::close(&first);
        exec.launch(&first).unwrap();
        drop(first);
        assert!(exec.update(&keeping(&context, second_owner)).unwrap().is_updated());
        assert!(stays(&is_gone));
        exec.launch(&second).unwrap();
        let other = context.graph().unwrap();
        assert!(exec.update_or_rebuild(&other).unwrap().is_some());
        drop((exec, second));
        assert!(stays(&|| is_gone() || is_second_gone()));
        gate.open();
        assert!(soon(&is_gone) && soon(&is_second_gone));
    });
}

#[test]
fn executables_of_a_graph_with_memory_follow_each_other() {
    let context = setup();
    no_leaks(|| {
        let (first, second) = (context.stream().unwrap(), context.stream().unwrap());
        let graph = context.graph().unwrap();
        let (node, numbers) = graph.root().alloc::<u32>(16).unwrap();
        node.then().fill(&numbers, 7).unwrap().then().free(&numbers).unwrap();
        let (owner, is_gone) = flag();
        graph.keep(owner);
        let gate = Gate::close(&first);
        graph.instantiate().unwrap().launch(&first).unwrap();
        drop(first);
        let mut exec = graph.instantiate().unwrap();
        launch_possibly_after(&mut exec, &second);
        drop((graph, node, numbers, exec, second));
        assert!(stays(&is_gone));
        gate.open();
        assert!(soon(&is_gone));
    });
}

#[test]
fn what_a_host_loop_was_doing_when_it_failed_keeps_what_it_uses() {
    let context = setup();
    no_leaks(|| {
        let number = context.stream().unwrap().zeros::<u32>(1).unwrap();
        reaper::drain();
        let failures = [
            (Call::cuGraphLaunch, 1),
            (Call::cuGraphLaunch, 2),
            (Call::cuStreamSynchronize, 1),
            (Call::cuStreamSynchronize, 2),
        ];
        for (call, nth) in failures {
            let graph = context.graph().unwrap();
            let start = graph.root().fill(&number, 1).unwrap();
            start.then().while_loop(Test::nonzero(&number), |body| body.root().fill(&number, 0)).unwrap();
            let (owner, is_gone) = flag();
            graph.keep(owner);
            let options = InstantiateOptions::new();
            let mut exec = graph.instantiate_with_fallback(Fallback::HostLoopAlways, options).unwrap();
            drop((graph, start));
            let stream = context.stream().unwrap();
            let failing = fail(call, nth, UNKNOWN);
            exec.run_blocking(&stream).unwrap_err();
            assert!(failing.hit());
            let gate = Gate::close(&stream);
            drop((exec, stream));
            assert!(stays(&is_gone), "{call:?} {nth}");
            gate.open();
            assert!(soon(&is_gone), "{call:?} {nth}");
        }
    });
}

#[test]
fn one_dropped_in_its_own_host_function_beside_a_capture_breaks_nothing() {
    let context = setup();
    no_leaks(|| {
        let (stream, capturing) = (context.stream().unwrap(), context.stream().unwrap());
        let (owner, is_gone) = flag();
        let slot = Arc::new(Mutex::new(None::<(GraphExec, Stream)>));
        let graph = keeping(&context, owner);
        let taken = Arc::clone(&slot);
        graph.root().host(move || drop(taken.lock().unwrap().take())).unwrap().then().host(|| ()).unwrap();
        let mut exec = { graph }.instantiate().unwrap();
        let gate = Gate::close(&stream);
        exec.launch(&stream).unwrap();
        *slot.lock().unwrap() = Some((exec, stream));
        begin_capture(&capturing);
        gate.open();
        let gone = until(SOON, &is_gone);
        end_capture(&capturing);
        assert!(gone);
    });
}

#[test]
fn one_dropped_by_a_thread_that_captures_breaks_nothing() {
    let context = setup();
    no_leaks(|| {
        for is_over in [true, false] {
            let (stream, capturing) = (context.stream().unwrap(), context.stream().unwrap());
            let (owner, is_gone) = flag();
            let mut exec = alone_keeping(&context, owner);
            let gate = (!is_over).then(|| Gate::close(&stream));
            exec.launch(&stream).unwrap();
            if is_over {
                stream.synchronize_blocking().unwrap();
            }
            begin_capture(&capturing);
            drop((exec, stream));
            let gone_at_once = is_gone();
            drop(gate);
            let gone = until(SOON, &is_gone);
            end_capture(&capturing);
            assert!(gone && gone_at_once == is_over);
        }
    });
}

#[test]
fn one_whose_stream_captures_is_released_once_it_does_not() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (owner, is_gone) = flag();
        let mut exec = alone_keeping(&context, owner);
        exec.launch(&stream).unwrap();
        begin_capture(&stream);
        drop(exec);
        let stayed = stays(&is_gone);
        end_capture(&stream);
        assert!(stayed && soon(&is_gone));
    });
}

thread_local! {
    static FIRST: RefCell<Option<GraphExec>> = const { RefCell::new(None) };
    static SECOND: RefCell<Option<GraphExec>> = const { RefCell::new(None) };
}

#[test]
fn executables_dropped_at_the_end_of_a_thread_are_released() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let [(owner, is_gone), (second_owner, is_second_gone)] = [flag(), flag()];
        let gate = std::thread::scope(|scope| {
            let work = || {
                // Touched before the library uses thread locals of its own, and after.
                FIRST.with(|first| assert!(first.borrow().is_none()));
                let mut exec = alone_keeping(&context, owner);
                exec.launch(&stream).unwrap();
                stream.synchronize_blocking().unwrap();
                FIRST.set(Some(exec));
                let mut exec = alone_keeping(&context, second_owner);
                let gate = Gate::close(&stream);
                exec.launch(&stream).unwrap();
                SECOND.set(Some(exec));
                gate
            };
            scope.spawn(work).join().unwrap()
        });
        assert!(stays(&is_second_gone));
        gate.open();
        assert!(soon(&is_gone) && soon(&is_second_gone));
    });
}

/// Remembers whether it was dropped where the driver permits calls.
struct Asks(Arc<Mutex<Option<bool>>>);

impl Drop for Asks {
    fn drop(&mut self) {
        let mut current = core::ptr::null_mut();
        // SAFETY: the out pointer is valid.
        let code = unsafe { raw::driver().cuCtxGetCurrent(&raw mut current) };
        *self.0.lock().unwrap() = Some(code.is_success());
    }
}

#[test]
fn what_only_the_executable_keeps_is_not_dropped_in_a_host_function() {
    let context = setup();
    no_leaks(|| {
        let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
        let graph = context.graph().unwrap();
        let node = graph.root().host(|| ()).unwrap();
        for time in 0..100 {
            let was_outside = Arc::new(Mutex::new(None));
            let asks = Asks(Arc::clone(&was_outside));
            let mut exec = graph.instantiate().unwrap();
            let call = move || {
                let _ = &asks;
            };
            exec.node(&node).set(call).unwrap();
            exec.launch(&stream).unwrap();
            stream.synchronize_blocking().unwrap();
            in_callback(&other, move || drop(exec));
            assert!(until(SOON, || was_outside.lock().unwrap().is_some()));
            assert_eq!(*was_outside.lock().unwrap(), Some(true), "at time {time}");
        }
    });
}

#[test]
fn calls_of_the_reaper_that_fail_are_made_again() {
    alone!();
    let context = setup();
    no_leaks(|| {
        for call in [Call::cuStreamQuery, Call::cuEventRecord, Call::cuEventCreate, Call::cuEventQuery] {
            for nth in 1..3 {
                let stream = context.stream().unwrap();
                let (owner, is_gone) = flag();
                let mut exec = alone_keeping(&context, owner);
                let gate = Gate::close(&stream);
                exec.launch(&stream).unwrap();
                let _failing = fail(call, nth, UNKNOWN);
                drop((exec, stream));
                assert!(stays(&is_gone), "{call:?} {nth}");
                gate.open();
                assert!(soon(&is_gone), "{call:?} {nth}");
            }
        }
    });
}

#[test]
fn without_a_reaper_a_drain_releases_it() {
    alone!();
    assert!(reaper::manual());
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (owner, is_gone) = flag();
        let mut exec = alone_keeping(&context, owner);
        let gate = Gate::close(&stream);
        exec.launch(&stream).unwrap();
        drop((exec, stream));
        assert!(stays(&is_gone));
        gate.open();
        assert!(soon(&is_gone));
    });
}

#[test]
fn the_loss_of_the_context_ends_the_run() {
    alone!();
    let context = setup();
    let stream = context.stream().unwrap();
    let (owner, is_gone) = flag();
    let mut exec = alone_keeping(&context, owner);
    let doomed = context.graph().unwrap();
    let config = LaunchConfig::new(1, 1);
    // SAFETY: not at all: the kernel writes where nothing is, which ends the context and this
    // process's use of it.
    unsafe { doomed.root().launch_untyped(&kernel(&context, "poke"), config, params![0x40_u64, 7_u32]) }
        .unwrap();
    let mut doomed = doomed.instantiate().unwrap();
    let gate = Gate::close(&stream);
    exec.launch(&stream).unwrap();
    doomed.launch(&stream).unwrap();
    drop((exec, doomed));
    assert!(stays(&is_gone));
    gate.open();
    stream.synchronize_blocking().unwrap_err();
    assert!(until(SOON, &is_gone));
}

fn adopt(foreign: &Foreign, context: &Context) -> Stream {
    // SAFETY: the stream lives longer than its handles, and nobody captures it.
    unsafe { Stream::from_raw(context, foreign.as_raw()) }.unwrap()
}

#[test]
fn an_adopted_stream_that_goes_and_comes_again_is_waited_for() {
    let context = setup();
    no_leaks(|| {
        let foreign = Foreign::new(&context);
        let (owner, is_gone) = flag();
        let mut exec = alone_keeping(&context, owner);
        let adopted = adopt(&foreign, &context);
        let gate = Gate::close(&adopted);
        exec.launch(&adopted).unwrap();
        drop(adopted);
        let again = adopt(&foreign, &context);
        exec.launch(&again).unwrap();
        drop(again);
        let other = context.stream().unwrap();
        launch_possibly_after(&mut exec, &other);
        drop((exec, other));
        assert!(stays(&is_gone));
        gate.open();
        assert!(soon(&is_gone));
    });
}

#[test]
fn a_lent_executable_waits_for_an_adopted_stream_whose_handle_goes_later() {
    let context = setup();
    no_leaks(|| {
        let foreign = Foreign::new(&context);
        let adopted = adopt(&foreign, &context);
        let (owner, is_gone) = flag();
        let exec = alone_keeping(&context, owner);
        let raw_exec = exec.as_raw();
        let gate = Gate::close(&adopted);
        // SAFETY: executable and stream are live, and nobody else launches the executable.
        raw::ok(unsafe { raw::driver().cuGraphLaunch(raw_exec, adopted.as_raw()) });
        drop(exec);
        assert!(stays(&is_gone));
        drop(adopted);
        assert!(stays(&is_gone));
        gate.open();
        assert!(soon(&is_gone));
    });
}

#[test]
fn a_lent_executable_waits_for_no_adopted_stream_that_is_gone() {
    const TIMES: usize = 5000;
    let context = setup();
    no_leaks(|| {
        let foreign = Foreign::new(&context);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    drop(adopt(&foreign, &context));
                }
            });
            for _ in 0..TIMES {
                let exec = alone_keeping(&context, Owner::other(()));
                assert!(!exec.as_raw().is_null());
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(until(SOON, || reaper::pending() == 0), "{} wait", reaper::pending());
    });
}

#[test]
fn an_unknown_end_of_an_adopted_stream_keeps_no_other_executable() {
    alone!();
    let context = setup();
    let foreign = Foreign::new(&context);
    let adopted = adopt(&foreign, &context);
    let [(owner, is_gone), (other_owner, is_other_gone)] = [flag(), flag()];
    let mut exec = alone_keeping(&context, owner);
    exec.launch(&adopted).unwrap();
    adopted.synchronize_blocking().unwrap();
    let failing = [(); 2].map(|()| fail(Call::cuEventRecord, 1, UNKNOWN));
    drop(adopted);
    assert!(failing.iter().all(cuda_tests::Injection::hit));
    let other = context.graph().unwrap();
    assert!(exec.update_or_rebuild(&other).unwrap().is_some());
    exec.launch(&context.stream().unwrap()).unwrap();
    drop(exec);
    let lent = alone_keeping(&context, other_owner);
    assert!(!lent.as_raw().is_null());
    drop(lent);
    assert!(until(SOON, &is_other_gone));
    assert!(!is_gone(), "the end of its run is unknown");
}
